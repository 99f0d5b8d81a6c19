//! An environment that keeps writes in memory, on top of another one that it only reads.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pintle_env::{Command, DirEntry, EnvError, ExecutionEnvironment, FileKind, Metadata, Process, forward};

/// Maximum number of bytes kept in memory.
const MAX_BYTES: usize = 64 << 20;

/// The files as they would be after the call.
#[derive(Debug)]
pub(super) struct Overlay {
    inner: Arc<dyn ExecutionEnvironment>,
    layer: Mutex<BTreeMap<PathBuf, OverlayEntry>>,
}

#[derive(Clone, Debug)]
enum OverlayEntry {
    Written(Vec<u8>),
    Directory,
    Removed,
}

impl Overlay {
    pub(super) fn new(inner: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { inner, layer: Mutex::default() }
    }

    fn layer(&self) -> MutexGuard<'_, BTreeMap<PathBuf, OverlayEntry>> {
        self.layer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, path: &Path) -> Option<OverlayEntry> {
        self.layer().get(path).cloned()
    }

    /// Returns whether a file or directory was created below this path.
    fn is_directory_above(&self, path: &Path) -> bool {
        let layer = self.layer();
        let mut below = layer.range(path.to_owned()..).filter(|(file, _)| file.starts_with(path));
        below.any(|(file, entry)| {
            file != path && matches!(entry, OverlayEntry::Written(_) | OverlayEntry::Directory)
        })
    }

    fn keep(&self, path: PathBuf, bytes: Vec<u8>) -> Result<(), EnvError> {
        let mut layer = self.layer();
        let held = layer.values().map(|entry| match entry {
            OverlayEntry::Written(bytes) => bytes.len(),
            OverlayEntry::Directory | OverlayEntry::Removed => 0,
        });
        if held.sum::<usize>().saturating_add(bytes.len()) > MAX_BYTES {
            return Err(refused(&path, "it is too large to be shown beforehand"));
        }
        layer.insert(path, OverlayEntry::Written(bytes));
        Ok(())
    }
}

fn refused(path: &Path, reason: &str) -> EnvError {
    EnvError::Refused { operation: format!("writing {}", path.display()), reason: reason.to_owned() }
}

fn not_found(path: PathBuf) -> EnvError {
    EnvError::NotFound { path, source: io::ErrorKind::NotFound.into() }
}

#[async_trait]
impl ExecutionEnvironment for Overlay {
    forward! { inner: working_directory, home_directory, platform, os_version, canonicalize, resolve }

    async fn spawn(&self, _command: Command) -> Result<Box<dyn Process>, EnvError> {
        Err(EnvError::Refused {
            operation: "running the command".to_owned(),
            reason: "the call is made for show".to_owned(),
        })
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        let path = self.resolve(path);
        match self.entry(&path) {
            None => self.inner.read(&path, range).await,
            Some(OverlayEntry::Removed) => Err(not_found(path)),
            Some(OverlayEntry::Directory) => Err(EnvError::IsADirectory { path }),
            Some(OverlayEntry::Written(bytes)) => {
                let Range { start, end } = range.unwrap_or(0..u64::MAX);
                let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.get(index(start)..index(end)).unwrap_or_default().to_vec())
            }
        }
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        let path = self.resolve(path);
        match self.metadata(&path).await {
            Ok(metadata) => match metadata.kind {
                FileKind::File => {
                    if let Some(mode) = metadata.read_only_mode() {
                        return Err(EnvError::ReadOnlyFile { path, mode });
                    }
                }
                FileKind::Directory => return Err(EnvError::IsADirectory { path }),
                FileKind::Other => return Err(EnvError::NotARegularFile { path }),
            },
            Err(EnvError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        self.keep(path, bytes.to_vec())
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        let path = self.resolve(path);
        match self.entry(&path) {
            Some(OverlayEntry::Written(bytes)) => Ok(Metadata::new(FileKind::File, bytes.len() as u64)),
            Some(OverlayEntry::Directory) => Ok(Metadata::new(FileKind::Directory, 0)),
            _ if self.is_directory_above(&path) => Ok(Metadata::new(FileKind::Directory, 0)),
            Some(OverlayEntry::Removed) => Err(not_found(path)),
            None => self.inner.metadata(&path).await,
        }
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        let path = self.resolve(path);
        let listed = match self.inner.list(&path).await {
            Err(EnvError::NotFound { .. }) if self.metadata(&path).await?.is_dir() => Vec::new(),
            result => result?,
        };
        let mut entries: BTreeMap<PathBuf, DirEntry> =
            listed.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        for (file, entry) in self.layer().iter() {
            let Ok(inside) = file.strip_prefix(&path) else { continue };
            let mut names = inside.components();
            let Some(name) = names.next().map(|name| PathBuf::from(name.as_os_str())) else { continue };
            match (entry, names.next()) {
                (OverlayEntry::Written(_) | OverlayEntry::Directory, Some(_below)) => {
                    entries.entry(name.clone()).or_insert_with(|| DirEntry::directory(name));
                }
                (OverlayEntry::Written(bytes), None) => {
                    entries.insert(name.clone(), DirEntry::file(name, bytes.len() as u64));
                }
                (OverlayEntry::Directory, None) => {
                    entries.insert(name.clone(), DirEntry::directory(name));
                }
                (OverlayEntry::Removed, None) => drop(entries.remove(&name)),
                (OverlayEntry::Removed, Some(_below)) => {}
            }
        }
        Ok(entries.into_values().collect())
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        let path = self.resolve(path);
        match self.metadata(&path).await {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(EnvError::NotADirectory { path }),
            Err(EnvError::NotFound { .. }) => {
                self.layer().insert(path, OverlayEntry::Directory);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        let path = self.resolve(path);
        if self.metadata(&path).await?.is_dir() && !self.list(&path).await?.is_empty() {
            return Err(EnvError::IsADirectory { path });
        }
        self.layer().insert(path, OverlayEntry::Removed);
        Ok(())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        let (from, to) = (self.resolve(from), self.resolve(to));
        let bytes = self.read(&from, None).await?;
        self.write(&to, &bytes).await?;
        if from != to {
            self.layer().insert(from, OverlayEntry::Removed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;

    use super::*;

    async fn names(env: &Overlay, path: &str) -> Vec<String> {
        let entries = env.list(Path::new(path)).await.unwrap();
        entries.iter().map(|entry| entry.name.display().to_string()).collect()
    }

    #[tokio::test]
    async fn writes_are_visible_only_in_the_overlay() {
        let inner = Arc::new(MemoryEnvironment::new("/p").with_file("a", "one").with_file("d/b", "b"));
        let before = inner.files();
        let env = Overlay::new(inner.clone());
        env.write(Path::new("a"), b"1234").await.unwrap();
        env.write(Path::new("n/m/c"), b"c").await.unwrap();
        env.rename(Path::new("d/b"), Path::new("e")).await.unwrap();
        assert_eq!(env.read(Path::new("/p/a"), Some(1..3)).await.unwrap(), b"23");
        assert_eq!(env.read(Path::new("e"), None).await.unwrap(), b"b");
        assert!(matches!(env.read(Path::new("d/b"), None).await, Err(EnvError::NotFound { .. })));
        assert!(env.metadata(Path::new("n")).await.unwrap().is_dir());
        assert_eq!(env.metadata(Path::new("a")).await.unwrap().len, 4);
        assert_eq!(names(&env, ".").await, ["a", "d", "e", "n"]);
        assert_eq!(names(&env, "n/m").await, ["c"]);
        env.remove(Path::new("d")).await.unwrap();
        assert_eq!(names(&env, ".").await, ["a", "e", "n"]);
        assert!(matches!(env.remove(Path::new("n")).await, Err(EnvError::IsADirectory { .. })));
        assert!(matches!(env.write(Path::new("n"), b"").await, Err(EnvError::IsADirectory { .. })));
        assert!(matches!(env.write(Path::new("a/b"), b"").await, Err(EnvError::NotADirectory { .. })));
        env.create_directory(Path::new("x/y")).await.unwrap();
        env.create_directory(Path::new("x/y")).await.unwrap();
        assert!(env.metadata(Path::new("x")).await.unwrap().is_dir());
        assert_eq!(
            (names(&env, ".").await, names(&env, "x").await),
            (vec!["a".into(), "e".into(), "n".into(), "x".into()], vec!["y".to_owned()])
        );
        assert!(names(&env, "x/y").await.is_empty());
        assert!(matches!(env.create_directory(Path::new("a")).await, Err(EnvError::NotADirectory { .. })));
        assert!(matches!(env.remove(Path::new("x")).await, Err(EnvError::IsADirectory { .. })));
        env.remove(Path::new("x/y")).await.unwrap();
        assert!(matches!(env.metadata(Path::new("x/y")).await, Err(EnvError::NotFound { .. })));
        // Nothing that is refused here changes the files below.
        assert!(env.set_mode(Path::new("a"), 0o777).await.is_err());
        assert!(env.create_symlink(Path::new("link"), Path::new("a")).await.is_err());
        let walked = env.walk(&pintle_env::WalkRequest::new("")).await.unwrap();
        let walked: Vec<_> = walked.entries.iter().map(|entry| entry.path.to_str().unwrap()).collect();
        assert_eq!(walked, ["a", "e", "n", "n/m", "n/m/c"]);
        assert_eq!(inner.files(), before);
    }

    #[tokio::test]
    async fn no_command_runs_and_memory_is_bounded() {
        let env = Overlay::new(Arc::new(MemoryEnvironment::new("/p")));
        assert!(matches!(env.spawn(Command::shell("true")).await, Err(EnvError::Refused { .. })));
        let large = vec![0; MAX_BYTES];
        env.write(Path::new("a"), &large).await.unwrap();
        assert!(matches!(env.write(Path::new("b"), b"b").await, Err(EnvError::Refused { .. })));
    }
}
