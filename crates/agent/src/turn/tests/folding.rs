//! Folding: what another version recorded leads to the same conversation, spending and open calls as stepping it.

use pintle_test_conditions::cases;
use proptest::prelude::*;

use super::properties::{Step, limits, limits_of_a_change, step, take};
use super::*;
use crate::turn::round::NotRunReason;

/// State that has to be the same.
#[derive(Debug, PartialEq)]
struct FoldedState {
    history: Vec<(TurnKind, String)>,
    spent: BudgetUsage,
    state: SessionState,
    steering: Vec<String>,
    follow_ups: Vec<String>,
    /// Calls that have begun and have no result, by id.
    open: Vec<String>,
    run: Option<RunId>,
    subagents: BudgetUsage,
}

impl FoldedState {
    fn from_machine(machine: &Machine) -> Self {
        let turn = |turn: &Turn| {
            // Why a call was not run is on no record.
            let whys = [NotRunReason::Stopped, NotRunReason::OverBudget, NotRunReason::CutOff]
                .map(NotRunReason::for_model);
            let text = format!("{:?}", turn.item.content);
            (turn.kind, whys.iter().fold(text, |text, why| text.replace(why, "Not run")))
        };
        let open = match &machine.phase {
            Phase::RunningTools(round) => round.open(),
            _ => Vec::new(),
        };
        Self {
            history: machine.history.iter().map(turn).collect(),
            spent: machine.spent,
            state: machine.state,
            steering: machine.steering().map(str::to_owned).collect(),
            follow_ups: machine.follow_ups().map(str::to_owned).collect(),
            open,
            run: machine.current_run(),
            subagents: machine.children.held(),
        }
    }
}

fn fold(start: Machine, log: &[(Input, InputConsequences)]) -> Machine {
    let mut machine = start;
    for (input, followed) in log {
        machine.fold(input.clone(), followed);
    }
    machine
}

/// A start that is asked for is on record before anything else.
fn record_starts(harness: &mut Harness) {
    while let Phase::RunningTools(round) = &harness.machine.phase
        && let Some(index) = round.stages().iter().position(|stage| *stage == "starting")
    {
        harness.tell(InputKind::ToolStarted { call: harness.key(index) });
    }
}

/// A start that was not asked for is on no record.
fn starts_unasked(harness: &Harness, step: &Step) -> bool {
    let runs = |index: usize| match &harness.machine.phase {
        Phase::RunningTools(round) => round.stages().get(index) == Some(&"running"),
        _ => false,
    };
    match step {
        Step::Start(_) => true,
        Step::Ask(index) => !runs(*index),
        _ => false,
    }
}

/// Limits without loop detection, which adds a message that is on no record.
fn quiet(mut limits: TurnLimits) -> TurnLimits {
    limits.enable_loop_detection = false;
    limits
}

fn quiet_step(step: Step) -> Step {
    match step {
        Step::Limits(limits) => Step::Limits(Box::new(quiet(*limits))),
        step => step,
    }
}

/// Calls of the history have their results in the next entry, in order, or are the newest ones.
fn well_formed(machine: &Machine) -> Result<(), String> {
    let ids = |turn: &Turn| turn.item.tool_calls().map(|call| call.id.clone()).collect::<Vec<_>>();
    for (index, turn) in machine.history.iter().enumerate() {
        let calls = ids(turn);
        let Some(next) = machine.history.get(index + 1).filter(|_| !calls.is_empty()) else { continue };
        let results: Vec<_> = next.item.results().map(|result| result.tool_call_id.clone()).collect();
        if results != calls {
            return Err(format!("{calls:?} are answered by {results:?}"));
        }
    }
    Ok(())
}

/// A response to a request of the process before does not come after a resume, also if the next request waits for a context.
#[test]
fn folding_awaits_another_request_after_a_resume() {
    let mut harness = Harness::with(TurnLimits::default());
    let steps = [Step::Submit, Step::Load(true), Step::Change, Step::Resume];
    for step in steps.into_iter().chain([Step::Say("late", Finish::Stop, None)]) {
        take(&mut harness, &step);
    }
    let folded = fold(Machine::new(TurnLimits::default(), None), &harness.log);
    assert_eq!(FoldedState::from_machine(&folded), FoldedState::from_machine(&harness.machine));
    assert_eq!(folded.history.len(), 1, "only the input");
}

/// A session that is ended while it summarises between runs ends, also if another version goes on with it.
#[test]
fn folding_ends_a_session_that_was_summarising_between_runs() {
    let summary = || Step::Say("summary", Finish::Stop, None);
    for (stop, last) in
        [(Step::Abort, summary()), (Step::Close, Step::Fail(ErrorKind::Abort)), (Step::Abort, Step::Resume)]
    {
        let mut harness = Harness::with(TurnLimits::default());
        let answer = || Step::Say("text", Finish::Stop, None);
        let runs = [Step::Submit, Step::Load(true), answer(), Step::Submit, answer()];
        for step in runs.iter().chain([&Step::Compact, &stop, &last]) {
            take(&mut harness, step);
        }
        let folded = fold(Machine::new(TurnLimits::default(), None), &harness.log);
        assert!(matches!(harness.machine.phase, Phase::CleaningUp), "after {stop:?} and {last:?}");
        assert!(matches!(folded.phase, Phase::CleaningUp), "after {stop:?} and {last:?}");
        assert_eq!(FoldedState::from_machine(&folded), FoldedState::from_machine(&harness.machine));
    }
}

/// A refused request is repeated without its image, also if the context has to be loaded anew before it.
#[test]
fn folding_leaves_out_what_a_provider_refused() {
    let mut harness = Harness::with(TurnLimits::default());
    let image = ImageData::data(vec![1], "image/png");
    let message = UserMessage::from("look").with_image(image);
    harness.tell(InputKind::Submit { run: RunId(1), message });
    for step in [Step::Load(true), Step::Change, Step::Fail(ErrorKind::InvalidRequest)] {
        take(&mut harness, &step);
    }
    let folded = fold(Machine::new(TurnLimits::default(), None), &harness.log);
    assert_eq!(FoldedState::from_machine(&folded), FoldedState::from_machine(&harness.machine));
    assert!(folded.history[0].item.text().contains("is left out"), "{:?}", folded.history);
}

/// A response that was cut off is continued, twice at most, also if the context is loaded again before the request.
#[test]
fn folding_continues_a_response_that_was_cut_off() {
    let cut_off = || Step::Say("text", Finish::Length, None);
    for before in [Step::Change, Step::Resume, Step::Submit] {
        let mut harness = Harness::with(TurnLimits::default());
        let steps = [Step::Submit, Step::Load(true), before, Step::Load(true)];
        for step in steps.into_iter().chain([cut_off(), Step::Load(true), cut_off(), cut_off()]) {
            take(&mut harness, &step);
            let folded = fold(Machine::new(TurnLimits::default(), None), &harness.log);
            assert_eq!(
                FoldedState::from_machine(&folded),
                FoldedState::from_machine(&harness.machine),
                "after {step:?}"
            );
        }
        let notices = harness.machine.history.iter().filter(|turn| turn.notice);
        assert_eq!(notices.count(), 2, "{:?}", harness.machine.history);
    }
}

/// A request is repeated after an empty response, and a follow-up waits for its answer.
#[test]
fn folding_leaves_a_follow_up_waiting_behind_an_empty_response() {
    let mut harness = Harness::with(TurnLimits::default());
    let empty = || Step::Say("", Finish::Stop, None);
    let steps = [Step::Submit, Step::Load(true), Step::FollowUp, empty(), empty()];
    let mut waiting = Vec::new();
    for step in steps {
        take(&mut harness, &step);
        let folded = fold(Machine::new(TurnLimits::default(), None), &harness.log);
        assert_eq!(
            FoldedState::from_machine(&folded),
            FoldedState::from_machine(&harness.machine),
            "after {step:?}"
        );
        waiting.push(folded.follow_ups().count());
    }
    assert_eq!(waiting, [0, 0, 1, 1, 1]);
}

/// A response that was cut off is to be continued also if a limit ends the run before the request.
#[test]
fn folding_continues_a_response_that_was_cut_off_at_a_limit() {
    let limits = TurnLimits { max_turns: 1, ..TurnLimits::default() };
    let mut harness = Harness::with(limits.clone());
    for step in [Step::Submit, Step::Load(true), Step::Say("text", Finish::Length, None)] {
        take(&mut harness, &step);
        let folded = fold(Machine::new(limits.clone(), None), &harness.log);
        assert_eq!(
            FoldedState::from_machine(&folded),
            FoldedState::from_machine(&harness.machine),
            "after {step:?}"
        );
    }
    assert_eq!(harness.last_outcome().0, OutcomeStatus::TurnLimit);
}

/// A request on record after the end of a session does not open it again.
#[test]
fn folding_keeps_a_closed_session_closed() {
    let mut machine = Machine::new(TurnLimits::default(), None);
    for kind in [InputKind::Close, InputKind::CleanedUp] {
        machine.fold(Input::new(Timestamp::from_millis(1), kind), &InputConsequences::default());
    }
    let request = InputConsequences { request: true, ..InputConsequences::default() };
    machine.fold(Input::new(Timestamp::from_millis(2), InputKind::Compact), &request);
    assert_eq!(machine.state, SessionState::Closed);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(75, 300), ..ProptestConfig::default() })]

    #[test]
    fn folding_keeps_what_stepping_made(
        limits in limits().prop_map(quiet),
        steps in proptest::collection::vec(step(limits_of_a_change()).prop_map(quiet_step), 1..80),
    ) {
        let mut harness = Harness::with(limits.clone());
        harness.is_stored = false;
        for step in &steps {
            if starts_unasked(&harness, step) {
                continue;
            }
            take(&mut harness, step);
            record_starts(&mut harness);
            let folded = fold(Machine::new(limits.clone(), None), &harness.log);
            let (found, expected) = (FoldedState::from_machine(&folded), FoldedState::from_machine(&harness.machine));
            prop_assert_eq!(found, expected, "after {:?}", harness.log.last());
        }
    }
    /// Records before version 4 do not say what followed. The conversation is complete nevertheless.
    #[test]
    fn folding_of_old_records_keeps_every_call_answered(
        limits in limits().prop_map(quiet),
        steps in proptest::collection::vec(step(limits_of_a_change()).prop_map(quiet_step), 1..80),
    ) {
        let mut harness = Harness::with(limits.clone());
        harness.is_stored = false;
        steps.iter().for_each(|step| take(&mut harness, step));
        let mut machine = Machine::new(limits, None);
        for (input, followed) in &harness.log {
            let old = InputConsequences { request: followed.request, summarized: true, ..InputConsequences::default() };
            machine.fold(input.clone(), &old);
            prop_assert_eq!(well_formed(&machine), Ok(()), "after {:?}", input);
        }
        prop_assert!(machine.spent.tokens() >= harness.machine.spent.tokens() || machine.state == SessionState::Closed);
        let at = machine.now;
        machine.step(Input::new(at, InputKind::Resumed { attached: Vec::new(), asks: None }));
        prop_assert_eq!(well_formed(&machine), Ok(()));
    }
}
