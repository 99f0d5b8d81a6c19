//! By what the model has read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_llm::Fingerprint;

use super::{Gate, Verdict};
use crate::known::real;
use crate::pipeline::{Execution, PreparedCall};
use crate::recent::RecentFiles;
use crate::tool::ToolKind;

/// The bytes that are hashed at a time.
const BLOCK: u64 = 4 << 20;

/// Up to this size a file is known by its content, above it by its size and time.
const MAX_HASHED: u64 = 64 << 20;

/// Denies changing a file that this session has not read, or that has changed on disk since.
///
/// A file counts as read when a call has succeeded that names it among the files that it looks at
/// ([`Tool::reads`](crate::Tool::reads)), even if the call showed a part of it, and when a call of the session has
/// written it. Searches and listings do not count. A file that does not exist may be created. Commands neither count
/// as reading nor are they judged; what they change must be read again. So the gate is for toolsets that have a tool
/// for reading, which the native one of OpenAI's models has not.
///
/// One gate belongs to one session: make a new one for each.
#[derive(Debug)]
pub struct ReadBeforeWrite {
    env: Arc<dyn ExecutionEnvironment>,
    /// A file that is forgotten here must be read again.
    files: Mutex<RecentFiles<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// What the model knows.
    read: Option<Stamp>,
    /// What stood there when the newest reading call was about to begin.
    reading: Option<Stamp>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    Content { len: u64, hash: Fingerprint },
    Large { len: u64, modified: Option<SystemTime> },
}

impl ReadBeforeWrite {
    /// A gate for one session in this environment, of which nothing has been read yet.
    #[must_use]
    pub fn new(env: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { env, files: Mutex::default() }
    }

    fn files(&self) -> MutexGuard<'_, RecentFiles<Known>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands there now; `None` if it is no regular file.
    async fn stamp(&self, path: &Path) -> Result<Option<Stamp>, EnvError> {
        let metadata = match self.env.metadata(path).await {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) | Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if metadata.len > MAX_HASHED {
            return Ok(Some(Stamp::Large { len: metadata.len, modified: metadata.modified }));
        }
        let (mut len, mut hash) = (0, Fingerprint::of(b"file"));
        while len <= MAX_HASHED {
            let block = self.env.read(path, Some(len..len + BLOCK)).await?;
            hash = hash.chain(Fingerprint::of(&block));
            len += block.len() as u64;
            if (block.len() as u64) < BLOCK {
                break;
            }
        }
        Ok(Some(Stamp::Content { len, hash }))
    }

    /// Why this file must not be changed now, if so.
    async fn objection(&self, path: &Path) -> Option<String> {
        let real = real(self.env.as_ref(), path).await;
        let now = match self.stamp(&real).await {
            Ok(Some(now)) => now,
            Ok(None) => return None,
            Err(error) => return Some(format!("{} cannot be looked at: {error}", path.display())),
        };
        match self.files().get(&real).read {
            Some(read) if read == now => None,
            Some(_) => {
                Some(format!("{} has changed on disk since it was read; read it again first", path.display()))
            }
            None => Some(format!("{} has not been read in this session; read it first", path.display())),
        }
    }
}

#[async_trait]
impl Gate for ReadBeforeWrite {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        for path in call.writes() {
            if let Some(reason) = self.objection(path).await {
                return Verdict::Deny { reason };
            }
        }
        for path in shown(call) {
            let real = real(self.env.as_ref(), path).await;
            // A call that cannot read the file will say so itself.
            let reading = self.stamp(&real).await.ok().flatten();
            if reading.is_some() {
                self.files().get(&real).reading = reading;
            }
        }
        Verdict::Allow
    }

    async fn ran(&self, call: &PreparedCall, execution: &Execution) {
        if execution.error.is_some() {
            return;
        }
        for path in shown(call) {
            let real = real(self.env.as_ref(), path).await;
            let now = self.stamp(&real).await.ok().flatten();
            let mut files = self.files();
            // What changed while it was read may have been read as it was before.
            if now.is_some() && files.get(&real).reading == now {
                files.get(&real).read = now;
            }
        }
        for path in call.writes() {
            let real = real(self.env.as_ref(), path).await;
            let now = self.stamp(&real).await.ok().flatten();
            self.files().get(&real).read = now;
        }
    }
}

/// The files whose content this call shows.
fn shown(call: &PreparedCall) -> &[PathBuf] {
    let searches = [ToolKind::Grep, ToolKind::Glob, ToolKind::ListDir];
    let is_search = ToolKind::from_name(call.kind()).is_some_and(|kind| searches.contains(&kind));
    if is_search { &[] } else { call.reads() }
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;
    use serde_json::json;

    use super::*;
    use crate::gate::workbench::{Probe, call_in, denies, doing, run};
    use crate::tool::Effect;

    struct Bench {
        env: Arc<MemoryEnvironment>,
        gate: ReadBeforeWrite,
    }

    impl Bench {
        fn new() -> Self {
            let env = MemoryEnvironment::new("/p").with_file("a", "one").with_file("b", "two");
            let env = Arc::new(env);
            Self { gate: ReadBeforeWrite::new(env.clone()), env }
        }

        async fn call(&self, effect: Effect, path: &str) -> PreparedCall {
            let name = if effect == Effect::Read { "reads" } else { "writes" };
            call_in(self.env.as_ref(), doing(effect), json!({ name: [path] })).await
        }

        /// The verdict, and the call's effect if it may run.
        async fn attempt(&self, effect: Effect, path: &str) -> Verdict {
            let call = self.call(effect, path).await;
            let verdict = self.gate.check(&call).await;
            if verdict == Verdict::Allow {
                self.gate.ran(&call, &run(&self.env, &call).await).await;
            }
            verdict
        }

        async fn change(&self, path: &str, content: &str) {
            self.env.write_file(Path::new(path), content).await.unwrap();
        }
    }

    const READ: Effect = Effect::Read;
    const WRITE: Effect = Effect::Write;

    #[tokio::test]
    async fn a_file_is_read_first_and_again_when_it_has_changed() {
        let bench = Bench::new();
        let unread = denies("/p/a has not been read in this session; read it first");
        let changed = denies("/p/a has changed on disk since it was read; read it again first");
        assert_eq!(bench.attempt(WRITE, "a").await, unread);
        assert_eq!(bench.attempt(READ, "b").await, Verdict::Allow);
        assert_eq!(bench.attempt(WRITE, "a").await, unread, "another file");
        assert_eq!(bench.attempt(READ, "./x/../a").await, Verdict::Allow);
        assert_eq!(bench.attempt(WRITE, "/p/a").await, Verdict::Allow);
        assert_eq!(bench.attempt(WRITE, "a").await, Verdict::Allow, "its own change is known");
        bench.change("a", "zwo").await;
        assert_eq!(bench.attempt(WRITE, "a").await, changed);
        assert_eq!(bench.attempt(READ, "a").await, Verdict::Allow);
        assert_eq!(bench.attempt(WRITE, "a").await, Verdict::Allow);
    }

    #[tokio::test]
    async fn a_search_does_not_count_as_reading() {
        let bench = Bench::new();
        for kind in ["grep", "glob", "list_dir"] {
            let search = Probe::new("Search", READ).kind(kind);
            let call = call_in(bench.env.as_ref(), search, json!({"reads": ["a"]})).await;
            assert_eq!(bench.gate.check(&call).await, Verdict::Allow);
            bench.gate.ran(&call, &run(&bench.env, &call).await).await;
            assert!(matches!(bench.attempt(WRITE, "a").await, Verdict::Deny { .. }), "{kind}");
        }
    }

    #[tokio::test]
    async fn a_new_file_may_be_created_and_then_changed() {
        let bench = Bench::new();
        assert_eq!(bench.attempt(WRITE, "new/file").await, Verdict::Allow);
        assert_eq!(bench.attempt(WRITE, "new/file").await, Verdict::Allow);
        bench.env.remove(Path::new("/p/new/file")).await.unwrap();
        assert_eq!(bench.attempt(WRITE, "new/file").await, Verdict::Allow, "it is gone");
    }

    #[tokio::test]
    async fn a_reading_that_failed_or_raced_with_a_change_does_not_count() {
        let bench = Bench::new();
        let call = bench.call(READ, "a").await;
        assert_eq!(bench.gate.check(&call).await, Verdict::Allow);
        let execution = run(&bench.env, &call).await;
        bench.change("a", "1").await;
        bench.gate.ran(&call, &execution).await;
        assert!(matches!(bench.attempt(WRITE, "a").await, Verdict::Deny { .. }), "changed while it was read");

        let call = bench.call(READ, "missing").await;
        assert_eq!(bench.gate.check(&call).await, Verdict::Allow);
        let execution = run(&bench.env, &call).await;
        assert!(execution.error.is_some());
        bench.change("missing", "now there").await;
        bench.gate.ran(&call, &execution).await;
        assert!(matches!(bench.attempt(WRITE, "missing").await, Verdict::Deny { .. }));
    }

    #[tokio::test]
    async fn a_change_of_the_same_length_and_a_long_file_are_noticed() {
        let bench = Bench::new();
        let long = "x".repeat(usize::try_from(BLOCK).unwrap() + 5);
        bench.change("long", &long).await;
        assert_eq!(bench.attempt(READ, "long").await, Verdict::Allow);
        bench.change("long", &format!("{}y", &long[1..])).await;
        assert!(matches!(bench.attempt(WRITE, "long").await, Verdict::Deny { .. }));
    }
}
