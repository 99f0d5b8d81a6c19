//! Subagents end with their parent, and stop with it.

use super::*;
use crate::error::SessionError;
use crate::protocol::{OutcomeStatus, SessionState};

/// A parent that waits for a subagent which sleeps.
fn waiting() -> Cast {
    let parent = model().message(calling(&[spawn("Sleep.")])).message(calling(&[wait("agent_1")]));
    let parent = parent.message(calling(&[wait("agent_1")])).answer("It was stopped.");
    Cast::new(parent).part("Sleep", model().message(saying("I sleep now.", &[])).message(sleeping()))
}

fn asleep() -> Cast {
    let parent = model().message(calling(&[spawn("Sleep.")])).message(calling(&[wait("agent_1")]));
    let parent = parent.message(calling(&[wait("agent_1")])).answer("It was stopped.");
    let nap = [("shell", json!({ "command": "sleep 1000", "timeout_ms": 600_000 }))];
    Cast::new(parent).part("Sleep", model().message(saying("I sleep now.", &nap)))
}

#[tokio::test]
async fn closing_the_parent_closes_its_subagents_before_its_own_end() {
    let bench = Bench::new(asleep());
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    until(&mut events, works).await;
    bench.session.close().await;
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Aborted);
    assert_eq!(bench.env.running(), 0, "nothing runs on");
    let told: Vec<String> =
        rest(events).await.iter().map(|event| format!("{} {}", event.depth, kind(event))).collect();
    let ends = ["1 SESSION_END", "0 SUBAGENT_ENDED", "0 PROCESSING_END", "0 SESSION_END"];
    assert_eq!(told[told.len() - 4..], ends, "{told:?}");
}

#[tokio::test]
async fn an_interrupt_stops_the_work_of_subagents_and_keeps_them() {
    let bench = Bench::new(asleep());
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    until(&mut events, works).await;
    bench.session.handle().interrupt().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    until(&mut events, |event| event.depth == 1 && kind(event) == "PROCESSING_END").await;
    assert_eq!((bench.env.running(), bench.session.state()), (0, SessionState::Idle));
    assert_eq!(bench.session.submit("What became of it?").await.unwrap().text, "It was stopped.");
    assert_eq!(
        bench.results()[2],
        "success: false\nturns_used: 1\nreason: it was interrupted\noutput:\nI sleep now."
    );
}

#[tokio::test]
async fn dropping_the_run_stops_the_subagents_of_its_turn() {
    let bench = Bench::new(asleep());
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    until(&mut events, works).await;
    drop(run);
    until(&mut events, |event| event.depth == 1 && kind(event) == "PROCESSING_END").await;
    assert_eq!(bench.env.running(), 0);
}

#[tokio::test]
async fn an_idle_parent_interrupts_those_that_work_on() {
    let parent = model().message(calling(&[spawn("Sleep.")])).answer("It works on.");
    let bench = Bench::new(Cast::new(parent).part("Sleep", model().message(sleeping())));
    let mut events = bench.session.tree_events();
    assert_eq!(bench.session.submit("go").await.unwrap().text, "It works on.");
    until(&mut events, works).await;
    assert_eq!(bench.env.running(), 1, "a turn's end does not end its subagents");
    bench.session.handle().interrupt().unwrap();
    until(&mut events, |event| event.depth == 1 && kind(event) == "PROCESSING_END").await;
    assert_eq!(bench.env.running(), 0);
}

#[tokio::test]
async fn dropping_the_session_ends_its_subagents_and_every_stream() {
    let bench = Bench::new(asleep());
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    let (_, event) = until(&mut events, works).await;
    let child = bench.session.handle().of_session(&event.session_id).unwrap();
    let Bench { session, env, .. } = bench;
    drop(session);
    rest(events).await;
    assert!(matches!(run.await, Err(SessionError::Closed)));
    while child.steer("x").is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(env.running(), 0);
}

#[tokio::test]
async fn close_agent_ends_one_at_work() {
    let parent = model()
        .message(calling(&[spawn("Sleep.")]))
        .message(calling(&[("meet", json!({}))]))
        .message(calling(&[("close_agent", json!({ "agent_id": "agent_1" }))]))
        .message(calling(&[wait("agent_1")]))
        .answer("ok");
    let nap = [("shell", json!({ "command": "sleep 1000", "timeout_ms": 600_000 }))];
    let barrier = Arc::new(Barrier::new(2));
    let profile =
        ProviderProfile::anthropic("claude-opus-4-6").with_tool(Meet(Arc::clone(&barrier))).unwrap();
    let cast = Cast::new(parent).part("Sleep", model().message(saying("I sleep now.", &nap)));
    let bench = Bench::of(profile, cast, SessionConfig::default(), |builder| builder);
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    until(&mut events, |event| works(event) && kind(event) == "TOOL_CALL_START").await;
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    assert_eq!(bench.env.running(), 0);
    let (before, _) = until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
    assert!(before.iter().any(|event| event.depth == 1 && kind(event) == "SESSION_END"));
    assert_eq!(
        bench.results()[2..],
        [
            "agent_1 is closed. Final status: failed",
            "success: false\nturns_used: 1\nreason: it was closed\noutput:\nI sleep now.",
        ]
    );
}

#[tokio::test]
async fn a_parent_that_finishes_leaves_its_subagents_to_the_next_turn() {
    let bench = Bench::new(waiting());
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    assert!(bench.results()[1].ends_with("I sleep now."));
}

/// A subagent whose session has closed by itself, as after an error that nobody can mend.
#[tokio::test]
async fn one_whose_session_ends_by_itself_is_closed() {
    let parent = model()
        .message(calling(&[spawn("Fail.")]))
        .message(calling(&[wait("agent_1")]))
        .message(calling(&[("meet", json!({}))]))
        .message(calling(&[("send_input", json!({ "agent_id": "agent_1", "message": "Again." }))]))
        .answer("ok");
    let child = model().failure(Error::new(ErrorKind::Authentication, "no such key"));
    let barrier = Arc::new(Barrier::new(2));
    let profile =
        ProviderProfile::anthropic("claude-opus-4-6").with_tool(Meet(Arc::clone(&barrier))).unwrap();
    let bench =
        Bench::of(profile, Cast::new(parent).part("Fail", child), SessionConfig::default(), |builder| {
            builder
        });
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    // Its end is told while its parent works on.
    let (before, ended) = until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
    assert!(before.iter().any(|event| event.depth == 1 && kind(event) == "SESSION_END"));
    assert!(
        bench.session.handle().of_session(&before.last().unwrap().session_id).is_none() || ended.depth == 0
    );
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    let results = bench.results();
    assert!(results[1].starts_with("success: false\nturns_used: 0\nreason: it failed: "), "{results:?}");
    assert_eq!(results[3], "Tool error (send_input): agent_1 is closed");
}

#[tokio::test]
async fn one_that_a_host_aborts_is_closed_at_work_and_at_rest() {
    let parent = model().message(calling(&[spawn("Sleep."), spawn("Rest.")])).answer("They work on.");
    let parent = parent.message(calling(&[wait("agent_1"), wait("agent_2")])).answer("ok");
    let cast =
        Cast::new(parent).part("Sleep", model().message(sleeping())).part("Rest", model().answer("Done."));
    let bench = Bench::new(cast);
    let mut events = bench.session.tree_events();
    bench.session.submit("go").await.unwrap();
    let (mut at_work, mut at_rest) = (None, None);
    while at_work.is_none() || at_rest.is_none() {
        let (_, event) = until(&mut events, |event| event.depth == 1).await;
        if works(&event) {
            at_work = Some(event.session_id);
        } else if kind(&event) == "PROCESSING_END" {
            at_rest = Some(event.session_id);
        }
    }
    for id in [at_work, at_rest].into_iter().flatten() {
        bench.session.handle().of_session(&id).unwrap().abort().unwrap();
        until(
            &mut events,
            |event| matches!(&event.kind, EventKind::SubagentEnded { child, .. } if *child == id),
        )
        .await;
        assert!(bench.session.handle().of_session(&id).is_none());
    }
    assert_eq!(bench.env.running(), 0);
    bench.session.submit("What became of them?").await.unwrap();
    assert_eq!(
        bench.results()[2..],
        [
            "success: false\nturns_used: 1\nreason: it was closed\noutput:\n(no text)",
            "success: true\nturns_used: 1\noutput:\nDone.",
        ]
    );
}
