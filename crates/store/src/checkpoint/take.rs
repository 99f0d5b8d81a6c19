//! Taking a checkpoint.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use pintle_env::{
    EntryKind, ExecutionEnvironment, FileContent, FileIdentity, ReadLimits, WalkEntry, WalkLimit, WalkOutput,
    WalkRequest,
};
use tokio::time::{Instant, timeout_at};

use super::error::CheckpointError;
use super::manifest::{ContentGap, EntryState, ListingLimit, Manifest, ManifestEntry};
use crate::blob::Blobs;
use crate::error::StoreError;
use crate::hash::Hash;

/// Maximum size of the contents that are in memory at once, in bytes, unless one file is larger.
const MAX_BATCH: u64 = 8 << 20;

/// Maximum number of files that are read at once.
const MAX_BATCH_FILES: usize = 256;

/// Maximum number of contents that are stored at once.
const MAX_PUTS: usize = 128;

/// Age of a file, in nanoseconds, above which a later change gives it another identity. Clocks of file systems advance
/// in steps of up to 10 ms.
const SETTLED_NS: i64 = 100_000_000;

/// The same where identities have whole seconds.
const SETTLED_SECONDS_NS: i64 = 2_000_000_000;

/// A checkpoint that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Its id: the hash of the manifest, which is a blob.
    pub id: Hash,
    /// The list of its files.
    pub manifest: Manifest,
}

/// Limits of a checkpoint. A checkpoint that reaches them is partial.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointLimits {
    /// Maximum number of files and links, and of directories; default 50,000 each.
    pub max_files: usize,
    /// Maximum size of a file, in bytes; default 10 MiB.
    pub max_file_size: u64,
    /// Time after which no further file is listed or read; default 2 seconds. The next checkpoint does not read again
    /// the files that were read by then.
    pub time: Duration,
    /// Paths relative to the root that are left out with all paths below them, such as keys; default empty. The
    /// manifest lists them as [ignored](Manifest::ignored), so that a comparison does not show them and a restore
    /// leaves them alone.
    pub excluded: BTreeSet<PathBuf>,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self {
            max_files: 50_000,
            max_file_size: 10 << 20,
            time: Duration::from_secs(2),
            excluded: BTreeSet::new(),
        }
    }
}

impl CheckpointLimits {
    /// Sets the maximum number of files and links, and of directories.
    #[must_use]
    pub fn with_max_files(mut self, max_files: usize) -> Self {
        self.max_files = max_files;
        self
    }

    /// Sets the maximum size of a file, in bytes.
    #[must_use]
    pub fn with_max_file_size(mut self, max_file_size: u64) -> Self {
        self.max_file_size = max_file_size;
        self
    }

    /// Sets the time after which no further file is listed or read.
    #[must_use]
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Leaves out these paths relative to the root, and all paths below them.
    #[must_use]
    pub fn with_excluded(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.excluded.extend(paths);
        self
    }

    /// Returns whether a path relative to the root is left out.
    fn excludes(&self, path: &Path) -> bool {
        // The last ancestor is the root, which cannot be left out.
        let mut above = path.ancestors().filter(|above| !above.as_os_str().is_empty());
        !self.excluded.is_empty() && above.any(|above| self.excluded.contains(above))
    }
}

/// Takes a checkpoint of the directory `root`.
///
/// A file with the same identity as in `previous`, an earlier checkpoint of the directory into the same blobs, is not
/// read again. A file that changes meanwhile is kept with its old or its new content.
///
/// # Errors
///
/// [`CheckpointError::Environment`] if the directory cannot be listed or the environment is lost, and
/// [`CheckpointError::Store`]. A file that cannot be read is not an error: the checkpoint is partial.
pub async fn take(
    env: &dyn ExecutionEnvironment,
    root: &Path,
    blobs: &dyn Blobs,
    previous: Option<&Manifest>,
    limits: &CheckpointLimits,
) -> Result<Checkpoint, CheckpointError> {
    keep(blobs, list(env, root, blobs, previous, limits, true).await?).await
}

/// Takes a checkpoint as [`take`] does. If nothing has changed since `previous`, returns `previous`, and encodes and keeps
/// nothing. The environment may use its latest walk unless `is_fresh` is set.
pub(super) async fn take_after<'a>(
    env: &dyn ExecutionEnvironment,
    root: &Path,
    blobs: &dyn Blobs,
    previous: Option<&'a Checkpoint>,
    limits: &CheckpointLimits,
    is_fresh: bool,
) -> Result<Cow<'a, Checkpoint>, CheckpointError> {
    let before = previous.map(|previous| &previous.manifest);
    let manifest = list(env, root, blobs, before, limits, is_fresh).await?;
    match previous {
        Some(previous) if previous.manifest == manifest => Ok(Cow::Borrowed(previous)),
        Some(_) | None => keep(blobs, manifest).await.map(Cow::Owned),
    }
}

async fn keep(blobs: &dyn Blobs, manifest: Manifest) -> Result<Checkpoint, CheckpointError> {
    let id = blobs.put(manifest.encode()).await?;
    Ok(Checkpoint { id, manifest })
}

/// Lists the directory `root` as [`take`] does, without keeping contents.
///
/// # Errors
///
/// As for [`take`].
pub async fn observe(
    env: &dyn ExecutionEnvironment,
    root: &Path,
    previous: Option<&Manifest>,
    limits: &CheckpointLimits,
) -> Result<Manifest, CheckpointError> {
    list(env, root, &HashOnly, previous, limits, true).await
}

/// Computes hashes without keeping the bytes.
struct HashOnly;

#[async_trait]
impl Blobs for HashOnly {
    async fn put(&self, bytes: Vec<u8>) -> Result<Hash, StoreError> {
        Ok(Hash::of(&bytes))
    }

    async fn get(&self, _hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
}

async fn list(
    env: &dyn ExecutionEnvironment,
    root: &Path,
    blobs: &dyn Blobs,
    previous: Option<&Manifest>,
    limits: &CheckpointLimits,
    is_fresh: bool,
) -> Result<Manifest, CheckpointError> {
    let root = env.resolve(root);
    // The walk and the reads use the same directories, even if another process replaces one.
    let held = env.hold(std::slice::from_ref(&root)).await?;
    let env = held.as_deref().unwrap_or(env);
    let deadline = Instant::now() + limits.time;
    let request = WalkRequest::new(&root)
        .with_max_entries(limits.max_files.saturating_mul(2))
        .with_time_limit(limits.time)
        .with_fresh(is_fresh);
    let mut walked = env.walk(&request).await?;
    walked.entries.retain(|entry| !limits.excludes(&entry.path));
    walked.unreadable.retain(|path| !limits.excludes(path));
    let is_cut = cut(&mut walked.entries, limits.max_files);
    let unlisted = match walked.reached {
        Some(WalkLimit::Time) => Some(ListingLimit::Time),
        Some(WalkLimit::Entries | _) => Some(ListingLimit::Files),
        None => is_cut.then_some(ListingLimit::Files),
    };
    let mut listing = CheckpointListing::new(&walked, previous, limits);
    let mut files = listing.unread.as_slice();
    while let Some((batch, rest)) = next_batch(files) {
        files = rest;
        if Instant::now() >= deadline {
            break;
        }
        let read = read_batch(env, &root, batch, blobs, limits, deadline).await?;
        for (file, state) in batch.iter().zip(read) {
            if let Some(state) = state {
                listing.found.push((file.path.clone(), state));
            } else {
                listing.gone.push(file.path.clone());
            }
        }
    }
    let CheckpointListing { mut entries, found, gone, .. } = listing;
    for (path, state) in found {
        if let Some(entry) = entries.get_mut(&path) {
            entry.state = state;
        }
    }
    for path in gone {
        entries.remove(&path);
    }
    for entry in entries.values_mut().filter(|entry| matches!(entry.state, EntryState::Unknown(_))) {
        entry.identity = None;
    }
    let ignored = walked.ignored.into_iter().collect();
    let manifest = Manifest::new(entries, ignored, walked.unreadable.into_iter().collect(), unlisted);
    Ok(manifest.with_ignored(limits.excluded.iter().cloned()))
}

/// Keeps as many files and as many directories as allowed, in the order of their paths.
fn cut(entries: &mut Vec<WalkEntry>, max: usize) -> bool {
    let (mut files, mut directories) = (0, 0);
    let fits = |entry: &WalkEntry| {
        let count = if entry.kind == EntryKind::Directory { &mut directories } else { &mut files };
        *count += 1;
        *count <= max
    };
    match entries.iter().map(fits).position(|fits| !fits) {
        Some(first) => {
            entries.truncate(first);
            true
        }
        None => false,
    }
}

/// Entries of a checkpoint in progress.
struct CheckpointListing {
    entries: BTreeMap<PathBuf, ManifestEntry>,
    /// Files that must be read.
    unread: Vec<UnreadFile>,
    found: Vec<(PathBuf, EntryState)>,
    /// Files that were removed meanwhile.
    gone: Vec<PathBuf>,
}

struct UnreadFile {
    path: PathBuf,
    size: u64,
}

impl CheckpointListing {
    fn new(walked: &WalkOutput, previous: Option<&Manifest>, limits: &CheckpointLimits) -> Self {
        let mut unread = Vec::new();
        let mut entries = Vec::with_capacity(walked.entries.len());
        let mut before = previous.map(|previous| previous.entries().iter()).into_iter().flatten().peekable();
        for entry in &walked.entries {
            // Both are sorted by path.
            while before.next_if(|(path, _)| **path < entry.path).is_some() {}
            let before = before.next_if(|(path, _)| **path == entry.path).map(|(_, before)| before);
            let identity = entry.identity.filter(|identity| is_settled(*identity, walked.started_ns));
            let state = match entry.kind {
                EntryKind::Directory => EntryState::Directory,
                EntryKind::Other => EntryState::Other,
                EntryKind::Symlink => match &entry.target {
                    Some(target) => EntryState::Symlink { target: target.clone() },
                    None => EntryState::Unknown(ContentGap::Unreadable),
                },
                EntryKind::File if entry.size > limits.max_file_size => {
                    EntryState::Unknown(ContentGap::TooLarge)
                }
                EntryKind::File => known_content(entry, before).unwrap_or_else(|| {
                    unread.push(UnreadFile { path: entry.path.clone(), size: entry.size });
                    // Replaced once it is read.
                    EntryState::Unknown(ContentGap::Time)
                }),
            };
            let has_content =
                entry.kind == EntryKind::File && state != EntryState::Unknown(ContentGap::TooLarge);
            let identity = identity.filter(|_| has_content);
            let mode = entry.mode.filter(|_| entry.kind != EntryKind::Symlink);
            entries.push((entry.path.clone(), ManifestEntry { state, mode, identity }));
        }
        let entries = entries.into_iter().collect();
        Self { entries, unread, found: Vec::new(), gone: Vec::new() }
    }
}

/// Returns whether a file with this identity would get another one if it changed from now on.
fn is_settled(identity: FileIdentity, started_ns: Option<i64>) -> bool {
    let has_whole_seconds = identity.changed_ns % 1_000_000_000 == 0;
    let age = if has_whole_seconds { SETTLED_SECONDS_NS } else { SETTLED_NS };
    started_ns.is_some_and(|started| identity.changed_ns.saturating_add(age) <= started)
}

/// Returns the content of a file that has not changed since the previous checkpoint.
fn known_content(entry: &WalkEntry, before: Option<&ManifestEntry>) -> Option<EntryState> {
    let before = before?;
    let is_unchanged = before.identity.is_some() && before.identity == entry.identity;
    match &before.state {
        EntryState::File { size, .. } if is_unchanged && *size == entry.size => Some(before.state.clone()),
        EntryState::File { .. }
        | EntryState::Directory
        | EntryState::Symlink { .. }
        | EntryState::Other
        | EntryState::Unknown(_) => None,
    }
}

/// Splits off the files to read next.
fn next_batch(files: &[UnreadFile]) -> Option<(&[UnreadFile], &[UnreadFile])> {
    let mut size = 0_u64;
    let fits = |file: &&UnreadFile| {
        size = size.saturating_add(file.size);
        size <= MAX_BATCH
    };
    let count = files.iter().take(MAX_BATCH_FILES).take_while(fits).count().max(1);
    files.split_at_checked(count)
}

/// Reads files and keeps their contents; `None` for a file that was removed. Files that are not read in time are
/// unknown.
async fn read_batch(
    env: &dyn ExecutionEnvironment,
    root: &Path,
    batch: &[UnreadFile],
    blobs: &dyn Blobs,
    limits: &CheckpointLimits,
    deadline: Instant,
) -> Result<Vec<Option<EntryState>>, CheckpointError> {
    let paths: Vec<_> = batch.iter().map(|file| root.join(&file.path)).collect();
    let read_limits = ReadLimits::new(limits.max_file_size, MAX_BATCH);
    let late = || Ok(vec![Some(EntryState::Unknown(ContentGap::Time)); batch.len()]);
    let Ok(contents) = timeout_at(deadline, env.read_many(&paths, read_limits)).await else { return late() };
    let mut states = Vec::with_capacity(batch.len());
    let mut unkept = Vec::new();
    let mut contents = contents?.into_iter();
    for (index, file) in batch.iter().enumerate() {
        let mut content = contents.next().unwrap_or(FileContent::Skipped);
        if content == FileContent::Skipped {
            // Files of the batch grew meanwhile.
            content = read_one(env, &root.join(&file.path), read_limits, deadline).await?;
        }
        states.push(match content {
            FileContent::Bytes(bytes) => {
                unkept.push((index, bytes));
                // Replaced once it is kept.
                Some(EntryState::Unknown(ContentGap::Time))
            }
            FileContent::TooLarge => Some(EntryState::Unknown(ContentGap::TooLarge)),
            FileContent::Unreadable => Some(EntryState::Unknown(ContentGap::Unreadable)),
            // Another entry has replaced it since it was listed. The next checkpoint will list that entry.
            FileContent::NotAFile => Some(EntryState::Unknown(ContentGap::Unreadable)),
            FileContent::Missing => None,
            FileContent::Skipped => Some(EntryState::Unknown(ContentGap::Time)),
        });
    }
    let mut unkept = unkept.into_iter().peekable();
    while unkept.peek().is_some() && Instant::now() < deadline {
        let (indices, contents): (Vec<_>, Vec<_>) = unkept.by_ref().take(MAX_PUTS).unzip();
        for (index, state) in indices.into_iter().zip(store_contents(blobs, contents).await?) {
            if let Some(slot) = states.get_mut(index) {
                *slot = Some(state);
            }
        }
    }
    Ok(states)
}

/// Keeps several contents together, since most of the time is spent waiting for the disk.
async fn store_contents(
    blobs: &dyn Blobs,
    contents: Vec<Vec<u8>>,
) -> Result<Vec<EntryState>, CheckpointError> {
    let sizes: Vec<_> = contents.iter().map(|bytes| bytes.len() as u64).collect();
    let hashes = blobs.put_many(contents).await?;
    Ok(hashes.into_iter().zip(sizes).map(|(hash, size)| EntryState::File { hash, size }).collect())
}

async fn read_one(
    env: &dyn ExecutionEnvironment,
    path: &Path,
    limits: ReadLimits,
    deadline: Instant,
) -> Result<FileContent, CheckpointError> {
    let paths = [path.to_path_buf()];
    let Ok(read) = timeout_at(deadline, env.read_many(&paths, limits)).await else {
        return Ok(FileContent::Skipped);
    };
    Ok(read?.pop().unwrap_or(FileContent::Skipped))
}
