//! Limits of subagents.

use pintle_llm::Money;

use super::*;
use crate::protocol::{BudgetUsage, Limits, OutcomeStatus};
use crate::spending::SessionSpending;

#[tokio::test]
async fn a_failed_subagent_returns_its_last_text() {
    let spawned = ("spawn_agent", json!({ "task": "Look.", "max_turns": 1 }));
    let parent = model()
        .message(calls(&[spawned, spawn("Fail."), spawn("Break off.")]))
        .message(calls(&[wait("agent_1"), wait("agent_2"), wait("agent_3")]))
        .answer("ok");
    let looking =
        model().message(text_and_calls("I begin with src.", &[("glob", json!({ "pattern": "*" }))]));
    let failing = model().message(text_and_calls("I begin.", &[("glob", json!({ "pattern": "*" }))]));
    let failing = failing.failure(Error::new(ErrorKind::InvalidRequest, "too odd"));
    let cut = || Error::new(ErrorKind::Stream, "cut");
    let breaking = model().cut("Half", cut()).cut("Half an", cut()).cut("Half an ans", cut());
    let models = ModelsByTask::new(parent)
        .subagent("Look", looking)
        .subagent("Fail", failing)
        .subagent("Break", breaking);
    let harness = Harness::new(models);
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    insta::assert_snapshot!(harness.results()[3..].join("\n---\n"), @"
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
    reason: it failed: broken response stream: cut
    output:
    Half an ans
    ");
}

#[tokio::test]
async fn subagents_nest_up_to_the_depth_limit() {
    let parent = model().message(calls(&[spawn("Deeper.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let middle =
        model().message(calls(&[spawn("Deepest.")])).message(calls(&[wait("agent_1")])).answer("mid");
    let models =
        ModelsByTask::new(parent).subagent("Deeper.", middle).subagent("Deepest.", model().answer("low"));
    let harness =
        Harness::with(models, SessionConfig::default().with_max_subagent_depth(2), |builder| builder);
    let events = harness.session.tree_events();
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
    let deepest = harness.models.requests("Deepest.")[0].clone();
    assert!(!deepest.tools.iter().any(|tool| tool.name == "spawn_agent"), "no tools at the depth limit");
    harness.session.close().await;
    let events = read_all(events).await;
    let session_of =
        |depth| events.iter().find(|event| event.depth == depth).map(|event| event.session_id.clone());
    let parent_of =
        |depth| events.iter().find(|event| event.depth == depth).and_then(|event| event.parent.clone());
    assert_eq!(parent_of(2), session_of(1));
    assert_eq!(parent_of(1), session_of(0));
    let ends: Vec<u32> =
        events.iter().filter(|event| kind(event) == "SESSION_END").map(|event| event.depth).collect();
    assert_eq!(ends, [2, 1, 0], "the deepest session ends first");
}

/// The default of the specification, section 5.2, with the beginning and the end of the text.
#[tokio::test]
async fn a_long_result_is_cut_for_the_parents_model() {
    let parent = model().message(calls(&[spawn("Look.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let said = format!("first{}last", "x".repeat(29_991));
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Look", model().answer(said.clone())));
    let mut run = harness.session.submit("go");
    let mut outputs = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::ToolCallEnd { output, .. } = event.kind {
            outputs.push(output.to_text_lossy().unwrap());
        }
    }
    assert!(outputs[1].ends_with(&said), "the event has all of it");
    let shown = &harness.results()[1];
    let (head, rest) = shown.split_once("\n\n[WARNING: Tool output was truncated. ").unwrap();
    let (marker, tail) = rest.split_once("]\n\n").unwrap();
    assert_eq!((head.chars().count(), tail.chars().count()), (10_000, 10_000));
    let removed = format!("{} characters were removed from the middle.", outputs[1].chars().count() - 20_000);
    assert!(marker.starts_with(&removed) && tail.ends_with("last"), "{marker}");
}

#[tokio::test]
async fn depth_zero_removes_the_tools() {
    let parent = model().message(calls(&[spawn("x")])).answer("ok");
    let harness =
        Harness::with(ModelsByTask::new(parent), SessionConfig::default().with_max_subagent_depth(0), |b| b);
    harness.session.submit("go").await.unwrap();
    assert!(harness.results()[0].starts_with("Unknown tool: spawn_agent."), "{:?}", harness.results());
}

#[tokio::test]
async fn at_the_limit_an_idle_subagent_is_closed() {
    let parent = model()
        .message(calls(&[spawn("Sleep.")]))
        .message(calls(&[spawn("Too many.")]))
        .message(calls(&[("close_agent", json!({ "agent_id": "agent_1" }))]))
        .message(calls(&[spawn("Quick.")]))
        .message(calls(&[wait("agent_3")]))
        .message(calls(&[spawn("Quicker.")]))
        .message(calls(&[wait("agent_4")]))
        .message(calls(&[wait("agent_3")]))
        .answer("ok");
    let models = ModelsByTask::new(parent)
        .subagent("Sleep", model().message(sleep_call()))
        .subagent("Quick.", model().answer("one"))
        .subagent("Quicker.", model().answer("two"));
    let harness = Harness::with(models, SessionConfig::default().with_max_subagents(1), |builder| builder);
    let outcome = harness.session.submit("go").await.unwrap();
    assert_eq!(outcome.text, "ok", "{outcome:?}");
    let results = harness.results();
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
async fn spending_counts_against_the_parents_budget() {
    let look = || calls(&[("glob", json!({ "pattern": "*" }))]);
    let parent = model()
        .message(calls(&[spawn("Look.")]))
        .message(calls(&[wait("agent_1")]))
        .message(look())
        .answer("never");
    let child = model().message(look()).answer("Done.");
    let config = SessionConfig::default().with_budget(Limits::default().with_tool_calls(3));
    let harness = Harness::with(ModelsByTask::new(parent).subagent("Look", child), config, |builder| builder);
    let outcome = harness.session.submit("go").await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Budget);
    assert_eq!(harness.models.requests("go").len(), 3);
    assert!(harness.results()[1].contains("Done."), "{:?}", harness.results());
}

/// Every call of the tree reserves, and what is left over returns.
#[tokio::test]
async fn subagents_share_the_tokens_of_their_parent() {
    let wait_for_both = calls(&[wait("agent_1"), wait("agent_2")]);
    let parent = || {
        model()
            .message(calls(&[spawn("Look here."), spawn("Look there.")]))
            .message(wait_for_both.clone())
            .answer("ok")
    };
    let look = || model().message(calls(&[("glob", json!({ "pattern": "*" }))])).answer("Done.");
    let run = async |tokens: u64| {
        let models = ModelsByTask::new(parent()).subagent("Look here", look()).subagent("Look there", look());
        let config = SessionConfig::default().with_budget(Limits::default().with_tokens(tokens));
        let harness = Harness::with(models, config, |builder| builder.record(true));
        let outcome = harness.session.submit("go").await.unwrap();
        let made: usize =
            ["go", "Look here", "Look there"].map(|task| harness.models.requests(task).len()).iter().sum();
        (outcome.status, made, harness.session.record().unwrap().replay().unwrap().spent.tokens())
    };
    // Each response takes 15 tokens, and each prompt has some thousands.
    assert_eq!(run(200_000).await, (OutcomeStatus::Completed, 7, 7 * 15));
    let (status, made, spent) = run(9_000).await;
    assert_eq!(spent, made as u64 * 15);
    assert!(made < 7 && spent < 9_000, "{status:?} after {made} requests");
}

#[tokio::test]
async fn subagents_stop_when_the_parents_budget_is_spent() {
    let look = || calls(&[("glob", json!({ "pattern": "*" }))]);
    let parent = model().message(calls(&[spawn("Look.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let child = (0..20).fold(model(), |model, _| model.message(look()));
    let config = SessionConfig::default().with_budget(Limits::default().with_tool_calls(6));
    let harness = Harness::with(ModelsByTask::new(parent).subagent("Look", child), config, |builder| builder);
    assert_eq!(harness.session.submit("go").await.unwrap().text, "ok", "the parent can still answer");
    assert!(
        harness.models.requests("Look").len() <= 6,
        "at most five calls were left, and one final response"
    );
    assert!(harness.results()[1].starts_with("success: false"), "{:?}", harness.results());
}

#[tokio::test]
async fn spending_covers_the_tree_and_each_model() {
    let parent = model().message(calls(&[spawn("Look.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let child = model().answer("Done.");
    let models = ModelsByTask::new(parent).subagent("Look", child);
    let harness = Harness::with(models, SessionConfig::default(), |builder| builder);
    assert_eq!(harness.session.spending(), SessionSpending::default());
    let outcome = harness.session.submit("go").await.unwrap();
    let spending = harness.session.handle().spending();
    assert_eq!((spending.total.tokens(), spending.total.tool_calls), (4 * 15, 2));
    let of_models = spending.models.into_values().fold(BudgetUsage::default(), BudgetUsage::and);
    assert_eq!((of_models.tokens(), of_models.cost), (4 * 15, spending.total.cost));
    assert!(outcome.cost == spending.total.cost && outcome.cost > Some(Money::ZERO), "{outcome:?}");
}
