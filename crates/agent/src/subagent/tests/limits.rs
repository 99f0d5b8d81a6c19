//! How far subagents go.

use super::*;
use crate::protocol::{Budget, OutcomeStatus};

#[tokio::test]
async fn one_that_meets_its_limit_or_fails_gives_what_it_had_said() {
    let spawned = ("spawn_agent", json!({ "task": "Look.", "max_turns": 1 }));
    let parent = model()
        .message(calling(&[spawned, spawn("Fail."), spawn("Break off.")]))
        .message(calling(&[wait("agent_1"), wait("agent_2"), wait("agent_3")]))
        .answer("ok");
    let looking = model().message(saying("I begin with src.", &[("glob", json!({ "pattern": "*" }))]));
    let failing = model().message(saying("I begin.", &[("glob", json!({ "pattern": "*" }))]));
    let failing = failing.failure(Error::new(ErrorKind::InvalidRequest, "too odd"));
    let cut = || Error::new(ErrorKind::Stream, "cut");
    let breaking = model().cut("Half", cut()).cut("Half an", cut()).cut("Half an ans", cut());
    let cast = Cast::new(parent).part("Look", looking).part("Fail", failing).part("Break", breaking);
    let bench = Bench::new(cast);
    assert_eq!(bench.session.submit("go").await.unwrap().text, "ok");
    insta::assert_snapshot!(bench.results()[3..].join("\n---\n"), @"
    success: false
    turns_used: 1
    reason: its limit of turns is reached
    output:
    I begin with src.
    ---
    success: false
    turns_used: 1
    reason: it failed: invalid request: too odd
    output:
    I begin.
    ---
    success: false
    turns_used: 0
    reason: it failed: broken answer stream: cut
    output:
    Half an ans
    ");
}

#[tokio::test]
async fn subagents_have_subagents_if_the_host_says_so() {
    let parent =
        model().message(calling(&[spawn("Deeper.")])).message(calling(&[wait("agent_1")])).answer("ok");
    let middle =
        model().message(calling(&[spawn("Deepest.")])).message(calling(&[wait("agent_1")])).answer("mid");
    let cast = Cast::new(parent).part("Deeper.", middle).part("Deepest.", model().answer("low"));
    let bench = Bench::with(cast, SessionConfig::default().with_max_subagent_depth(2), |builder| builder);
    let events = bench.session.tree_events();
    assert_eq!(bench.session.submit("go").await.unwrap().text, "ok");
    let deepest = bench.cast.requests("Deepest.")[0].clone();
    assert!(
        !deepest.tools.iter().any(|tool| tool.name == "spawn_agent"),
        "at the limit there are no tools for it"
    );
    bench.session.close().await;
    let events = rest(events).await;
    let session_of =
        |depth| events.iter().find(|event| event.depth == depth).map(|event| event.session_id.clone());
    let parent_of =
        |depth| events.iter().find(|event| event.depth == depth).and_then(|event| event.parent.clone());
    assert_eq!(parent_of(2), session_of(1));
    assert_eq!(parent_of(1), session_of(0));
    let ends: Vec<u32> =
        events.iter().filter(|event| kind(event) == "SESSION_END").map(|event| event.depth).collect();
    assert_eq!(ends, [2, 1, 0], "the deepest ends first");
}

#[tokio::test]
async fn without_depth_there_are_no_subagents() {
    let parent = model().message(calling(&[spawn("x")])).answer("ok");
    let bench = Bench::with(Cast::new(parent), SessionConfig::default().with_max_subagent_depth(0), |b| b);
    bench.session.submit("go").await.unwrap();
    assert!(bench.results()[0].starts_with("Unknown tool: spawn_agent."), "{:?}", bench.results());
}

#[tokio::test]
async fn only_so_many_run_at_a_time_and_one_that_has_finished_gives_way() {
    let parent = model()
        .message(calling(&[spawn("Sleep.")]))
        .message(calling(&[spawn("Too many.")]))
        .message(calling(&[("close_agent", json!({ "agent_id": "agent_1" }))]))
        .message(calling(&[spawn("Quick.")]))
        .message(calling(&[wait("agent_3")]))
        .message(calling(&[spawn("Quicker.")]))
        .message(calling(&[wait("agent_4")]))
        .message(calling(&[wait("agent_3")]))
        .answer("ok");
    let cast = Cast::new(parent)
        .part("Sleep", model().message(sleeping()))
        .part("Quick.", model().answer("one"))
        .part("Quicker.", model().answer("two"));
    let bench = Bench::with(cast, SessionConfig::default().with_max_subagents(1), |builder| builder);
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!(outcome.text, "ok", "{outcome:?}");
    let results = bench.results();
    assert_eq!(
        results[1..3],
        [
            "Tool error (spawn_agent): 1 subagents run already, which is the most at a time; wait for one, or close one",
            "agent_1 is closed. Final status: failed",
        ]
    );
    assert!(results[6].ends_with("two") && results[7].ends_with("one"), "{results:?}");
}

#[tokio::test]
async fn what_subagents_spend_counts_against_their_parents_budget() {
    let parent =
        model().message(calling(&[spawn("Look.")])).message(calling(&[wait("agent_1")])).answer("never");
    let child = model().message(calling(&[("glob", json!({ "pattern": "*" }))])).answer("Done.");
    // Each answer takes 15 tokens.
    let config = SessionConfig::default().with_budget(Budget::default().with_tokens(60));
    let bench = Bench::with(Cast::new(parent).part("Look", child), config, |builder| builder);
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Budget);
    assert_eq!(bench.cast.requests("go").len(), 2, "the fifth answer of the tree is not asked for");
}

#[tokio::test]
async fn subagents_stop_when_the_budget_of_their_parent_is_spent() {
    let look = || calling(&[("glob", json!({ "pattern": "*" }))]);
    let parent =
        model().message(calling(&[spawn("Look.")])).message(calling(&[wait("agent_1")])).answer("ok");
    let child = (0..20).fold(model(), |model, _| model.message(look()));
    let config = SessionConfig::default().with_budget(Budget::default().with_tool_calls(6));
    let bench = Bench::with(Cast::new(parent).part("Look", child), config, |builder| builder);
    assert_eq!(
        bench.session.submit("go").await.unwrap().text,
        "ok",
        "the parent may still say what came of it"
    );
    assert!(bench.cast.requests("Look").len() <= 6, "four calls were left, or five, and an answer more");
    assert!(bench.results()[1].starts_with("success: false"), "{:?}", bench.results());
}
