//! Processes that die around a change of a file, and resumption with a look at the file (guarantee G6).

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, LocalEnvironment, forward};
use pintle_tools::builtin::{ApplyPatch, EditFile, WriteFile};
use tokio::sync::Notify;

use super::*;

/// Environment in which the process dies around its first write: the write, or what follows it, never happens.
#[derive(Debug)]
struct Dying {
    inner: Arc<LocalEnvironment>,
    writes_first: bool,
    reached: Arc<Notify>,
}

#[async_trait]
impl ExecutionEnvironment for Dying {
    forward! {
        inner: working_directory, platform, os_version, initialize, cleanup, spawn, read, metadata, list, remove,
        rename, canonicalize
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        if self.writes_first {
            self.inner.write(path, bytes).await?;
        }
        self.reached.notify_one();
        std::future::pending().await
    }
}

/// Gate that asks about everything.
#[derive(Debug)]
struct AskForAll;

#[async_trait]
impl Gate for AskForAll {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        Verdict::ask("it writes")
    }
}

/// Approver that agrees, and counts how often.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<Mutex<usize>>);

#[async_trait]
impl Approver for Counted {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        *self.0.lock().unwrap() += 1;
        Decision::Approve
    }
}

struct Scene {
    harness: Harness,
    directory: tempfile::TempDir,
    env: Arc<LocalEnvironment>,
    approver: Counted,
}

impl Scene {
    fn new(tool: &str, arguments: &str) -> Self {
        let call = ToolCall::from_raw("c1", tool, arguments);
        let answers = vec![Message::new(Role::Assistant, vec![call.into()]), Message::assistant("done")];
        let directory = tempfile::tempdir().unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), []).unwrap());
        let scene = Self { harness: Harness::new(answers), directory, env, approver: Counted::default() };
        scene.write("one\n");
        scene
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("a")
    }

    #[expect(clippy::disallowed_methods, reason = "somebody else writes")]
    fn write(&self, content: &str) {
        std::fs::write(self.path(), content).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "the test looks at the file itself")]
    fn read(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn builder(&self, env: Arc<dyn ExecutionEnvironment>) -> SessionBuilder {
        let client =
            Client::builder().shared_provider(Arc::clone(&self.harness.adapter) as Arc<dyn ProviderAdapter>);
        let mut registry = ToolRegistry::new();
        registry.register(WriteFile::new()).unwrap();
        registry.register(EditFile::new()).unwrap();
        registry.register(ApplyPatch::new()).unwrap();
        let mut profile = ProviderProfile::anthropic("claude-opus-4-6");
        profile.tool_registry = registry;
        Session::builder(client.build().unwrap(), profile, env)
            .gate(AskForAll)
            .approver(self.approver.clone())
            .record(true)
    }

    /// Runs a session until its process dies before or after the write, and returns its record.
    async fn die(&self, writes_first: bool) -> Record {
        let reached = Arc::new(Notify::new());
        let env = Dying { inner: Arc::clone(&self.env), writes_first, reached: Arc::clone(&reached) };
        let session = self.builder(Arc::new(env)).build().unwrap();
        let run = session.submit("go");
        reached.notified().await;
        let record = session.record().unwrap();
        drop((run, session));
        record
    }

    /// Resumes, and returns the result that the model reads.
    async fn resume(&self, record: Record) -> (bool, String) {
        let mut session = self.builder(self.env.clone()).resume(record).build().unwrap();
        assert_eq!(session.resumed().unwrap().await.unwrap().text, "done");
        let history = session.history();
        let result = history.iter().flat_map(|turn| turn.item.results()).next().unwrap();
        session.record().unwrap().replay().unwrap();
        (result.is_error, result.text().replace(self.directory.path().to_str().unwrap(), "DIR"))
    }

    fn decisions(&self) -> usize {
        *self.approver.0.lock().unwrap()
    }
}

fn scenes() -> Vec<Scene> {
    vec![
        Scene::new("write_file", r#"{"file_path": "a", "content": "two\n"}"#),
        Scene::new("edit_file", r#"{"file_path": "a", "old_string": "one", "new_string": "two"}"#),
        Scene::new(
            "apply_patch",
            r#"{"patch": "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** End Patch"}"#,
        ),
    ]
}

#[tokio::test]
async fn a_change_that_was_not_made_is_made_once_under_the_same_decision() {
    for scene in scenes() {
        let record = scene.die(false).await;
        assert_eq!(scene.read(), "one\n");
        let (is_error, result) = scene.resume(record).await;
        assert!(!is_error, "{result}");
        assert_eq!((scene.read().as_str(), scene.decisions()), ("two\n", 1), "{result}");
    }
}

#[tokio::test]
async fn a_change_that_was_made_is_not_made_again() {
    for scene in scenes() {
        let record = scene.die(true).await;
        let before = scene.env.metadata(&scene.path()).await.unwrap().identity;
        let (is_error, result) = scene.resume(record).await;
        assert_eq!(
            result,
            "The program that ran this call ended before it could report, but the call had done its work. Changed: DIR/a."
        );
        assert_eq!((is_error, scene.read().as_str(), scene.decisions()), (false, "two\n", 1));
        assert_eq!(
            scene.env.metadata(&scene.path()).await.unwrap().identity,
            before,
            "nobody wrote it again"
        );
    }
}

#[tokio::test]
async fn what_others_wrote_since_is_left_alone() {
    // The same content, written again, is somebody else's work, too.
    for (content, writes_first) in
        [("theirs\n", false), ("theirs\n", true), ("one\n", false), ("one\n", true)]
    {
        for scene in scenes() {
            let record = scene.die(writes_first).await;
            scene.write(content);
            let (is_error, result) = scene.resume(record).await;
            assert!(
                is_error && result.contains("Possibly changed by another process since: DIR/a."),
                "{result}"
            );
            assert_eq!((scene.read().as_str(), scene.decisions()), (content, 1));
        }
    }
}

/// A call that dies before it declares anything has changed nothing.
#[tokio::test]
async fn a_start_without_a_declaration_runs_again() {
    for scene in scenes() {
        let record = scene.die(false).await;
        let declared =
            |entry: &Arc<RecordEntry>| matches!(entry.input.kind, InputKind::ChangesDeclared { .. });
        let cut = record.entries.iter().position(declared).unwrap();
        let (is_error, _) = scene.resume(record.before(cut)).await;
        assert_eq!((is_error, scene.read().as_str(), scene.decisions()), (false, "two\n", 1));
    }
}
