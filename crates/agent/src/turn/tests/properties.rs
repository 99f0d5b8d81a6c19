//! Properties of random interleavings: requests are well formed, events are in order, queued messages are neither lost
//! nor repeated, and no limit is exceeded.

mod judge;
mod steps;

use pintle_llm::Money;
use pintle_test_conditions::cases;
use proptest::prelude::*;

use self::judge::{Judge, in_place};
pub(super) use self::steps::{Step, step, take};
use super::*;
use crate::protocol::CompactionPolicy;

/// Small limits of each kind, including none.
pub(super) fn limits() -> impl Strategy<Value = TurnLimits> {
    let count = prop_oneof![2 => Just(0_u64), 1 => 1_u64..6];
    let budget = (
        proptest::option::weighted(0.3, 0_u64..120),
        proptest::option::weighted(0.2, 0_u64..200_000_000),
        proptest::option::weighted(0.2, 0_u64..100),
        proptest::option::weighted(0.3, 0_u64..6),
    );
    let compaction = proptest::option::weighted(0.4, 1_u8..100);
    (count.clone(), count, 1_usize..4, 1_usize..4, 2_usize..5, budget, compaction).prop_map(
        |(turns, rounds, at_once, queued, window, (tokens, cost, time, calls), at_percent)| TurnLimits {
            max_turns: turns,
            max_tool_rounds_per_input: rounds,
            max_parallel_tools: at_once,
            max_queued: queued,
            loop_detection_window: window,
            approval_timeout: Some(Duration::from_secs(1)),
            budget: Limits {
                tokens,
                cost: cost.map(Money::from_micros),
                wall_time: time.map(Duration::from_millis),
                tool_calls: calls,
            },
            compaction: CompactionPolicy { at_percent, model: None },
            ..TurnLimits::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(100, 200), ..ProptestConfig::default() })]

    #[test]
    fn every_interleaving_keeps_requests_and_events_well_formed(
        limits in prop_oneof![Just(TurnLimits::default()), limits()],
        is_subagent in any::<bool>(),
        steps in proptest::collection::vec(step(limits_of_a_change()), 1..100),
    ) {
        let mut harness = if is_subagent { Harness::subagent(limits) } else { Harness::with(limits) };
        harness.is_stored = false;
        let mut judge = Judge::default();
        for step in &steps {
            take(&mut harness, step);
            prop_assert_eq!(judge.look(&harness), Ok(()), "after {:?}", step);
        }
    }

    /// A session can be closed from any state.
    #[test]
    fn abort_always_ends_the_session(
        limits in limits(),
        steps in proptest::collection::vec(step(limits_of_a_change()), 0..60),
    ) {
        let mut harness = Harness::with(limits);
        harness.is_stored = false;
        steps.iter().for_each(|step| take(&mut harness, step));
        harness.tell(InputKind::Abort);
        take(&mut harness, &Step::Fail(ErrorKind::Abort));
        for index in 0..4 {
            harness.tell(InputKind::ToolLost { call: harness.key(index) });
        }
        take(&mut harness, &Step::CleanUp);
        prop_assert_eq!(harness.machine.state(), SessionState::Closed);
        prop_assert_eq!(harness.outcomes.len() as u64, harness.runs, "every run has its outcome");
        prop_assert_eq!(in_place(&harness.events), Ok(()));
        let ends = matches!(harness.events.last(), Some(EventKind::SessionEnd { .. }));
        prop_assert!(ends, "SESSION_END is last");
    }
}

proptest! {
    // Each case serialises the session after each of its inputs.
    #![proptest_config(ProptestConfig { cases: cases(30, 60), ..ProptestConfig::default() })]

    /// Serialising a session after every input changes nothing.
    #[test]
    fn the_same_inputs_give_the_same_actions(
        limits in limits(),
        steps in proptest::collection::vec(step(limits_of_a_change()), 1..60),
    ) {
        let run = |stored: bool| {
            let mut harness = Harness::with(limits.clone());
            harness.is_stored = stored;
            steps.iter().for_each(|step| take(&mut harness, step));
            (harness.requests, harness.events, harness.outcomes, harness.ran, harness.wanted)
        };
        prop_assert_eq!(run(true), run(false));
    }
}

/// Limits that a step changes to.
pub(super) fn limits_of_a_change() -> BoxedStrategy<TurnLimits> {
    limits().boxed()
}
