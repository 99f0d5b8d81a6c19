//! Subagents of sessions whose program has ended, and of sessions that were forked.

use super::*;
use crate::protocol::OutcomeStatus;

fn close(agent: &str) -> (&'static str, Value) {
    ("close_agent", json!({ "agent_id": agent }))
}

/// A parent whose second spawning fails, so that names and numbers of subagents part. The one that it has last sleeps.
fn first_part(profile: &ProviderProfile) -> Bench {
    let lost = ("spawn_agent", json!({ "task": "x", "working_dir": "no" }));
    let parent = model()
        .message(calling(&[lost, spawn("Answer."), spawn("Sleep.")]))
        .message(calling(&[wait("agent_2")]))
        .message(calling(&[close("agent_2")]))
        .message(calling(&[wait("agent_3")]));
    let cast = Cast::new(parent)
        .part("Answer", model().answer("It is 42."))
        .part("Sleep", model().message(sleeping()));
    Bench::of(profile.clone(), cast, SessionConfig::default(), |builder| builder.record(true))
}

fn second_part(profile: &ProviderProfile, change: impl FnOnce(SessionBuilder) -> SessionBuilder) -> Bench {
    let parent = model()
        .message(calling(&[
            wait("agent_2"),
            ("send_input", json!({ "agent_id": "agent_3", "message": "x" })),
        ]))
        .message(calling(&[spawn("New.")]))
        .message(calling(&[wait("agent_4")]))
        .message(calling(&[wait("agent_9")]))
        .answer("I know.");
    let cast = Cast::new(parent).part("New", model().answer("I am new."));
    Bench::of(profile.clone(), cast, SessionConfig::default(), change)
}

fn anthropic() -> ProviderProfile {
    ProviderProfile::anthropic("claude-opus-4-6")
}

#[tokio::test]
async fn after_the_death_of_its_host_a_model_is_told_what_became_of_its_subagents() {
    let before = first_part(&anthropic());
    let mut events = before.session.tree_events();
    before.session.submit("go").detach();
    until(&mut events, |event| event.depth == 0 && kind(event) == "SUBAGENT_ENDED").await;
    until(
        &mut events,
        |event| matches!(&event.kind, EventKind::ToolCallStart { tool_name, .. } if tool_name == "wait"),
    )
    .await;
    let record = before.session.record().unwrap();
    drop(before);

    let mut after = second_part(&anthropic(), |builder| builder.resume(record));
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
    (The program that ran this agent has ended since, and its last message was not kept.)
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
async fn a_fork_has_no_hold_of_the_subagents_in_its_history_and_gives_no_name_twice() {
    let before = first_part(&anthropic());
    let mut events = before.session.tree_events();
    let run = before.session.submit("go");
    until(&mut events, |event| event.depth == 0 && kind(event) == "SUBAGENT_ENDED").await;
    let start = before.session.record().unwrap().fork(before.session.history().len()).unwrap().unwrap();
    drop(run);

    let after = second_part(&anthropic(), |builder| builder.start(start));
    assert_eq!(after.session.submit("Go on.").await.unwrap().text, "I know.");
    let results = after.results();
    let [.., second, third, spawned, new, none] = &results[..] else { unreachable!() };
    let elsewhere = "belongs to the session from which this one was forked, and cannot be reached from here";
    assert_eq!(*second, format!("Tool error (wait): agent_2 {elsewhere}"));
    assert_eq!(*third, format!("Tool error (send_input): agent_3 {elsewhere}"));
    assert_eq!(spawned, "agent_id: agent_4\nstatus: running");
    assert!(new.ends_with("I am new."), "{new}");
    assert!(none.ends_with("there are: agent_4 (completed)"), "{none}");
    // And so in what is made of the fork in its turn.
    let again = after.session.fork(after.session.history().len()).await.unwrap();
    assert!(format!("{again:?}").contains("subagents_named: 4"), "{again:?}");
}

#[tokio::test]
async fn the_records_of_a_tree_give_the_events_of_the_tree_again() {
    let parent =
        model().message(calling(&[spawn("Middle.")])).message(calling(&[wait("agent_1")])).answer("ok");
    let middle =
        model().message(calling(&[spawn("Low.")])).message(calling(&[wait("agent_1")])).answer("mid");
    let low = model().message(calling(&[("glob", json!({ "pattern": "*" }))])).answer("low");
    let cast = Cast::new(parent).part("Middle.", middle).part("Low.", low);
    let config = SessionConfig::default().with_max_subagent_depth(2);
    let bench = Bench::with(cast, config, |builder| builder.record(true));
    let (events, handle) = (bench.session.tree_events(), bench.session.handle());
    bench.session.submit("go").await.unwrap();
    bench.session.close().await;
    let mut told = rest(events).await;
    told.retain(|event| event.offset.is_none());

    let records = handle.tree_records().unwrap();
    assert_eq!(records[0], handle.record().unwrap(), "its own is the first");
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
            told.iter().filter(|event| event.session_id == id).cloned().collect();
        assert_eq!(stored.replay().unwrap().events, of_session);
        replayed += of_session.len();
    }
    assert_eq!(replayed, told.len(), "each event of the tree is in one of them");
}

/// A host may go on with the work of a subagent by itself, and what it is told then continues what it was told.
#[tokio::test]
async fn a_subagent_can_be_gone_on_with_from_its_own_record() {
    let before = first_part(&anthropic());
    let mut events = before.session.tree_events();
    before.session.submit("go").detach();
    until(&mut events, |event| event.depth == 0 && kind(event) == "SUBAGENT_ENDED").await;
    let all = before.session.tree_records().unwrap();
    let of = |name: &str| {
        let is_it = |record: &&crate::record::Record| {
            record.header.subagent.as_ref().is_some_and(|origin| origin.agent_id == name)
        };
        all.iter().find(is_it).unwrap().clone()
    };
    let (sleeper, root) = (of("agent_3"), before.session.id().clone());
    drop(before);
    let cast = Cast::new(model()).part("Sleep", model().answer("I am awake."));
    let mut after = Bench::of(anthropic(), cast, SessionConfig::default(), |builder| builder.resume(sleeper));
    let run = after.session.resumed();
    if let Some(run) = run {
        assert_eq!(run.await.unwrap().text, "I am awake.");
    }
    let mut told = after.session.events();
    let first = told.next().await.unwrap();
    assert_eq!((first.depth, first.parent), (1, Some(root)));
    after.session.close().await;
}

#[tokio::test]
async fn without_a_record_there_is_none_of_the_tree() {
    let bench = Bench::new(Cast::new(model().answer("ok")));
    bench.session.submit("go").await.unwrap();
    assert!(matches!(bench.session.tree_records(), Err(crate::error::SessionError::NotRecorded)));
}
