//! A program that is killed at any moment, and the one that goes on.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use pintle_agent::{OutcomeStatus, Record, SessionState};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;

use self::resume::{Place, go_on, start};

#[path = "../resume.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "its `main` is run as a program")]
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

/// A place of its own, with a server for the models of both programs.
struct Lab {
    server: ScriptedServer,
    root: TempDir,
    place: Place,
}

impl Lab {
    async fn new() -> Self {
        let server =
            ScriptedServer::start(Script::parse(TURNS).unwrap(), ServerOptions::new()).await.unwrap();
        let root = tempfile::tempdir().unwrap();
        let place = Place::below(root.path()).unwrap();
        Self { server, root, place }
    }

    fn url(&self) -> String {
        self.server.base_url(Dialect::AnthropicMessages)
    }

    fn start(&self) -> Child {
        let program = Path::new(env!("CARGO_BIN_EXE_pintle-examples"));
        start(program, self.root.path(), &self.url()).unwrap()
    }

    fn record(&self) -> Record {
        Record::read(std::fs::read(&self.place.journal).unwrap().as_slice()).unwrap()
    }

    /// Kills the first program when its journal has so many lines, or soon after.
    async fn kill_at(&self, wanted: usize) {
        let mut first = self.start();
        while lines(&self.place.journal) < wanted && first.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // It may have gone by itself.
        let _ = first.kill();
        first.wait().unwrap();
    }

    /// Goes on, and looks at what both have done. `false` if the first had come to its end.
    async fn goes_on(&self, wanted: usize) -> bool {
        if self.record().replay().unwrap().state == SessionState::Closed {
            return false;
        }
        let (outcome, interrupted) = go_on(&self.place, &self.url()).await.unwrap();
        if let Some(outcome) = outcome {
            let done = (outcome.status, outcome.text.as_str());
            assert_eq!(done, (OutcomeStatus::Completed, "Both."), "killed at {wanted}");
            let effects = std::fs::read_to_string(self.place.folder.join("effects")).unwrap_or_default();
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
async fn whenever_a_program_is_killed_another_goes_on_and_nothing_happens_twice() {
    let undisturbed = Lab::new().await;
    assert!(undisturbed.start().wait().unwrap().success());
    let all = lines(&undisturbed.place.journal);
    let mut gone_on = 0;
    // The header and the first input are there before the session is: there is something to go on with.
    for wanted in 2..=all {
        let lab = Lab::new().await;
        lab.kill_at(wanted).await;
        gone_on += usize::from(lab.goes_on(wanted).await);
        lab.server.shutdown().await;
    }
    assert!(gone_on > 0, "none of {all} was killed before its end");
}
