//! Subagents: what they spend is spent here, and what ends here ends there.

use super::*;
use crate::id::SessionId;
use crate::subagent_info::SubagentStatus;

fn spawn(bench: &mut Bench, agent: &str) {
    let session = SessionId::new(format!("session of {agent}"));
    bench.tell(InputKind::ChildSpawned { agent: agent.into(), session, task: "look".into() });
}

fn spend(bench: &mut Bench, agent: &str, tokens: u64) {
    let spent = Spent { input_tokens: tokens, output_tokens: 0, cost_micros: Some(0), tool_calls: 1 };
    bench.tell(InputKind::ChildSpent { agent: agent.into(), spent });
}

fn end(bench: &mut Bench, agent: &str) {
    let status = SubagentStatus::Failed;
    bench.tell(InputKind::ChildEnded { agent: agent.into(), status, turns_used: 1 });
}

fn bench(budget: Budget) -> Bench {
    let mut bench = Bench::with(TurnLimits { budget, ..TurnLimits::default() });
    bench.submit("go");
    bench.call(&["spawn_agent", "wait"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.tell(InputKind::ToolStarted { call: bench.key(0) });
    spawn(&mut bench, "one");
    bench.finish_started(0, "one", None);
    bench
}

#[test]
fn what_a_subagent_spends_counts_and_stops_the_tree_at_the_limit() {
    let mut bench = bench(Budget::default().with_tokens(100));
    bench.prepared(1, Effect::Read, &[]);
    bench.tell(InputKind::ToolStarted { call: bench.key(1) });
    spend(&mut bench, "one", 40);
    bench.wanted();
    assert_eq!(bench.machine.budget_left().tokens, Some(100 - 11 - 40));
    spend(&mut bench, "one", 60);
    assert_eq!(bench.wanted(), ["stop subagents"]);
    bench.finish_started(1, "it was stopped", Some(ToolErrorKind::Failed));
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    let reached = EventKind::BudgetReached { budget: BudgetKind::Tokens, limit: 100, spent: 111 };
    assert!(bench.events.contains(&reached));
    assert_eq!(bench.requests.len(), 1);
}

#[test]
fn calls_that_wait_are_answered_when_a_subagent_has_spent_the_rest() {
    let mut bench = bench(Budget::default().with_tokens(50));
    bench.asks(1);
    bench.wanted();
    spend(&mut bench, "one", 60);
    assert_eq!(bench.wanted()[..2], ["stop subagents", "withdraw 1"]);
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
}

#[test]
fn a_subagent_that_is_not_known_or_has_ended_spends_nothing() {
    let mut bench = bench(Budget::default());
    end(&mut bench, "one");
    let before = bench.machine.spent();
    spend(&mut bench, "one", 40);
    spend(&mut bench, "nobody", 40);
    end(&mut bench, "one");
    assert_eq!(bench.machine.spent(), before);
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "SUBAGENT_ENDED").count(), 1);
}

/// Appendix B: the stream, then processes and subagents, then `SESSION_END`, then the state.
#[test]
fn the_end_comes_in_the_order_of_appendix_b() {
    for stop in [InputKind::Abort, InputKind::Close] {
        let mut bench = bench(Budget::default());
        bench.prepared(1, Effect::Read, &[]);
        bench.finish(1, "ok");
        bench.wanted();
        bench.tell(stop);
        assert_eq!(bench.wanted(), ["stop subagents", "cancel model"]);
        bench.failed(ErrorKind::Abort, "so far");
        assert_eq!(bench.wanted(), ["clean up"], "nothing is cleaned up before the stream has ended");
        assert_ne!(bench.machine.state(), SessionState::Closed);
        end(&mut bench, "one");
        bench.tell(InputKind::CleanedUp);
        let kinds = bench.kinds();
        assert_eq!(kinds[kinds.len() - 3..], ["SUBAGENT_ENDED", "PROCESSING_END", "SESSION_END"]);
        assert_eq!(bench.last_outcome(), (OutcomeStatus::Aborted, SessionState::Closed));
        spawn(&mut bench, "late");
        spend(&mut bench, "late", 1);
        end(&mut bench, "late");
        assert_eq!(bench.kinds().last().unwrap(), "SESSION_END", "nothing follows");
    }
}

/// An unrecoverable error takes the same way out.
#[test]
fn a_failure_that_closes_the_session_ends_its_subagents_first() {
    let mut bench = bench(Budget::default());
    bench.prepared(1, Effect::Read, &[]);
    bench.finish(1, "ok");
    bench.failed(ErrorKind::Authentication, "");
    assert_eq!(bench.wanted().last().unwrap(), "clean up");
    end(&mut bench, "one");
    bench.tell(InputKind::CleanedUp);
    let kinds = bench.kinds();
    assert_eq!(kinds[kinds.len() - 4..], ["ERROR", "SUBAGENT_ENDED", "PROCESSING_END", "SESSION_END"]);
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Closed));
}

#[test]
fn a_subagent_has_the_limits_of_its_parent_but_turns_of_its_own_and_what_is_left() {
    let limits = TurnLimits {
        max_turns: 7,
        max_tool_rounds_per_input: 5,
        budget: Budget::default().with_tokens(100),
        ..TurnLimits::default()
    };
    let mut bench = Bench::with(limits.clone());
    let effort = Some(ReasoningEffort::Low);
    bench.tell(InputKind::Configure { change: Change::ReasoningEffort(effort.clone()) });
    bench.submit("go");
    bench.round("a");
    let budget = Budget::default().with_tokens(100 - 11);
    assert_eq!(bench.machine.limits_below(), TurnLimits { max_turns: 0, budget, ..limits });
    assert_eq!(bench.machine.reasoning_effort(), effort.as_ref());
}
