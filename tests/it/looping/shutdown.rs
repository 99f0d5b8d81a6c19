//! Stopping: nothing runs on, and the history stays one that a provider accepts (appendix B).

use std::path::Path;
use std::time::Duration;

use pintle_agent::{EventKind, OutcomeStatus, SessionEvent, SessionState};
use pintle_testkit::Dialect;

use crate::lab::{Lab, in_each_dialect, kinds};

in_each_dialect![abort_ends_processes, interrupt_then_go_on, abort_while_the_model_writes];

const SLEEP: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo $$ > pid; trap '' TERM; sleep 600 & wait; sleep 600\", timeout_ms = 600000 }\n";

async fn until_running(lab: &Lab, run: &mut pintle_agent::Run) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        let started = matches!(event.kind, EventKind::ToolCallStart { .. });
        events.push(event);
        if started {
            break;
        }
    }
    while std::fs::read_to_string(lab.path("pid")).map_or(true, |pid| pid.trim().is_empty()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    events
}

fn runs(lab: &Lab) -> bool {
    Path::new("/proc").join(lab.read("pid").trim()).exists()
}

async fn abort_ends_processes(dialect: Dialect) {
    let lab = Lab::new(dialect, SLEEP).await;
    let mut run = lab.session.submit("Sleep");
    until_running(&lab, &mut run).await;
    assert!(runs(&lab));
    lab.session.handle().abort().unwrap();
    let mut rest = Vec::new();
    while let Some(event) = run.next().await {
        rest.push(event);
    }
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Aborted);
    let kinds = kinds(&rest);
    assert_eq!(kinds[kinds.len() - 3..], ["TOOL_CALL_END", "PROCESSING_END", "SESSION_END"]);
    assert!(!runs(&lab), "a command that ignores TERM is killed before the session ends");
    assert_eq!(lab.session.state(), SessionState::Closed);
    lab.finish().await;
}

async fn interrupt_then_go_on(dialect: Dialect) {
    let turns = format!(
        "{SLEEP}[[turn]]\ntext = \"Going on.\"\n[[turn.expect]]\ncall = 0\ncontains = \"Interrupted: the turn was stopped while this call ran\"\nis_error = true\n"
    );
    let lab = Lab::new(dialect, &turns).await;
    let mut run = lab.session.submit("Sleep");
    until_running(&lab, &mut run).await;
    lab.session.handle().interrupt().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    assert_eq!(lab.run("Never mind").await.1.text, "Going on.");
    lab.finish().await;
}

async fn abort_while_the_model_writes(dialect: Dialect) {
    let lab = Lab::new(
        dialect,
        &format!("[[turn]]\ntext = \"{}\"\npause_ms = 100\n", "word after word ".repeat(200)),
    )
    .await;
    let mut run = lab.session.submit("Write");
    while let Some(event) = run.next().await {
        if matches!(event.kind, EventKind::AssistantTextDelta { .. }) {
            break;
        }
    }
    lab.session.handle().abort().unwrap();
    let mut last = None;
    while let Some(event) = run.next().await {
        if let EventKind::AssistantTextEnd { interrupted, text } = &event.kind {
            assert!(*interrupted && !text.is_empty());
        }
        last = Some(event);
    }
    assert!(matches!(last.unwrap().kind, EventKind::SessionEnd { .. }));
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Aborted);
    lab.session.close().await;
}
