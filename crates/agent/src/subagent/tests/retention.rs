//! Retention of the events of ended subagents.

use super::*;
use crate::profile::Toolset;
use crate::protocol::{SessionId, SubagentLimits};
use crate::subagent::{Lineage, Subagents};

/// A session that spawns, awaits and closes `count` subagents in turn.
fn sequential(count: usize) -> Harness {
    let parent = (1..=count).fold(model(), |parent, number| {
        let name = format!("agent_{number}");
        parent
            .message(calls(&[spawn("Look.")]))
            .message(calls(&[wait(&name)]))
            .message(calls(&[("close_agent", json!({ "agent_id": name }))]))
    });
    let child = (0..count).fold(model(), |child, _| child.answer("Nothing."));
    let mut config = SessionConfig::default();
    config.limits.enable_loop_detection = false;
    Harness::with(ModelsByTask::new(parent.answer("ok")).subagent("Look", child), config, |builder| builder)
}

fn child_starts(events: &[SessionEvent]) -> usize {
    events.iter().filter(|event| event.depth == 1 && kind(event) == "SESSION_START").count()
}

#[tokio::test]
async fn late_streams_have_only_the_newest_ended_subagents() {
    let harness = sequential(70);
    let early = harness.session.tree_events();
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    let tree = Arc::clone(&harness.session.handle().link().tree);
    assert_eq!(tree.member_count(), 1 + 64, "the root and the newest 64");
    let late = harness.session.tree_events();
    harness.session.close().await;
    let (early, late) = (read_all(early).await, read_all(late).await);
    assert_eq!((child_starts(&early), child_starts(&late)), (70, 64));
    for events in [&early, &late] {
        let spawned = events.iter().filter(|event| kind(event) == "SUBAGENT_SPAWNED").count();
        let ended = events.iter().filter(|event| kind(event) == "SUBAGENT_ENDED").count();
        assert_eq!((spawned, ended), (70, 70));
    }
}

#[tokio::test]
async fn forget_events_drops_logs_of_ended_subagents() {
    let harness = sequential(3);
    let mut events = harness.session.tree_events();
    harness.session.submit("go").await.unwrap();
    let tree = Arc::clone(&harness.session.handle().link().tree);
    assert_eq!(tree.member_count(), 4);
    let (_, ended) = read_until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
    drop(events);
    assert_eq!(harness.session.forget_events(ended.seq), ended.seq);
    assert_eq!(tree.member_count(), 4, "its end is still kept");
    harness.session.forget_events(ended.seq + 1);
    assert_eq!(tree.member_count(), 3);
    let late = harness.session.tree_events();
    harness.session.close().await;
    assert_eq!(child_starts(&read_all(late).await), 2);
}

/// The first event about a subagent in a stream, and the last two.
fn ends_of_child_events(events: &[SessionEvent]) -> Vec<String> {
    let about_child = events.iter().filter(|event| event.depth == 1 || kind(event).starts_with("SUBAGENT"));
    let kinds: Vec<String> = about_child.map(|event| format!("{} {}", event.depth, kind(event))).collect();
    let Some(last_but_one) = kinds.len().checked_sub(2) else { return kinds };
    [&kinds[0], &kinds[last_but_one], &kinds[last_but_one + 1]].map(String::clone).to_vec()
}

const COMPLETE_CHILD: [&str; 3] = ["1 SESSION_START", "1 SESSION_END", "0 SUBAGENT_ENDED"];

#[tokio::test]
async fn a_running_subagent_survives_forgetting_its_spawn() {
    let parent = model().message(calls(&[spawn("Sleep.")])).message(calls(&[wait("agent_1")]));
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Sleep", model().message(sleep_call())));
    let mut events = harness.session.tree_events();
    harness.session.submit("go").detach();
    let (before, _) = read_until(&mut events, is_subagent_call).await;
    let spawned = before.iter().find(|event| kind(event) == "SUBAGENT_SPAWNED").unwrap();
    drop(events);
    assert!(harness.session.forget_events(u64::MAX) > spawned.seq);
    let late = harness.session.tree_events();
    harness.session.close().await;
    assert_eq!(ends_of_child_events(&read_all(late).await), COMPLETE_CHILD);
}

#[tokio::test]
async fn an_ended_subagent_is_readable_until_its_end_is_forgotten() {
    for (forgets_end, expected) in [(false, &COMPLETE_CHILD[..]), (true, &[])] {
        let harness = sequential(1);
        let mut events = harness.session.tree_events();
        harness.session.submit("go").await.unwrap();
        let (before, ended) = read_until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
        drop(events);
        let spawned = before.iter().find(|event| kind(event) == "SUBAGENT_SPAWNED").unwrap();
        assert_eq!(harness.session.forget_events(spawned.seq + 1), spawned.seq + 1);
        if forgets_end {
            harness.session.forget_events(ended.seq + 1);
        }
        let late = harness.session.tree_events();
        harness.session.close().await;
        assert_eq!(ends_of_child_events(&read_all(late).await), expected);
    }
}

#[test]
fn sessions_share_tool_definitions() {
    for family in [
        ProviderProfile::anthropic("claude-opus-4-6"),
        ProviderProfile::openai("gpt-5.2-codex"),
        ProviderProfile::gemini("gemini-3-flash-preview"),
    ] {
        for toolset in [Toolset::Spec, Toolset::Native] {
            let profile = family.clone().with_toolset(toolset);
            let tools_of = |name: &str| {
                let limits = SubagentLimits::default();
                Subagents::new(SessionId::new(name), Lineage::root(), limits, Arc::from([]))
                    .add_tools(&profile)
                    .tool_registry
            };
            let (one, other) = (tools_of("one"), tools_of("other"));
            let added: Vec<&str> =
                one.names().filter(|name| profile.tool_registry.get(name).is_none()).collect();
            assert!(!added.is_empty(), "{} {toolset:?}", profile.id);
            for name in added {
                let [one, other] = [&one, &other].map(|tools| tools.get(name).unwrap());
                assert!(!Arc::ptr_eq(one, other), "each session has its own tool");
                assert!(std::ptr::eq(one.definition(), other.definition()), "{name}");
            }
        }
    }
}
