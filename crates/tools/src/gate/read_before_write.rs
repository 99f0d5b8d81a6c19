//! A gate that requires files to be read before they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_llm::Fingerprint;

use super::{Gate, Verdict};
use crate::call::{Execution, PreparedCall};
use crate::kind::ToolKind;
use crate::known_files::canonical_path;
use crate::recent_files::RecentFiles;

/// Number of bytes that are hashed at once.
const BLOCK: u64 = 4 << 20;

/// Maximum size of a file that is compared by content, in bytes. A larger one is compared by size and modification
/// time.
const MAX_HASHED: u64 = 64 << 20;

/// Denies changes to a file that this session has not read, or that has changed on disk since.
///
/// A file counts as read when a call that names it in [`Tool::reads`](crate::Tool::reads) succeeds, even if it showed
/// only a part, and when a call of the session writes it. Searches and listings do not count. A file that does not
/// exist may be created. Commands do not count as reading and are not judged; files that they change must be read
/// again. The gate therefore needs a toolset with a tool for reading, which the native toolset of OpenAI models lacks.
///
/// Create one gate for each session.
#[derive(Debug)]
pub struct ReadBeforeWrite {
    env: Arc<dyn ExecutionEnvironment>,
    /// A file that was evicted must be read again.
    files: Mutex<RecentFiles<ReadStamps>>,
}

#[derive(Debug, Default)]
struct ReadStamps {
    /// The state that the model has read.
    read: Option<Stamp>,
    /// The state before the latest call that reads the file.
    reading: Option<Stamp>,
}

/// The identity of one state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    Content { len: u64, hash: Fingerprint },
    Large { len: u64, modified: Option<SystemTime> },
}

impl ReadBeforeWrite {
    /// Creates a gate for a session that has not read any file yet.
    #[must_use]
    pub fn new(env: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { env, files: Mutex::default() }
    }

    fn files(&self) -> MutexGuard<'_, RecentFiles<ReadStamps>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current state of a file; `None` if there is no regular file.
    async fn stamp(env: &dyn ExecutionEnvironment, path: &Path) -> Result<Option<Stamp>, EnvError> {
        let metadata = match env.metadata(path).await {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) | Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if metadata.len > MAX_HASHED {
            return Ok(Some(Stamp::Large { len: metadata.len, modified: metadata.modified }));
        }
        let (mut len, mut hash) = (0, Fingerprint::from_bytes(b"file"));
        while len <= MAX_HASHED {
            let block = env.read(path, Some(len..len + BLOCK)).await?;
            hash = hash.chain(Fingerprint::from_bytes(&block));
            len += block.len() as u64;
            if (block.len() as u64) < BLOCK {
                break;
            }
        }
        Ok(Some(Stamp::Content { len, hash }))
    }

    /// Returns the reason why this file must not be changed now, if any.
    async fn objection(&self, env: &dyn ExecutionEnvironment, path: &Path) -> Option<String> {
        let real = canonical_path(env, path).await;
        let now = match Self::stamp(env, &real).await {
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
    fn name(&self) -> &'static str {
        "read_before_write"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        let env = call.judged_in(&self.env).as_ref();
        for path in call.writes() {
            if let Some(reason) = self.objection(env, path).await {
                return Verdict::deny(reason);
            }
        }
        for path in shown_files(call) {
            let real = canonical_path(env, path).await;
            // A call that cannot read the file reports the error itself.
            let reading = Self::stamp(env, &real).await.ok().flatten();
            if reading.is_some() {
                self.files().get(&real).reading = reading;
            }
        }
        Verdict::ALLOW
    }

    async fn ran(&self, call: &PreparedCall, execution: &Execution) {
        if execution.error.is_some() {
            return;
        }
        let env = call.judged_in(&self.env).as_ref();
        for path in shown_files(call) {
            let real = canonical_path(env, path).await;
            let now = Self::stamp(env, &real).await.ok().flatten();
            let mut files = self.files();
            // If the file changed during the call, the model may have read the old content.
            if now.is_some() && files.get(&real).reading == now {
                files.get(&real).read = now;
            }
        }
        for path in call.writes() {
            let real = canonical_path(env, path).await;
            let now = Self::stamp(env, &real).await.ok().flatten();
            self.files().get(&real).read = now;
        }
    }
}

/// Returns the files whose content this call shows.
fn shown_files(call: &PreparedCall) -> &[PathBuf] {
    let searches = [ToolKind::Grep, ToolKind::Glob, ToolKind::ListDir];
    let is_search = ToolKind::from_name(call.kind()).is_some_and(|kind| searches.contains(&kind));
    if is_search { &[] } else { call.reads() }
}

#[cfg(test)]
mod tests {
    use pintle_env::{ExecutionEnvironmentExt as _, MemoryEnvironment};
    use serde_json::json;

    use super::*;
    use crate::gate::Permission;
    use crate::tests::probe::{Probe, call_in, denies, execute_in, probe};
    use crate::tool::Effect;

    struct Harness {
        env: Arc<MemoryEnvironment>,
        gate: ReadBeforeWrite,
    }

    impl Harness {
        fn new() -> Self {
            let env = MemoryEnvironment::new("/p").with_file("a", "one").with_file("b", "two");
            let env = Arc::new(env);
            Self { gate: ReadBeforeWrite::new(env.clone()), env }
        }

        async fn call(&self, effect: Effect, path: &str) -> PreparedCall {
            let name = if effect == Effect::Read { "reads" } else { "writes" };
            call_in(self.env.as_ref(), probe(effect), json!({ name: [path] })).await
        }

        /// Returns the verdict on a call, and runs it if allowed.
        async fn attempt(&self, effect: Effect, path: &str) -> Verdict {
            let call = self.call(effect, path).await;
            let verdict = self.gate.check(&call).await;
            if verdict == Verdict::ALLOW {
                self.gate.ran(&call, &execute_in(&self.env, &call).await).await;
            }
            verdict
        }

        async fn change(&self, path: &str, content: &str) {
            self.env.write_file(Path::new(path), content).await.unwrap();
        }
    }

    const READ: Effect = Effect::Read;
    const WRITE: Effect = Effect::Write;

    fn is_denied(verdict: &Verdict) -> bool {
        verdict.permission() == Permission::Deny
    }

    #[tokio::test]
    async fn a_file_must_be_read_before_each_change() {
        let harness = Harness::new();
        let unread = denies("/p/a has not been read in this session; read it first");
        let changed = denies("/p/a has changed on disk since it was read; read it again first");
        assert_eq!(harness.attempt(WRITE, "a").await, unread);
        assert_eq!(harness.attempt(READ, "b").await, Verdict::ALLOW);
        assert_eq!(harness.attempt(WRITE, "a").await, unread, "another file");
        assert_eq!(harness.attempt(READ, "./x/../a").await, Verdict::ALLOW);
        assert_eq!(harness.attempt(WRITE, "/p/a").await, Verdict::ALLOW);
        assert_eq!(harness.attempt(WRITE, "a").await, Verdict::ALLOW, "its own change is known");
        harness.change("a", "two").await;
        assert_eq!(harness.attempt(WRITE, "a").await, changed);
        assert_eq!(harness.attempt(READ, "a").await, Verdict::ALLOW);
        assert_eq!(harness.attempt(WRITE, "a").await, Verdict::ALLOW);
    }

    #[tokio::test]
    async fn a_search_does_not_count_as_reading() {
        let harness = Harness::new();
        for kind in ["grep", "glob", "list_dir"] {
            let search = Probe::new("Search", READ).kind(kind);
            let call = call_in(harness.env.as_ref(), search, json!({"reads": ["a"]})).await;
            assert_eq!(harness.gate.check(&call).await, Verdict::ALLOW);
            harness.gate.ran(&call, &execute_in(&harness.env, &call).await).await;
            assert!(is_denied(&harness.attempt(WRITE, "a").await), "{kind}");
        }
    }

    #[tokio::test]
    async fn a_new_file_may_be_created_and_then_changed() {
        let harness = Harness::new();
        assert_eq!(harness.attempt(WRITE, "new/file").await, Verdict::ALLOW);
        assert_eq!(harness.attempt(WRITE, "new/file").await, Verdict::ALLOW);
        harness.env.remove(Path::new("/p/new/file")).await.unwrap();
        assert_eq!(harness.attempt(WRITE, "new/file").await, Verdict::ALLOW, "it is gone");
    }

    #[tokio::test]
    async fn a_failed_or_raced_read_does_not_count() {
        let harness = Harness::new();
        let call = harness.call(READ, "a").await;
        assert_eq!(harness.gate.check(&call).await, Verdict::ALLOW);
        let execution = execute_in(&harness.env, &call).await;
        harness.change("a", "1").await;
        harness.gate.ran(&call, &execution).await;
        assert!(is_denied(&harness.attempt(WRITE, "a").await), "changed while it was read");

        let call = harness.call(READ, "missing").await;
        assert_eq!(harness.gate.check(&call).await, Verdict::ALLOW);
        let execution = execute_in(&harness.env, &call).await;
        assert!(execution.error.is_some());
        harness.change("missing", "now there").await;
        harness.gate.ran(&call, &execution).await;
        assert!(is_denied(&harness.attempt(WRITE, "missing").await));
    }

    #[tokio::test]
    async fn a_change_of_equal_length_is_noticed() {
        let harness = Harness::new();
        let long = "x".repeat(usize::try_from(BLOCK).unwrap() + 5);
        harness.change("long", &long).await;
        assert_eq!(harness.attempt(READ, "long").await, Verdict::ALLOW);
        harness.change("long", &format!("{}y", &long[1..])).await;
        assert!(is_denied(&harness.attempt(WRITE, "long").await));
    }

    /// Other environments resolve paths by name.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "another process changes the link")]
    async fn files_are_known_by_what_their_names_led_to() {
        use pintle_env::{LocalEnvironment, Output};
        use pintle_llm::ToolResult;

        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["known", "other"] {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::write(at(name).join("x"), "1").unwrap();
        }
        let lead_to = |name: &str| {
            let _missing = std::fs::remove_file(at("here"));
            std::os::unix::fs::symlink(name, at("here")).unwrap();
        };
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), []).unwrap());
        let gate = ReadBeforeWrite::new(Arc::clone(&env) as _);
        let held = async |name: &str, effect: Effect, path: &str| {
            let call = call_in(env.as_ref(), probe(effect), json!({ name: [path] })).await;
            call.hold(env.as_ref()).await.unwrap()
        };
        lead_to("known");
        let read = held("reads", READ, "here/x").await;
        assert_eq!(gate.check(&read).await, Verdict::ALLOW);
        lead_to("other");
        let result = ToolResult::new("call_1", "1", false);
        gate.ran(&read, &Execution::new(result, Output::from("1"))).await;
        for (path, is_known) in [("known/x", true), ("other/x", false)] {
            let write = held("writes", WRITE, path).await;
            assert_eq!(gate.check(&write).await == Verdict::ALLOW, is_known, "{path}");
        }
        let write = held("writes", WRITE, "here/x").await;
        lead_to("known");
        assert!(is_denied(&gate.check(&write).await), "the held file is not known");
    }
}
