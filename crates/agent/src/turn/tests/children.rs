//! Subagents: their spending and their end.

use pintle_llm::Money;

use super::*;
use crate::protocol::{BudgetScope, SubagentSettings};
use crate::protocol::{SessionId, SubagentStatus};

fn spawn(harness: &mut Harness, agent: &str) {
    let session = SessionId::new(format!("session of {agent}"));
    harness.tell(InputKind::ChildSpawned {
        agent: agent.into(),
        session,
        task: "look".into(),
        call_id: None,
        settings: SubagentSettings::default(),
    });
}

fn spend(harness: &mut Harness, agent: &str, tokens: u64) {
    let spent =
        BudgetUsage { input_tokens: tokens, output_tokens: 0, cost: Some(Money::ZERO), tool_calls: 1 };
    harness.tell(InputKind::ChildSpent { agent: agent.into(), spent });
}

fn end(harness: &mut Harness, agent: &str) {
    let status = SubagentStatus::Failed;
    harness.tell(InputKind::ChildEnded {
        agent: agent.into(),
        status,
        turns_used: 1,
        output: String::new(),
        reason: None,
        warning: None,
    });
}

fn harness(budget: Limits) -> Harness {
    let mut harness = Harness::with(TurnLimits { budget, ..TurnLimits::default() });
    harness.submit("go");
    harness.call(&["spawn_agent", "wait"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.tell(InputKind::ToolStarted { call: harness.key(0) });
    spawn(&mut harness, "one");
    harness.finish_started(0, "one", None);
    harness
}

#[test]
fn subagent_spending_stops_the_tree_at_the_limit() {
    let mut harness = harness(Limits::default().with_tokens(100));
    harness.prepared(1, Effect::Read, &[]);
    harness.tell(InputKind::ToolStarted { call: harness.key(1) });
    spend(&mut harness, "one", 40);
    harness.wanted();
    assert_eq!(harness.machine.budget_left().tokens, Some(100 - 11 - 40));
    spend(&mut harness, "one", 60);
    assert_eq!(harness.wanted(), ["stop subagents"]);
    harness.finish_started(1, "it was stopped", Some(ToolErrorKind::Failed));
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    let reached = EventKind::BudgetReached {
        budget: BudgetKind::Tokens,
        limit: 100,
        spent: 111,
        needed: None,
        scope: BudgetScope::Session,
    };
    assert!(harness.events.contains(&reached));
    assert_eq!(harness.requests.len(), 1);
}

#[test]
fn waiting_calls_are_answered_when_subagents_spent_the_budget() {
    let mut harness = harness(Limits::default().with_tokens(50));
    harness.asks(1);
    harness.wanted();
    spend(&mut harness, "one", 60);
    assert_eq!(harness.wanted()[..2], ["stop subagents", "withdraw 1"]);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
}

#[test]
fn unknown_or_ended_subagents_spend_nothing() {
    let mut harness = harness(Limits::default());
    end(&mut harness, "one");
    let before = harness.machine.spent();
    spend(&mut harness, "one", 40);
    spend(&mut harness, "nobody", 40);
    end(&mut harness, "one");
    assert_eq!(harness.machine.spent(), before);
    assert_eq!(harness.kinds().iter().filter(|kind| *kind == "SUBAGENT_ENDED").count(), 1);
}

/// Appendix B: the stream, then processes and subagents, then `SESSION_END`, then the state.
#[test]
fn shutdown_has_the_order_of_appendix_b() {
    for stop in [InputKind::Abort, InputKind::Close] {
        let mut harness = harness(Limits::default());
        harness.prepared(1, Effect::Read, &[]);
        harness.finish(1, "ok");
        harness.wanted();
        harness.tell(stop);
        assert_eq!(harness.wanted(), ["stop subagents", "cancel model"]);
        harness.failed(ErrorKind::Abort, "so far");
        assert_eq!(harness.wanted(), ["clean up"], "nothing is cleaned up before the stream has ended");
        assert_ne!(harness.machine.state(), SessionState::Closed);
        end(&mut harness, "one");
        harness.tell(InputKind::CleanedUp);
        let kinds = harness.kinds();
        assert_eq!(kinds[kinds.len() - 3..], ["SUBAGENT_ENDED", "PROCESSING_END", "SESSION_END"]);
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Aborted, SessionState::Closed));
        spawn(&mut harness, "late");
        spend(&mut harness, "late", 1);
        end(&mut harness, "late");
        assert_eq!(harness.kinds().last().unwrap(), "SESSION_END", "nothing follows");
    }
}

/// A fatal error has the same order.
#[test]
fn fatal_error_ends_subagents_first() {
    let mut harness = harness(Limits::default());
    harness.prepared(1, Effect::Read, &[]);
    harness.finish(1, "ok");
    harness.failed(ErrorKind::Authentication, "");
    assert_eq!(harness.wanted().last().unwrap(), "clean up");
    end(&mut harness, "one");
    harness.tell(InputKind::CleanedUp);
    let kinds = harness.kinds();
    assert_eq!(kinds[kinds.len() - 4..], ["ERROR", "SUBAGENT_ENDED", "PROCESSING_END", "SESSION_END"]);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Closed));
}

#[test]
fn subagent_inherits_limits_with_an_empty_slice() {
    let limits = TurnLimits {
        max_turns: 7,
        max_tool_rounds_per_input: 5,
        budget: Limits::default().with_tokens(100),
        ..TurnLimits::default()
    };
    let mut harness = Harness::with(limits.clone());
    let effort = Some(ReasoningEffort::Low);
    harness.tell(InputKind::Configure { change: Change::ReasoningEffort(effort.clone()) });
    harness.submit("go");
    harness.round("a");
    let budget = Limits::default().with_tokens(0);
    assert_eq!(harness.machine.subagent_limits(), TurnLimits { max_turns: 0, budget, ..limits });
    assert_eq!(harness.machine.reasoning_effort(), effort.as_ref());
}
