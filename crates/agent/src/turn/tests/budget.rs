//! Spending limits.

use pintle_llm::{ModelInfo, Money};

use super::*;

/// A context whose model costs a dollar per token.
fn priced() -> TurnContext {
    let mut model = ModelInfo::new("p", "m", 1_000);
    model.input_cost_per_million = Some(1e6);
    model.output_cost_per_million = Some(1e6);
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.pricing = Some(Box::new(model));
    context
}

fn harness(budget: Limits) -> Harness {
    Harness::with(TurnLimits { budget, ..TurnLimits::default() })
}

fn raise(harness: &mut Harness, budget: Limits) {
    let limits = TurnLimits { budget, ..TurnLimits::default() };
    harness.tell(InputKind::Configure { change: Change::Limits(limits) });
}

fn reached(harness: &Harness) -> Vec<(BudgetKind, u64, u64)> {
    let of = |event: &EventKind| match event {
        EventKind::BudgetReached { budget, limit, spent, .. } => Some((*budget, *limit, *spent)),
        _ => None,
    };
    harness.events.iter().filter_map(of).collect()
}

/// Spends eleven tokens, which cost eleven dollars, per response.
#[test]
fn each_limit_pauses_until_it_is_raised() {
    let second = Duration::from_secs(1);
    let cases = [
        (Limits::default().with_tokens(31), BudgetKind::Tokens, 31, 11),
        (
            Limits::default().with_cost(Money::from_micros(31_500_000)),
            BudgetKind::CostMicros,
            31_500_000,
            11_000_000,
        ),
        // The clock of the harness counts a millisecond per input: six for a round.
        (Limits::default().with_wall_time(Duration::from_millis(6)), BudgetKind::WallTimeMs, 6, 6),
    ];
    for (budget, kind, limit, spent) in cases {
        let mut harness = harness(budget);
        harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
        harness.load_this(priced());
        harness.clock += 1;
        harness.round("a");
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle), "{kind:?}");
        assert_eq!(reached(&harness), [(kind, limit, spent)]);
        assert_eq!(harness.kinds()[harness.kinds().len() - 2..], ["BUDGET_REACHED", "PROCESSING_END"]);
        assert_eq!(harness.requests.len(), 1);
        if kind != BudgetKind::WallTimeMs {
            harness.submit("go on");
            assert_eq!(
                (harness.outcomes.len(), harness.requests.len()),
                (2, 1),
                "the limit is still reached: {kind:?}"
            );
        }
        let raised = Limits::default()
            .with_tokens(100)
            .with_cost(Money::from_micros(100_000_000))
            .with_wall_time(second);
        raise(&mut harness, raised);
        harness.submit("now");
        assert_eq!(harness.requests.len(), 2, "{kind:?}");
        assert!(harness.sent()[2].starts_with("results a0:ok"), "the call is answered: {kind:?}");
        harness.say("done");
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    }
}

#[test]
fn run_without_further_calls_completes_at_the_limit() {
    let mut harness = harness(Limits::default().with_tokens(40).with_tool_calls(1));
    harness.submit("go");
    harness.round("a");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
    assert_eq!(reached(&harness), []);
    assert_eq!(harness.machine.spent().tokens(), 22);
}

#[test]
fn calls_beyond_the_limit_are_answered_as_not_run() {
    let mut harness = harness(Limits::default().with_tool_calls(2));
    harness.submit("go");
    harness.call(&["a", "b", "c", "d"]);
    harness.wanted();
    harness.asks(0);
    for index in [1, 2] {
        harness.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(harness.wanted(), ["ask 0", "start 1", "start 2", "withdraw 0"], "approvals are withdrawn");
    harness.prepared(3, Effect::Read, &[]);
    let decided = InputKind::ApprovalDecided { call: harness.key(0), approved: true, reason: None, by: None };
    harness.tell(decided);
    assert_eq!(harness.wanted(), [""; 0], "late inputs change nothing");
    harness.finish(2, "seen");
    harness.finish(1, "heard");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    assert_eq!(reached(&harness), [(BudgetKind::ToolCalls, 2, 2)]);
    raise(&mut harness, Limits::default().with_tool_calls(3));
    harness.submit("go on");
    let results = &harness.sent()[2];
    assert!(results.starts_with("results a0:Not run: the session has reached a limit"), "{results}");
    assert!(results.contains("b0:heard c0:seen d0:Not run"), "{results}");
    harness.round("e");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn concurrent_calls_start_up_to_the_limit() {
    for (limit, started) in [(9, vec!["start 0", "start 1", "start 2"]), (2, vec!["start 0", "start 1"])] {
        let mut harness = harness(Limits::default().with_tool_calls(limit));
        harness.submit("go");
        harness.call(&["a", "b", "c"]);
        harness.wanted();
        // The first call is prepared last, and the others wait for it.
        for index in [2, 1, 0] {
            harness.prepared(index, Effect::Read, &[]);
        }
        assert_eq!(harness.wanted(), started, "{limit} may run");
    }
}

#[test]
fn refused_calls_are_not_counted() {
    let mut harness = harness(Limits::default().with_tool_calls(1));
    harness.submit("go");
    harness.call(&["nope", "a"]);
    let preparation =
        Preparation::Refused { error: ToolErrorKind::UnknownTool, message: "Unknown tool: nope".into() };
    let key = harness.key(0);
    harness.judged(key, preparation);
    harness.prepared(1, Effect::Read, &[]);
    harness.finish(1, "ok");
    assert_eq!((harness.requests.len(), harness.machine.spent().tool_calls), (2, 1));
}

#[test]
fn zero_budget_allows_no_call() {
    for budget in [Limits::default().with_tokens(0), Limits::default().with_cost(Money::from_micros(0))] {
        let mut harness = harness(budget);
        harness.submit("go");
        assert_eq!((harness.last_outcome().0, harness.requests.len()), (OutcomeStatus::Budget, 0));
    }
    let mut harness = harness(Limits::default().with_tool_calls(0));
    harness.submit("go");
    harness.wanted();
    harness.call(&["a"]);
    harness.prepared(0, Effect::Read, &[]);
    assert_eq!(harness.wanted(), [""; 0], "no call is prepared");
    assert_eq!((harness.last_outcome().0, harness.requests.len()), (OutcomeStatus::Budget, 1));
}

#[test]
fn unpriced_model_is_not_called_under_cost_limit() {
    let mut harness = harness(Limits::default().with_cost(Money::from_micros(100_000_000)));
    harness.submit("go");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    let error = harness.outcomes[0].error.clone().unwrap();
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
    assert!(error.message.contains("the price of `m` is unknown"), "{error}");
    assert_eq!(harness.requests.len(), 0);
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.tell(InputKind::Submit { run: RunId(2), message: "again".into() });
    harness.load_this(priced());
    harness.say("done");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn unknown_cost_cannot_be_limited_later() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.say("done");
    assert_eq!(harness.machine.spent().cost, None);
    raise(&mut harness, Limits::default().with_cost(Money::from_micros(1_000_000)));
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.tell(InputKind::Submit { run: RunId(2), message: "again".into() });
    harness.load_this(priced());
    let error = harness.outcomes[1].error.clone().unwrap();
    assert!(error.message.contains("were called before it was set"), "{error}");
    raise(&mut harness, Limits::default().with_tokens(100));
    harness.submit("and now");
    harness.say("done");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn cached_tokens_without_a_price_cost_like_others() {
    let mut usage = Usage::new(10, 1);
    usage.cache_read_tokens = Some(4);
    let spent = crate::turn::budget::spent_on(&usage, priced().pricing.as_deref());
    assert_eq!(spent.cost, Some(Money::from_micros(11_000_000)));
}

#[test]
fn wall_time_stops_a_model_call() {
    let mut harness = harness(Limits::default().with_wall_time(Duration::from_secs(60)));
    harness.submit("go");
    assert_eq!(harness.wanted(), ["timer 60", "load"]);
    harness.clock += 60_000;
    harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!(harness.wanted(), ["cancel model"]);
    harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    harness.tell(InputKind::Interrupt);
    harness.failed(ErrorKind::Abort, "so far");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    assert!(matches!(reached(&harness)[..], [(BudgetKind::WallTimeMs, 60_000, 60_000..)]));
    harness.submit("go on");
    assert_eq!(harness.sent(), ["user go", "assistant so far", "user go on"], "each run has its time");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn wall_time_stops_a_round_and_answers_its_calls() {
    let mut harness = harness(Limits::default().with_wall_time(Duration::from_secs(60)));
    harness.submit("go");
    harness.call(&["runs", "asks"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.tell(InputKind::ToolStarted { call: harness.key(0) });
    harness.asks(1);
    harness.wanted();
    harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!(harness.wanted(), ["cancel 0", "withdraw 1"]);
    harness.tell(InputKind::ToolLost { call: harness.key(0) });
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    harness.submit("go on");
    assert!(harness.sent()[2].starts_with("results a0:Interrupted: the turn was stopped while"));
    assert!(harness.sent()[2].contains("b0:Not run: the turn was stopped"));
}

#[test]
fn timer_counts_even_if_the_clock_jumped_back() {
    let mut harness = harness(Limits::default().with_wall_time(Duration::from_secs(60)));
    harness.clock = 1_000_000;
    harness.submit("go");
    harness.clock = 0;
    harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    harness.failed(ErrorKind::Abort, "");
    assert_eq!(reached(&harness), [(BudgetKind::WallTimeMs, 60_000, 60_000)]);
}

#[test]
fn wall_time_can_change_during_a_run() {
    let seconds = |seconds| Limits::default().with_wall_time(Duration::from_secs(seconds));
    let mut harness = harness(Limits::default());
    harness.submit("go");
    harness.clock += 10_000;
    harness.wanted();
    raise(&mut harness, seconds(60));
    raise(&mut harness, seconds(60));
    raise(&mut harness, seconds(5));
    assert_eq!(harness.wanted(), ["timer 49", "timer 0"], "it counts from the beginning of the run");
    raise(&mut harness, Limits::default());
    harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!(harness.wanted(), [""; 0], "a timer without a limit has no effect");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
    raise(&mut harness, seconds(60));
    harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!((harness.wanted(), harness.outcomes.len()), (Vec::<String>::new(), 1), "nothing runs");
}

#[test]
fn queued_messages_survive_a_spent_budget() {
    let mut harness = harness(Limits::default().with_tokens(31));
    harness.submit("go");
    harness.tell(InputKind::FollowUp { message: "later".into() });
    harness.round("a");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Budget);
    harness.tell(InputKind::Steer { message: "this way".into() });
    raise(&mut harness, Limits::default());
    harness.submit("go on");
    assert_eq!(harness.sent()[3..], ["user go on", "user this way"]);
    harness.say("done");
    assert_eq!(harness.sent().last().unwrap(), "user later");
}

#[test]
fn subagent_gets_the_remaining_budget() {
    let budget = Limits::default()
        .with_tokens(100)
        .with_cost(Money::from_micros(100))
        .with_tool_calls(1)
        .with_wall_time(Duration::from_secs(1));
    let mut spent = BudgetUsage {
        input_tokens: 20,
        output_tokens: 5,
        cost: Some(Money::from_micros(120)),
        tool_calls: 1,
    };
    let expected = Limits::default().with_tokens(75).with_cost(Money::from_micros(0)).with_tool_calls(0);
    assert_eq!(budget.remaining(&spent), expected, "time is not inherited");
    spent.cost = None;
    assert_eq!(budget.remaining(&spent).cost, Some(Money::ZERO), "an unknown cost leaves no budget");
    assert_eq!(Limits::default().remaining(&spent), Limits::default());
}

#[test]
fn budget_takes_precedence_over_a_question() {
    let mut harness = harness(Limits::default().with_tool_calls(1));
    harness.submit("go");
    harness.call(&["ask_user", "is held"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.ask(0, "Which port?");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    assert_eq!(reached(&harness), [(BudgetKind::ToolCalls, 1, 1)]);
}

#[test]
fn interrupt_takes_precedence_over_wall_time() {
    let mut harness = harness(Limits::default().with_wall_time(Duration::from_secs(60)));
    harness.submit("go");
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    harness.failed(ErrorKind::Abort, "");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    assert_eq!(reached(&harness), []);
}
