//! The last known state of files, to detect changes by other processes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use pintle_env::{ExecutionEnvironment, Metadata};
use pintle_llm::Fingerprint;

use crate::recent_files::RecentFiles;

/// The state of each file when a call of the session last read or wrote it.
///
/// The built-in file tools keep it up to date. A tool that replaces a whole file uses it to report changes that the
/// model has not seen. It does not refuse calls; the gate [`ReadBeforeWrite`](crate::gate::ReadBeforeWrite) does.
/// Clones share the state, which contains at most 10,000 files.
#[derive(Clone, Debug, Default)]
pub struct KnownFiles {
    files: Arc<Mutex<RecentFiles<Option<FileState>>>>,
}

/// The state of a file when the session last read or wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    /// The whole content is known.
    Content { len: u64, hash: Fingerprint },
    /// Only a part of the content is known.
    Part { len: u64, modified: Option<SystemTime> },
}

/// The result of comparing a file with its last known state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The session has neither read nor written the file.
    Unknown,
    /// The file is unchanged.
    Current,
    /// The file was modified since then.
    Changed {
        /// Its previous size in bytes.
        len: u64,
    },
}

impl KnownFiles {
    /// Creates the state of a new session.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that a call read a file with this metadata that starts with `sample`.
    pub(crate) async fn read(
        &self,
        env: &dyn ExecutionEnvironment,
        path: &Path,
        metadata: &Metadata,
        sample: &[u8],
    ) {
        let Metadata { len, modified, .. } = *metadata;
        let seen = match sample.len() as u64 == len {
            true => FileState::content(sample),
            false => FileState::Part { len, modified },
        };
        self.set(&canonical_path(env, path).await, Some(seen));
    }

    /// Records that a call wrote the complete content of a file.
    pub(crate) async fn wrote(&self, env: &dyn ExecutionEnvironment, path: &Path, content: &[u8]) {
        self.set(&canonical_path(env, path).await, Some(FileState::content(content)));
    }

    /// Compares a file with its last known state. `content` is its current content; `None` if it is too large for
    /// memory.
    pub(crate) async fn compare(
        &self,
        env: &dyn ExecutionEnvironment,
        path: &Path,
        content: Option<&[u8]>,
    ) -> Comparison {
        let seen = self.get(&canonical_path(env, path).await);
        let (len, is_current) = match (seen, content) {
            (None, _) => return Comparison::Unknown,
            (Some(seen @ FileState::Content { len, .. }), Some(content)) => {
                (len, seen == FileState::content(content))
            }
            (Some(FileState::Content { len, .. }), None) => (len, false),
            (Some(FileState::Part { len, modified }), _) => {
                let now = env.metadata(path).await.ok();
                (len, now.is_some_and(|now| (now.len, now.modified) == (len, modified)))
            }
        };
        if is_current { Comparison::Current } else { Comparison::Changed { len } }
    }

    fn get(&self, path: &Path) -> Option<FileState> {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner).get(path)
    }

    fn set(&self, path: &Path, seen: Option<FileState>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner).get(path) = seen;
    }
}

impl FileState {
    fn content(content: &[u8]) -> Self {
        Self::Content { len: content.len() as u64, hash: Fingerprint::from_bytes(content) }
    }
}

/// Returns the canonical path of a file, so that each file has one name.
pub(crate) async fn canonical_path(env: &dyn ExecutionEnvironment, path: &Path) -> PathBuf {
    env.canonicalize(path).await.unwrap_or_else(|_no_links| env.resolve(path))
}

#[cfg(test)]
mod tests {
    use pintle_env::{ExecutionEnvironmentExt as _, MemoryEnvironment};

    use super::*;

    const PATH: &str = "/p/a";

    async fn read(files: &KnownFiles, env: &MemoryEnvironment, sample: usize) {
        let metadata = env.metadata(Path::new(PATH)).await.unwrap();
        let content = env.read(Path::new(PATH), None).await.unwrap();
        files.read(env, Path::new(PATH), &metadata, &content[..sample]).await;
    }

    async fn compare(files: &KnownFiles, env: &MemoryEnvironment) -> Comparison {
        let content = env.read(Path::new(PATH), None).await.unwrap();
        files.compare(env, Path::new("x/../a"), Some(&content)).await
    }

    #[tokio::test]
    async fn a_change_by_others_is_detected() {
        let env = MemoryEnvironment::new("/p").with_file("a", "one");
        for sample in [3, 2] {
            let files = KnownFiles::new();
            env.write_file(Path::new(PATH), "one").await.unwrap();
            assert_eq!(compare(&files, &env).await, Comparison::Unknown);
            read(&files, &env, sample).await;
            assert_eq!(compare(&files, &env).await, Comparison::Current);
            env.write_file(Path::new(PATH), "longer").await.unwrap();
            assert_eq!(compare(&files, &env).await, Comparison::Changed { len: 3 });
            files.wrote(&env, Path::new(PATH), b"longer").await;
            assert_eq!(compare(&files, &env).await, Comparison::Current);
            env.write_file(Path::new(PATH), "LONGER").await.unwrap();
            assert_eq!(compare(&files, &env).await, Comparison::Changed { len: 6 }, "of the same length");
        }
    }
}
