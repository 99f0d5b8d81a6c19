//! A workspace in a temporary directory, and an environment that counts and fails.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pintle_env::{
    Command, EnvError, ExecRequest, ExecutionEnvironment, FileContent, LocalEnvironment, Process, ReadLimits,
    WalkOutput, WalkRequest, forward,
};
use tempfile::TempDir;

use crate::blob::Blobs;
use crate::checkpoint::*;
use crate::error::StoreError;
use crate::hash::Hash;

/// Blobs in memory.
#[derive(Debug, Default)]
pub(super) struct InMemory(pub(super) Mutex<HashMap<Hash, Vec<u8>>>);

#[async_trait]
impl Blobs for InMemory {
    async fn put(&self, bytes: Vec<u8>) -> Result<Hash, StoreError> {
        let hash = Hash::of(&bytes);
        self.0.lock().unwrap().insert(hash, bytes);
        Ok(hash)
    }

    async fn get(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.lock().unwrap().get(hash).cloned())
    }
}

/// An entry as the file system has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    File(Vec<u8>, u32),
    Directory(u32),
    Link(PathBuf),
}

/// Counts the files that are read, and fails on request.
#[derive(Debug)]
pub(super) struct Watched {
    inner: Arc<dyn ExecutionEnvironment>,
    pub(super) files_read: AtomicUsize,
    /// Size of the contents of the largest read, in bytes, and number of files of the longest one.
    pub(super) largest_read: AtomicUsize,
    pub(super) most_files_read: AtomicUsize,
    /// Number of walks that must not be earlier ones.
    fresh_walks: AtomicUsize,
    /// Paths that are unreadable.
    pub(super) unreadable: Mutex<BTreeSet<PathBuf>>,
    /// Number of changes until the environment is lost.
    pub(super) changes_left: AtomicUsize,
    /// Whether the next write fails, and the environment is lost after it.
    pub(super) fails_at_write: AtomicBool,
    /// Time that a read takes.
    pub(super) delay: Mutex<Duration>,
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn ExecutionEnvironment>) -> Self {
        Self {
            inner,
            files_read: AtomicUsize::new(0),
            largest_read: AtomicUsize::new(0),
            most_files_read: AtomicUsize::new(0),
            fresh_walks: AtomicUsize::new(0),
            unreadable: Mutex::default(),
            changes_left: AtomicUsize::new(usize::MAX),
            fails_at_write: AtomicBool::new(false),
            delay: Mutex::default(),
        }
    }

    fn change(&self) -> Result<(), EnvError> {
        let less = |left: usize| left.checked_sub(1);
        self.changes_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .map(drop)
            .map_err(|_| EnvError::EnvironmentLost { environment: "the test".to_owned(), source: None })
    }

    pub(super) fn take_files_read(&self) -> usize {
        self.files_read.swap(0, Ordering::Relaxed)
    }

    pub(super) fn take_fresh_walks(&self) -> usize {
        self.fresh_walks.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl ExecutionEnvironment for Watched {
    forward! {
        inner: working_directory, platform, os_version, metadata, list, canonicalize, rename, exec_command,
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.inner.spawn(command).await
    }

    async fn read(&self, path: &Path, range: Option<std::ops::Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.files_read.fetch_add(1, Ordering::Relaxed);
        self.inner.read(path, range).await
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        self.fresh_walks.fetch_add(usize::from(request.is_fresh), Ordering::Relaxed);
        let mut output = self.inner.walk(request).await?;
        let unreadable = self.unreadable.lock().unwrap().clone();
        for directory in unreadable {
            if output
                .entries
                .iter()
                .any(|entry| entry.path.starts_with(&directory) && entry.path != directory)
            {
                output.entries.retain(|entry| !entry.path.starts_with(&directory) || entry.path == directory);
                output.unreadable.push(directory);
            }
        }
        Ok(output)
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        let delay = *self.delay.lock().unwrap();
        tokio::time::sleep(delay).await;
        self.files_read.fetch_add(paths.len(), Ordering::Relaxed);
        let mut contents = self.inner.read_many(paths, limits).await?;
        let size = |content: &FileContent| match content {
            FileContent::Bytes(bytes) => bytes.len(),
            FileContent::TooLarge
            | FileContent::Missing
            | FileContent::NotAFile
            | FileContent::Unreadable
            | FileContent::Skipped => 0,
        };
        self.largest_read.fetch_max(contents.iter().map(size).sum(), Ordering::Relaxed);
        self.most_files_read.fetch_max(paths.len(), Ordering::Relaxed);
        let root = self.working_directory().canonicalize().unwrap();
        let unreadable = self.unreadable.lock().unwrap();
        for (path, content) in paths.iter().zip(&mut contents) {
            if path.strip_prefix(&root).is_ok_and(|path| unreadable.contains(path)) {
                *content = FileContent::Unreadable;
            }
        }
        Ok(contents)
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        if self.fails_at_write.load(Ordering::Relaxed) {
            self.changes_left.store(0, Ordering::Relaxed);
            let operation = format!("writing {}", path.display());
            return Err(EnvError::Refused { operation, reason: "the disk is full".to_owned() });
        }
        self.change()?;
        self.inner.write(path, bytes).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.change()?;
        self.inner.remove(path).await
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        self.change()?;
        self.inner.create_directory(path).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        self.change()?;
        self.inner.create_symlink(path, target).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        self.change()?;
        self.inner.set_mode(path, mode).await
    }
}

/// A workspace with its environment and blobs.
pub(super) struct Workspace {
    pub(super) directory: TempDir,
    pub(super) root: PathBuf,
    pub(super) env: Arc<Watched>,
    pub(super) blobs: InMemory,
    pub(super) limits: CheckpointLimits,
}

impl Workspace {
    pub(super) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        let local = LocalEnvironment::builder(&root)
            .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            .build()
            .unwrap();
        let env = Arc::new(Watched::new(Arc::new(local)));
        // No machine is slow enough for this limit.
        let limits = CheckpointLimits::default().with_time(Duration::from_secs(600));
        Self { directory, root, env, blobs: InMemory::default(), limits }
    }

    /// Creates a workspace from lines: `path/` is a directory, `path -> target` a link, `path = content` a file, all with
    /// their parents.
    pub(super) fn with(lines: &[&str]) -> Self {
        let workspace = Self::new();
        workspace.apply(lines);
        workspace
    }

    /// Applies lines as in [`with`](Self::with); `- path` removes a tree, `path : 755` sets a mode. What is in the way is
    /// removed.
    pub(super) fn apply(&self, lines: &[&str]) {
        for line in lines {
            if let Some(path) = line.strip_prefix("- ") {
                self.remove(Path::new(path));
            } else if let Some((path, target)) = line.split_once(" -> ") {
                self.link(Path::new(path), Path::new(target));
            } else if let Some((path, content)) = line.split_once(" = ") {
                self.write(Path::new(path), content.as_bytes());
            } else if let Some((path, mode)) = line.split_once(" : ") {
                self.set_mode(Path::new(path), u32::from_str_radix(mode, 8).unwrap());
            } else {
                self.create(Path::new(line.strip_suffix('/').unwrap()));
            }
        }
    }

    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    pub(super) fn remove(&self, path: &Path) {
        let path = self.at(path);
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path).unwrap(),
            Ok(_) => std::fs::remove_file(path).unwrap(),
            Err(_) => {}
        }
    }

    /// Makes everything above a path a directory, and removes the path unless it is a directory.
    fn clear(&self, path: &Path) {
        let mut above: Vec<_> = path.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
        above.reverse();
        for part in above {
            let is_directory = std::fs::symlink_metadata(self.at(part)).is_ok_and(|found| found.is_dir());
            if !is_directory {
                self.remove(part);
                if part != path {
                    std::fs::create_dir(self.at(part)).unwrap();
                }
            }
        }
    }

    pub(super) fn create(&self, path: &Path) {
        self.clear(path);
        std::fs::create_dir_all(self.at(path)).unwrap();
    }

    pub(super) fn write(&self, path: &Path, content: &[u8]) {
        self.clear(path);
        if self.at(path).is_dir() {
            self.remove(path);
        }
        std::fs::write(self.at(path), content).unwrap();
    }

    pub(super) fn link(&self, path: &Path, target: &Path) {
        self.clear(path);
        self.remove(path);
        symlink(target, self.at(path)).unwrap();
    }

    pub(super) fn set_mode(&self, path: &Path, mode: u32) {
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Returns everything below the root, ignored files and git's data included.
    pub(super) fn snapshot(&self) -> BTreeMap<PathBuf, Found> {
        let mut found = BTreeMap::new();
        snapshot_below(&self.root, Path::new(""), &mut found);
        found
    }

    pub(super) async fn take(&self, previous: Option<&Manifest>) -> Checkpoint {
        take(self.env.as_ref(), &self.root, &self.blobs, previous, &self.limits).await.unwrap()
    }

    /// Plans the restore of `target` from the present state, of which the caller knows everything.
    pub(super) async fn plan(&self, target: &Manifest) -> RestorePlan {
        let present = self.take(None).await.manifest;
        self.plan_with(target, &present, &present).await
    }

    pub(super) async fn plan_with(
        &self,
        target: &Manifest,
        newest: &Manifest,
        present: &Manifest,
    ) -> RestorePlan {
        plan_restore(self.env.as_ref(), &self.root, target, newest, present).await.unwrap()
    }

    pub(super) async fn carry_out(&self, plan: &RestorePlan) -> RestoreResult {
        let env: Arc<dyn ExecutionEnvironment> = self.env.clone();
        restore(&env, plan, &self.blobs).await.unwrap()
    }

    /// Restores a checkpoint completely.
    pub(super) async fn restore(&self, target: &Manifest) -> RestorePlan {
        let plan = self.plan(target).await;
        let restored = self.carry_out(&plan).await;
        assert!(restored.is_complete(), "{restored:?}");
        plan
    }

    /// Runs a command in the workspace, which must succeed.
    pub(super) async fn run(&self, line: &str) {
        let result = self.env.exec_command(ExecRequest::new(line)).await.unwrap();
        assert!(result.success(), "{line}: {}", result.stderr.to_text_lossy().unwrap());
    }

    /// Waits until identities of files are settled.
    pub(super) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

fn snapshot_below(root: &Path, relative: &Path, found: &mut BTreeMap<PathBuf, Found>) {
    for entry in std::fs::read_dir(root.join(relative)).unwrap() {
        let entry = entry.unwrap();
        let path = relative.join(entry.file_name());
        let metadata = std::fs::symlink_metadata(entry.path()).unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_dir() {
            found.insert(path.clone(), Found::Directory(mode));
            snapshot_below(root, &path, found);
        } else if metadata.is_symlink() {
            found.insert(path, Found::Link(std::fs::read_link(entry.path()).unwrap()));
        } else if metadata.is_file() {
            found.insert(path, Found::File(std::fs::read(entry.path()).unwrap(), mode));
        }
    }
}

/// Returns the steps of a plan in short form.
pub(super) fn steps(plan: &RestorePlan) -> Vec<String> {
    plan.steps.iter().map(|step| format!("{:?} {}", step.action(), step.path.display())).collect()
}

/// Returns what a plan leaves alone, in short form.
pub(super) fn left_alone(plan: &RestorePlan) -> Vec<String> {
    let reason = |left: &UnrestoredPath| match &left.reason {
        UnrestoredReason::NotInCheckpoint => "not in checkpoint".to_owned(),
        UnrestoredReason::NotKnownNow => "not known now".to_owned(),
        UnrestoredReason::Ignored { by } => format!("ignored by {}", by.display()),
        UnrestoredReason::Occupied { by } => format!("occupied by {}", by.display()),
        UnrestoredReason::Blocked { by } => format!("blocked by {}", by.display()),
    };
    plan.left_alone.iter().map(|left| format!("{}: {}", left.path.display(), reason(left))).collect()
}

pub(super) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
