//! What a session knows of files, so that it notices when someone else changes them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use pintle_env::{ExecutionEnvironment, Metadata};
use pintle_llm::Fingerprint;

use crate::recent::RecentFiles;

/// The state of each file that the calls of a session have read or written last.
///
/// The built-in tools that read and write files keep it, and a tool that replaces a whole file uses it to tell the
/// model of changes that it has not seen. It refuses nothing: that is for
/// [`ReadBeforeWrite`](crate::gate::ReadBeforeWrite). Clones share one state, which holds 10,000 files at most.
#[derive(Clone, Debug, Default)]
pub struct KnownFiles {
    files: Arc<Mutex<RecentFiles<Option<Seen>>>>,
}

/// The state in which a file was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// All of its content.
    Content { len: u64, hash: Fingerprint },
    /// A part of its content.
    Part { len: u64, modified: Option<SystemTime> },
}

/// How the content of a file compares with what the session has seen of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquaintance {
    /// The session has not seen the file.
    Unknown,
    /// The file is as it was.
    Current,
    /// The file has been modified since.
    Changed {
        /// The size in bytes that it had.
        len: u64,
    },
}

impl KnownFiles {
    /// The state of a session that has seen no file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a call read a file with this metadata, which begins with `sample`.
    pub(crate) async fn read(
        &self,
        env: &dyn ExecutionEnvironment,
        path: &Path,
        metadata: &Metadata,
        sample: &[u8],
    ) {
        let Metadata { len, modified, .. } = *metadata;
        let seen = match sample.len() as u64 == len {
            true => Seen::content(sample),
            false => Seen::Part { len, modified },
        };
        self.set(&real(env, path).await, Some(seen));
    }

    /// Notes that a call wrote the whole content of a file.
    pub(crate) async fn wrote(&self, env: &dyn ExecutionEnvironment, path: &Path, content: &[u8]) {
        self.set(&real(env, path).await, Some(Seen::content(content)));
    }

    /// Compares a file with what the session has seen of it. `content` is all that is there now, unless it is too
    /// large to hold.
    pub(crate) async fn compare(
        &self,
        env: &dyn ExecutionEnvironment,
        path: &Path,
        content: Option<&[u8]>,
    ) -> Acquaintance {
        let seen = self.get(&real(env, path).await);
        let (len, is_current) = match (seen, content) {
            (None, _) => return Acquaintance::Unknown,
            (Some(seen @ Seen::Content { len, .. }), Some(content)) => (len, seen == Seen::content(content)),
            (Some(Seen::Content { len, .. }), None) => (len, false),
            (Some(Seen::Part { len, modified }), _) => {
                let now = env.metadata(path).await.ok();
                (len, now.is_some_and(|now| (now.len, now.modified) == (len, modified)))
            }
        };
        if is_current { Acquaintance::Current } else { Acquaintance::Changed { len } }
    }

    fn get(&self, path: &Path) -> Option<Seen> {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner).get(path)
    }

    fn set(&self, path: &Path, seen: Option<Seen>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner).get(path) = seen;
    }
}

impl Seen {
    fn content(content: &[u8]) -> Self {
        Self::Content { len: content.len() as u64, hash: Fingerprint::of(content) }
    }
}

/// One name for each file, however a call spells it.
pub(crate) async fn real(env: &dyn ExecutionEnvironment, path: &Path) -> PathBuf {
    env.canonicalize(path).await.unwrap_or_else(|_no_links| env.resolve(path))
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;

    use super::*;

    const PATH: &str = "/p/a";

    async fn read(files: &KnownFiles, env: &MemoryEnvironment, sample: usize) {
        let metadata = env.metadata(Path::new(PATH)).await.unwrap();
        let content = env.read(Path::new(PATH), None).await.unwrap();
        files.read(env, Path::new(PATH), &metadata, &content[..sample]).await;
    }

    async fn compare(files: &KnownFiles, env: &MemoryEnvironment) -> Acquaintance {
        let content = env.read(Path::new(PATH), None).await.unwrap();
        files.compare(env, Path::new("x/../a"), Some(&content)).await
    }

    #[tokio::test]
    async fn a_change_by_someone_else_is_noticed() {
        let env = MemoryEnvironment::new("/p").with_file("a", "one");
        for sample in [3, 2] {
            let files = KnownFiles::new();
            env.write_file(Path::new(PATH), "one").await.unwrap();
            assert_eq!(compare(&files, &env).await, Acquaintance::Unknown);
            read(&files, &env, sample).await;
            assert_eq!(compare(&files, &env).await, Acquaintance::Current);
            env.write_file(Path::new(PATH), "longer").await.unwrap();
            assert_eq!(compare(&files, &env).await, Acquaintance::Changed { len: 3 });
            files.wrote(&env, Path::new(PATH), b"longer").await;
            assert_eq!(compare(&files, &env).await, Acquaintance::Current);
            env.write_file(Path::new(PATH), "LONGER").await.unwrap();
            assert_eq!(compare(&files, &env).await, Acquaintance::Changed { len: 6 }, "of the same length");
        }
    }
}
