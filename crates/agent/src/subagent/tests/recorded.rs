//! Subagents of resumed and forked sessions.

use super::*;
use crate::protocol::OutcomeStatus;

fn close(agent: &str) -> (&'static str, Value) {
    ("close_agent", json!({ "agent_id": agent }))
}

/// A recorded session with `agent_2`, which is closed, and `agent_3`, which sleeps. The first spawn fails: the number
/// in a name differs from the number of subagents.
fn original(profile: &ProviderProfile) -> Harness {
    let failing = ("spawn_agent", json!({ "task": "x", "working_dir": "no" }));
    let parent = model()
        .message(calls(&[failing, spawn("Answer."), spawn("Sleep.")]))
        .message(calls(&[wait("agent_2")]))
        .message(calls(&[close("agent_2")]))
        .message(calls(&[wait("agent_3")]));
    let models = ModelsByTask::new(parent)
        .subagent("Answer", model().answer("It is 42."))
        .subagent("Sleep", model().message(sleep_call()));
    Harness::of(profile.clone(), models, SessionConfig::default(), |builder| builder.record(true))
}

fn continued(profile: &ProviderProfile, change: impl FnOnce(SessionBuilder) -> SessionBuilder) -> Harness {
    let parent = model()
        .message(calls(&[wait("agent_2"), ("send_input", json!({ "agent_id": "agent_3", "message": "x" }))]))
        .message(calls(&[spawn("New.")]))
        .message(calls(&[wait("agent_4")]))
        .message(calls(&[wait("agent_9")]))
        .answer("I know.");
    let models = ModelsByTask::new(parent).subagent("New", model().answer("I am new."));
    Harness::of(profile.clone(), models, SessionConfig::default(), change)
}

fn anthropic() -> ProviderProfile {
    ProviderProfile::anthropic("claude-opus-4-6")
}

#[tokio::test]
async fn a_resumed_session_knows_its_subagents_as_closed() {
    let before = original(&anthropic());
    let mut events = before.session.tree_events();
    before.session.submit("go").detach();
    read_until(&mut events, |event| event.depth == 0 && kind(event) == "SUBAGENT_ENDED").await;
    read_until(
        &mut events,
        |event| matches!(&event.kind, EventKind::ToolCallStart { tool_name, .. } if tool_name == "wait"),
    )
    .await;
    let record = before.session.record().unwrap();
    drop(before);

    let mut after = continued(&anthropic(), |builder| builder.resume(record));
    let outcome = after.session.resumed().unwrap().await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "I know."));
    insta::assert_snapshot!(after.results()[5..].join("\n---\n"), @"
    success: false
    turns_used: 0
    reason: the program that ran it ended, and the agent with it; what it had changed is still there
    output:
    (no text)
    ---
    success: true
    turns_used: 1
    output:
    It is 42.
    ---
    Tool error (send_input): agent_3 is closed
    ---
    agent_id: agent_4
    status: running
    ---
    success: true
    turns_used: 1
    output:
    I am new.
    ---
    Tool error (wait): there is no subagent \"agent_9\"; there are: agent_2 (closed), agent_3 (closed), agent_4 (completed)
    ");
}

#[tokio::test]
async fn a_fork_cannot_reach_subagents_and_reuses_no_names() {
    let before = original(&anthropic());
    let mut events = before.session.tree_events();
    let run = before.session.submit("go");
    read_until(&mut events, |event| event.depth == 0 && kind(event) == "SUBAGENT_ENDED").await;
    let start = before.session.record().unwrap().fork(before.session.history().len()).unwrap().unwrap();
    drop(run);

    let after = continued(&anthropic(), |builder| builder.start(start));
    assert_eq!(after.session.submit("Go on.").await.unwrap().text, "I know.");
    let results = after.results();
    let [.., second, third, spawned, new, none] = &results[..] else { unreachable!() };
    let unreachable =
        "belongs to the session from which this one was forked, and cannot be reached from here";
    assert_eq!(*second, format!("Tool error (wait): agent_2 {unreachable}"));
    assert_eq!(*third, format!("Tool error (send_input): agent_3 {unreachable}"));
    assert_eq!(spawned, "agent_id: agent_4\nstatus: running");
    assert!(new.ends_with("I am new."), "{new}");
    assert!(none.ends_with("there are: agent_4 (completed)"), "{none}");
    // A fork of the fork continues the numbering.
    let again = after.session.fork(after.session.history().len()).await.unwrap();
    assert!(format!("{again:?}").contains("subagents_named: 4"), "{again:?}");
}

#[tokio::test]
async fn replaying_all_records_reproduces_the_tree_events() {
    let parent = model().message(calls(&[spawn("Middle.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let middle = model().message(calls(&[spawn("Low.")])).message(calls(&[wait("agent_1")])).answer("mid");
    let low = model().message(calls(&[("glob", json!({ "pattern": "*" }))])).answer("low");
    let models = ModelsByTask::new(parent).subagent("Middle.", middle).subagent("Low.", low);
    let config = SessionConfig::default().with_max_subagent_depth(2);
    let harness = Harness::with(models, config, |builder| builder.record(true));
    let (events, handle) = (harness.session.tree_events(), harness.session.handle());
    harness.session.submit("go").await.unwrap();
    harness.session.close().await;
    let mut tree_events = read_all(events).await;
    tree_events.retain(|event| event.offset.is_none());

    let records = handle.tree_records().unwrap();
    assert_eq!(records[0], handle.record().unwrap(), "the root's record is the first");
    let depths: Vec<u32> = records
        .iter()
        .map(|record| record.header.subagent.as_ref().map_or(0, |origin| origin.depth))
        .collect();
    assert_eq!(depths, [0, 1, 2]);
    let mut replayed = 0;
    for record in records {
        let mut text = Vec::new();
        record.write(&mut text).unwrap();
        let stored = crate::record::Record::read(text.as_slice()).unwrap();
        assert_eq!(stored, record);
        let id = record.header.session_id.clone();
        let of_session: Vec<SessionEvent> =
            tree_events.iter().filter(|event| event.session_id == id).cloned().collect();
        assert_eq!(stored.replay().unwrap().events, of_session);
        replayed += of_session.len();
    }
    assert_eq!(replayed, tree_events.len(), "each event is in one record");
}

#[tokio::test]
async fn a_subagent_can_be_resumed_from_its_own_record() {
    let before = original(&anthropic());
    let mut events = before.session.tree_events();
    before.session.submit("go").detach();
    read_until(&mut events, |event| event.depth == 0 && kind(event) == "SUBAGENT_ENDED").await;
    let all = before.session.tree_records().unwrap();
    let of = |name: &str| {
        let is_it = |record: &&crate::record::Record| {
            record.header.subagent.as_ref().is_some_and(|origin| origin.agent_id == name)
        };
        all.iter().find(is_it).unwrap().clone()
    };
    let (sleeper, root) = (of("agent_3"), before.session.id().clone());
    drop(before);
    let models = ModelsByTask::new(model()).subagent("Sleep", model().answer("I am awake."));
    let mut after =
        Harness::of(anthropic(), models, SessionConfig::default(), |builder| builder.resume(sleeper));
    let run = after.session.resumed();
    if let Some(run) = run {
        assert_eq!(run.await.unwrap().text, "I am awake.");
    }
    let mut events = after.session.events();
    let first = events.next().await.unwrap();
    assert_eq!((first.depth, first.parent), (1, Some(root)));
    after.session.close().await;
}

#[tokio::test]
async fn tree_records_require_recording() {
    let harness = Harness::new(ModelsByTask::new(model().answer("ok")));
    harness.session.submit("go").await.unwrap();
    assert!(matches!(harness.session.tree_records(), Err(crate::error::SessionError::NotRecorded)));
}
