//! Interrupting and closing subagents with their parent.

use super::*;
use crate::error::RunError;
use crate::protocol::{OutcomeStatus, SessionState};

/// A parent that waits for a subagent which answers at once.
fn answering() -> ModelsByTask {
    let parent = model().message(calls(&[spawn("Sleep.")])).message(calls(&[wait("agent_1")]));
    let parent = parent.message(calls(&[wait("agent_1")])).answer("It was stopped.");
    ModelsByTask::new(parent)
        .subagent("Sleep", model().message(text_and_calls("I sleep now.", &[])).message(sleep_call()))
}

/// A parent that waits for a subagent which sleeps.
fn sleeping_child() -> ModelsByTask {
    let parent = model().message(calls(&[spawn("Sleep.")])).message(calls(&[wait("agent_1")]));
    let parent = parent.message(calls(&[wait("agent_1")])).answer("It was stopped.");
    let sleep = [("shell", json!({ "command": "sleep 1000", "timeout_ms": 600_000 }))];
    ModelsByTask::new(parent).subagent("Sleep", model().message(text_and_calls("I sleep now.", &sleep)))
}

#[tokio::test]
async fn closing_a_session_closes_its_subagents_first() {
    let harness = Harness::new(sleeping_child());
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    read_until(&mut events, is_subagent_call).await;
    harness.session.close().await;
    assert!(matches!(run.await, Err(RunError::Closed { outcome: Some(_) })));
    assert_eq!(harness.env.running(), 0, "no process is left");
    let kinds: Vec<String> =
        read_all(events).await.iter().map(|event| format!("{} {}", event.depth, kind(event))).collect();
    let ends = ["1 SESSION_END", "0 SUBAGENT_ENDED", "0 PROCESSING_END", "0 SESSION_END"];
    assert_eq!(kinds[kinds.len() - 4..], ends, "{kinds:?}");
}

#[tokio::test]
async fn an_interrupt_stops_subagents_and_keeps_them_open() {
    let harness = Harness::new(sleeping_child());
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    read_until(&mut events, is_subagent_call).await;
    harness.session.handle().stop_turn().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    read_until(&mut events, |event| event.depth == 1 && kind(event) == "PROCESSING_END").await;
    assert_eq!((harness.env.running(), harness.session.state()), (0, SessionState::Idle));
    assert_eq!(harness.session.submit("What became of it?").await.unwrap().text, "It was stopped.");
    assert_eq!(
        harness.results()[2],
        "success: false\nturns_used: 1\nreason: it was interrupted\noutput:\nI sleep now."
    );
}

#[tokio::test]
async fn dropping_a_run_interrupts_its_subagents() {
    let harness = Harness::new(sleeping_child());
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    read_until(&mut events, is_subagent_call).await;
    drop(run);
    read_until(&mut events, |event| event.depth == 1 && kind(event) == "PROCESSING_END").await;
    assert_eq!(harness.env.running(), 0);
}

#[tokio::test]
async fn an_idle_session_interrupts_running_subagents() {
    let parent = model().message(calls(&[spawn("Sleep.")])).answer("It works on.");
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Sleep", model().message(sleep_call())));
    let mut events = harness.session.tree_events();
    assert_eq!(harness.session.submit("go").await.unwrap().text, "It works on.");
    read_until(&mut events, is_subagent_call).await;
    assert_eq!(harness.env.running(), 1, "the end of a turn does not stop subagents");
    harness.session.handle().stop_turn().unwrap();
    read_until(&mut events, |event| event.depth == 1 && kind(event) == "PROCESSING_END").await;
    assert_eq!(harness.env.running(), 0);
}

#[tokio::test]
async fn dropping_a_session_aborts_subagents_and_streams() {
    let harness = Harness::new(sleeping_child());
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    let (_, event) = read_until(&mut events, is_subagent_call).await;
    let child = harness.session.handle().of_session(&event.session_id).unwrap();
    let Harness { session, env, .. } = harness;
    drop(session);
    read_all(events).await;
    assert!(matches!(run.await, Err(RunError::Closed { outcome: None })));
    while child.steer("x").await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(env.running(), 0);
}

#[tokio::test]
async fn close_agent_ends_a_running_subagent() {
    let parent = model()
        .message(calls(&[spawn("Sleep.")]))
        .message(calls(&[("meet", json!({}))]))
        .message(calls(&[("close_agent", json!({ "agent_id": "agent_1" }))]))
        .message(calls(&[wait("agent_1")]))
        .answer("ok");
    let sleep = [("shell", json!({ "command": "sleep 1000", "timeout_ms": 600_000 }))];
    let barrier = Arc::new(Barrier::new(2));
    let profile =
        ProviderProfile::anthropic("claude-opus-4-6").with_tool(BarrierTool(Arc::clone(&barrier))).unwrap();
    let models =
        ModelsByTask::new(parent).subagent("Sleep", model().message(text_and_calls("I sleep now.", &sleep)));
    let harness = Harness::of(profile, models, SessionConfig::default(), |builder| builder);
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    read_until(&mut events, |event| is_subagent_call(event) && kind(event) == "TOOL_CALL_START").await;
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    assert_eq!(harness.env.running(), 0);
    let (before, _) = read_until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
    assert!(before.iter().any(|event| event.depth == 1 && kind(event) == "SESSION_END"));
    assert_eq!(
        harness.results()[2..],
        [
            "agent_1 is closed. Final status: failed",
            "success: false\nturns_used: 1\nreason: it was closed\noutput:\nI sleep now.",
        ]
    );
}

#[tokio::test]
async fn subagents_survive_the_end_of_a_turn() {
    let harness = Harness::new(answering());
    let outcome = harness.session.submit("go").await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    assert!(harness.results()[1].ends_with("I sleep now."));
}

/// An authentication error closes the session of the subagent.
#[tokio::test]
async fn a_subagent_whose_session_fails_is_closed() {
    let parent = model()
        .message(calls(&[spawn("Fail.")]))
        .message(calls(&[wait("agent_1")]))
        .message(calls(&[("meet", json!({}))]))
        .message(calls(&[("send_input", json!({ "agent_id": "agent_1", "message": "Again." }))]))
        .answer("ok");
    let child = model().failure(Error::new(ErrorKind::Authentication, "no such key"));
    let barrier = Arc::new(Barrier::new(2));
    let profile =
        ProviderProfile::anthropic("claude-opus-4-6").with_tool(BarrierTool(Arc::clone(&barrier))).unwrap();
    let harness = Harness::of(
        profile,
        ModelsByTask::new(parent).subagent("Fail", child),
        SessionConfig::default(),
        |builder| builder,
    );
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    // The parent is still running.
    let (before, ended) = read_until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
    assert!(before.iter().any(|event| event.depth == 1 && kind(event) == "SESSION_END"));
    assert!(
        harness.session.handle().of_session(&before.last().unwrap().session_id).is_none() || ended.depth == 0
    );
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    let results = harness.results();
    assert!(results[1].starts_with("success: false\nturns_used: 0\nreason: it failed: "), "{results:?}");
    assert_eq!(results[3], "Tool error (send_input): agent_1 is closed");
}

#[tokio::test]
async fn an_aborted_subagent_is_closed() {
    let parent = model().message(calls(&[spawn("Sleep."), spawn("Rest.")])).answer("They work on.");
    let parent = parent.message(calls(&[wait("agent_1"), wait("agent_2")])).answer("ok");
    let models = ModelsByTask::new(parent)
        .subagent("Sleep", model().message(sleep_call()))
        .subagent("Rest", model().answer("Done."));
    let harness = Harness::new(models);
    let mut events = harness.session.tree_events();
    harness.session.submit("go").await.unwrap();
    let (mut running, mut idle) = (None, None);
    while running.is_none() || idle.is_none() {
        let (_, event) = read_until(&mut events, |event| event.depth == 1).await;
        if is_subagent_call(&event) {
            running = Some(event.session_id);
        } else if kind(&event) == "PROCESSING_END" {
            idle = Some(event.session_id);
        }
    }
    for id in [running, idle].into_iter().flatten() {
        harness.session.handle().of_session(&id).unwrap().close().unwrap();
        read_until(
            &mut events,
            |event| matches!(&event.kind, EventKind::SubagentEnded { child, .. } if *child == id),
        )
        .await;
        assert!(harness.session.handle().of_session(&id).is_none());
    }
    assert_eq!(harness.env.running(), 0);
    harness.session.submit("What became of them?").await.unwrap();
    assert_eq!(
        harness.results()[2..],
        [
            "success: false\nturns_used: 1\nreason: it was closed\noutput:\n(no text)",
            "success: true\nturns_used: 1\noutput:\nDone.",
        ]
    );
}
