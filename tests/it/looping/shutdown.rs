//! Stopping: no process is left, and the history is still valid for the provider (appendix B).

use std::path::Path;
use std::time::Duration;

use pintle_agent::{EventKind, OutcomeStatus, RunError, SessionEvent, SessionState};
use pintle_testkit::Dialect;

use crate::harness::{Harness, in_each_dialect, kinds};

in_each_dialect![abort_ends_processes, interrupt_then_continue, abort_while_the_model_writes];

const SLEEP: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo $$ > pid; trap '' TERM; sleep 600 & wait; sleep 600\", timeout_ms = 600000 }\n";

async fn until_running(harness: &Harness, run: &mut pintle_agent::Run) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        let started = matches!(event.kind, EventKind::ToolCallStart { .. });
        events.push(event);
        if started {
            break;
        }
    }
    while std::fs::read_to_string(harness.path("pid")).map_or(true, |pid| pid.trim().is_empty()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    events
}

fn runs(harness: &Harness) -> bool {
    Path::new("/proc").join(harness.read("pid").trim()).exists()
}

async fn abort_ends_processes(dialect: Dialect) {
    let harness = Harness::new(dialect, SLEEP).await;
    let mut run = harness.session.submit("Sleep");
    until_running(&harness, &mut run).await;
    assert!(runs(&harness));
    harness.session.handle().close().unwrap();
    let mut rest = Vec::new();
    while let Some(event) = run.next().await {
        rest.push(event);
    }
    assert!(matches!(run.await, Err(RunError::Closed { outcome: Some(_) })));
    let kinds = kinds(&rest);
    assert_eq!(kinds[kinds.len() - 3..], ["TOOL_CALL_END", "PROCESSING_END", "SESSION_END"]);
    assert!(!runs(&harness), "a command that ignores TERM is killed before the session ends");
    assert_eq!(harness.session.state(), SessionState::Closed);
    harness.finish().await;
}

async fn interrupt_then_continue(dialect: Dialect) {
    let turns = format!(
        "{SLEEP}[[turn]]\ntext = \"Going on.\"\n[[turn.expect]]\ncall = 0\ncontains = \"Interrupted: the turn was stopped while this call ran\"\nis_error = true\n"
    );
    let harness = Harness::new(dialect, &turns).await;
    let mut run = harness.session.submit("Sleep");
    until_running(&harness, &mut run).await;
    harness.session.handle().stop_turn().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    assert_eq!(harness.run("Never mind").await.1.text, "Going on.");
    harness.finish().await;
}

async fn abort_while_the_model_writes(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        &format!("[[turn]]\ntext = \"{}\"\npause_ms = 100\n", "word after word ".repeat(200)),
    )
    .await;
    let mut run = harness.session.submit("Write");
    while let Some(event) = run.next().await {
        if matches!(event.kind, EventKind::AssistantTextDelta { .. }) {
            break;
        }
    }
    harness.session.handle().close().unwrap();
    let mut last = None;
    while let Some(event) = run.next().await {
        if let EventKind::AssistantTextEnd { interrupted, text } = &event.kind {
            assert!(*interrupted && !text.is_empty());
        }
        last = Some(event);
    }
    assert!(matches!(last.unwrap().kind, EventKind::SessionEnd { .. }));
    assert!(matches!(run.await, Err(RunError::Closed { outcome: Some(_) })));
    harness.session.close().await;
}
