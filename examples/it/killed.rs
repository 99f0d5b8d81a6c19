//! Tests of resuming after a program was killed at any point.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use pintle_agent::{OutcomeStatus, Record, SessionState};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;

use self::resume::{Workspace, resume as resume_session, start};

#[path = "../resume.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "its `main` is only used by the program")]
mod resume;

const TURNS: &str = r#"
name = "two effects"
[[turn]]
text = "First."
call = [{ tool = "shell", arguments = { command = "echo one >>effects; sleep 0.05" } }]
[[turn]]
call = [
    { tool = "read_file", arguments = { file_path = "effects" } },
    { tool = "shell", arguments = { command = "echo two >>effects; sleep 0.05" } },
]
[[turn]]
text = "Both."
"#;

fn lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
}

/// Workspace with a model server for both programs.
struct Harness {
    server: ScriptedServer,
    root: TempDir,
    workspace: Workspace,
}

impl Harness {
    async fn new() -> Self {
        let server =
            ScriptedServer::start(Script::parse(TURNS).unwrap(), ServerOptions::new()).await.unwrap();
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(root.path()).unwrap();
        Self { server, root, workspace }
    }

    fn url(&self) -> String {
        self.server.base_url(Dialect::AnthropicMessages)
    }

    fn start(&self) -> Child {
        let program = Path::new(env!("CARGO_BIN_EXE_pintle-examples"));
        start(program, self.root.path(), &self.url()).unwrap()
    }

    fn record(&self) -> Record {
        Record::read(std::fs::read(&self.workspace.journal).unwrap().as_slice()).unwrap()
    }

    /// Kills the first program once its journal has at least `wanted` lines.
    async fn kill_at(&self, wanted: usize) {
        let mut first = self.start();
        while lines(&self.workspace.journal) < wanted && first.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // It may have exited already.
        let _ = first.kill();
        first.wait().unwrap();
    }

    /// Resumes the session and checks the effects of both programs. Returns `false` if the first had completed.
    async fn resume_and_check(&self, wanted: usize) -> bool {
        if self.record().replay().unwrap().state == SessionState::Closed {
            return false;
        }
        let (outcome, interrupted) = resume_session(&self.workspace, &self.url()).await.unwrap();
        if let Some(outcome) = outcome {
            let done = (outcome.status, outcome.text.as_str());
            assert_eq!(done, (OutcomeStatus::Completed, "Both."), "killed at {wanted}");
            let effects =
                std::fs::read_to_string(self.workspace.directory.join("effects")).unwrap_or_default();
            for effect in ["one", "two"] {
                let times = effects.lines().filter(|line| *line == effect).count();
                assert!(times <= 1, "{effect} happened {times} times, killed at {wanted}");
                assert!(times == 1 || !interrupted.is_empty(), "{effect} is missing, killed at {wanted}");
            }
        }
        for request in self.server.requests() {
            assert!(request.violations.is_empty(), "killed at {wanted}: {:?}", request.violations);
        }
        assert_eq!(self.record().replay().unwrap().state, SessionState::Closed);
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_resume_after_a_kill_at_any_point() {
    let undisturbed = Harness::new().await;
    assert!(undisturbed.start().wait().unwrap().success());
    let all = lines(&undisturbed.workspace.journal);
    let mut resumed = 0;
    // Before the header and the first input are written there is nothing to resume.
    for wanted in 2..=all {
        let harness = Harness::new().await;
        harness.kill_at(wanted).await;
        resumed += usize::from(harness.resume_and_check(wanted).await);
        harness.server.shutdown().await;
    }
    assert!(resumed > 0, "none of {all} was killed before its end");
}
