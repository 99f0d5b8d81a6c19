//! Many subagents, one after the other.

use super::*;
use crate::profile::Toolset;
use crate::protocol::{SessionId, SubagentLimits};
use crate::subagent::{Lineage, Subagents};

/// A parent that has so many subagents, each of which says one thing.
fn in_turn(count: usize) -> Bench {
    let parent = (1..=count).fold(model(), |parent, number| {
        let name = format!("agent_{number}");
        parent
            .message(calling(&[spawn("Look.")]))
            .message(calling(&[wait(&name)]))
            .message(calling(&[("close_agent", json!({ "agent_id": name }))]))
    });
    let child = (0..count).fold(model(), |child, _| child.answer("Nothing."));
    let config = SessionConfig::default();
    let mut config = config;
    config.limits.enable_loop_detection = false;
    Bench::with(Cast::new(parent.answer("ok")).part("Look", child), config, |builder| builder)
}

fn of_children(events: &[SessionEvent]) -> usize {
    events.iter().filter(|event| event.depth == 1 && kind(event) == "SESSION_START").count()
}

#[tokio::test]
async fn who_reads_from_the_beginning_has_all_and_who_comes_late_the_newest() {
    let bench = in_turn(70);
    let early = bench.session.tree_events();
    assert_eq!(bench.session.submit("go").await.unwrap().text, "ok");
    let tree = Arc::clone(&bench.session.handle().tree);
    assert_eq!(tree.known(), 1 + 64, "the session itself, and the newest");
    let late = bench.session.tree_events();
    bench.session.close().await;
    let (early, late) = (rest(early).await, rest(late).await);
    assert_eq!((of_children(&early), of_children(&late)), (70, 64));
    for told in [&early, &late] {
        let spawned = told.iter().filter(|event| kind(event) == "SUBAGENT_SPAWNED").count();
        let ended = told.iter().filter(|event| kind(event) == "SUBAGENT_ENDED").count();
        assert_eq!((spawned, ended), (70, 70));
    }
}

#[tokio::test]
async fn a_host_that_forgets_events_forgets_those_of_subagents_that_have_ended() {
    let bench = in_turn(3);
    let mut events = bench.session.tree_events();
    bench.session.submit("go").await.unwrap();
    let tree = Arc::clone(&bench.session.handle().tree);
    assert_eq!(tree.known(), 4);
    let (_, ended) = until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
    drop(events);
    assert_eq!(bench.session.forget_events(ended.seq), ended.seq);
    assert_eq!(tree.known(), 4, "its end can still be read");
    bench.session.forget_events(ended.seq + 1);
    assert_eq!(tree.known(), 3);
    let late = bench.session.tree_events();
    bench.session.close().await;
    assert_eq!(of_children(&rest(late).await), 2);
}

/// Where the events of each subagent stand in a stream: all of them before their parent tells of the end.
fn of_child_before_its_end(events: &[SessionEvent]) -> Vec<String> {
    let told = events.iter().filter(|event| event.depth == 1 || kind(event).starts_with("SUBAGENT"));
    let told: Vec<String> = told.map(|event| format!("{} {}", event.depth, kind(event))).collect();
    let Some(last_but_one) = told.len().checked_sub(2) else { return told };
    [&told[0], &told[last_but_one], &told[last_but_one + 1]].map(String::clone).to_vec()
}

const FROM_BEGINNING_TO_END: [&str; 3] = ["1 SESSION_START", "1 SESSION_END", "0 SUBAGENT_ENDED"];

#[tokio::test]
async fn a_subagent_at_work_is_there_for_who_comes_after_its_beginning_was_forgotten() {
    let parent = model().message(calling(&[spawn("Sleep.")])).message(calling(&[wait("agent_1")]));
    let bench = Bench::new(Cast::new(parent).part("Sleep", model().message(sleeping())));
    let mut events = bench.session.tree_events();
    bench.session.submit("go").detach();
    let (before, _) = until(&mut events, works).await;
    let spawned = before.iter().find(|event| kind(event) == "SUBAGENT_SPAWNED").unwrap();
    drop(events);
    assert!(bench.session.forget_events(u64::MAX) > spawned.seq);
    let late = bench.session.tree_events();
    bench.session.close().await;
    assert_eq!(of_child_before_its_end(&rest(late).await), FROM_BEGINNING_TO_END);
}

#[tokio::test]
async fn a_subagent_that_has_ended_is_there_as_long_as_its_end_is() {
    for (forgets_end, expected) in [(false, &FROM_BEGINNING_TO_END[..]), (true, &[])] {
        let bench = in_turn(1);
        let mut events = bench.session.tree_events();
        bench.session.submit("go").await.unwrap();
        let (before, ended) = until(&mut events, |event| kind(event) == "SUBAGENT_ENDED").await;
        drop(events);
        let spawned = before.iter().find(|event| kind(event) == "SUBAGENT_SPAWNED").unwrap();
        assert_eq!(bench.session.forget_events(spawned.seq + 1), spawned.seq + 1);
        if forgets_end {
            bench.session.forget_events(ended.seq + 1);
        }
        let late = bench.session.tree_events();
        bench.session.close().await;
        assert_eq!(of_child_before_its_end(&rest(late).await), expected);
    }
}

#[test]
fn sessions_share_what_their_tools_are_for_a_model() {
    for family in [
        ProviderProfile::anthropic("claude-opus-4-6"),
        ProviderProfile::openai("gpt-5.2-codex"),
        ProviderProfile::gemini("gemini-3-flash-preview"),
    ] {
        for toolset in [Toolset::Spec, Toolset::Native] {
            let profile = family.clone().with_toolset(toolset);
            let equip = |name: &str| {
                let limits = SubagentLimits::default();
                Subagents::new(SessionId::new(name), Lineage::root(), limits).equip(&profile).tool_registry
            };
            let (one, other) = (equip("one"), equip("other"));
            let added: Vec<&str> =
                one.names().filter(|name| profile.tool_registry.get(name).is_none()).collect();
            assert!(!added.is_empty(), "{} {toolset:?}", profile.id);
            for name in added {
                let [one, other] = [&one, &other].map(|tools| tools.get(name).unwrap());
                assert!(!Arc::ptr_eq(one, other), "each works for its own session");
                assert!(std::ptr::eq(one.definition(), other.definition()), "{name}");
            }
        }
    }
}
