//! What may be spent, and what happens when it is.

use pintle_llm::ModelInfo;

use super::*;

/// A dollar for every token.
fn priced() -> TurnContext {
    let mut model = ModelInfo::new("p", "m", 1_000);
    model.input_cost_per_million = Some(1e6);
    model.output_cost_per_million = Some(1e6);
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.pricing = Some(Box::new(model));
    context
}

fn bench(budget: Budget) -> Bench {
    Bench::with(TurnLimits { budget, ..TurnLimits::default() })
}

fn raise(bench: &mut Bench, budget: Budget) {
    let limits = TurnLimits { budget, ..TurnLimits::default() };
    bench.tell(InputKind::Configure { change: Change::Limits(limits) });
}

fn reached(bench: &Bench) -> Vec<(BudgetKind, u64, u64)> {
    let of = |event: &EventKind| match event {
        EventKind::BudgetReached { budget, limit, spent } => Some((*budget, *limit, *spent)),
        _ => None,
    };
    bench.events.iter().filter_map(of).collect()
}

/// Each answer takes eleven tokens, which cost eleven dollars.
#[test]
fn each_limit_pauses_before_the_next_call_and_goes_on_when_it_is_raised() {
    let second = Duration::from_secs(1);
    let rows = [
        (Budget::default().with_tokens(11), BudgetKind::Tokens, 11, 11),
        (Budget::default().with_tokens(10), BudgetKind::Tokens, 10, 11),
        (Budget::default().with_cost_micros(10_500_000), BudgetKind::CostMicros, 10_500_000, 11_000_000),
        // The clock of the bench counts a millisecond for each input: six for a round.
        (Budget::default().with_wall_time(Duration::from_millis(6)), BudgetKind::WallTimeMs, 6, 6),
    ];
    for (budget, kind, limit, spent) in rows {
        let mut bench = bench(budget);
        bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
        bench.load_this(priced());
        bench.clock += 1;
        bench.round("a");
        assert_eq!(bench.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle), "{kind:?}");
        assert_eq!(reached(&bench), [(kind, limit, spent)]);
        assert_eq!(bench.kinds()[bench.kinds().len() - 2..], ["BUDGET_REACHED", "PROCESSING_END"]);
        assert_eq!(bench.requests.len(), 1);
        if kind != BudgetKind::WallTimeMs {
            bench.submit("go on");
            assert_eq!((bench.outcomes.len(), bench.requests.len()), (2, 1), "the limit stays met: {kind:?}");
        }
        let raised = Budget::default().with_tokens(100).with_cost_micros(100_000_000).with_wall_time(second);
        raise(&mut bench, raised);
        bench.submit("now");
        assert_eq!(bench.requests.len(), 2, "{kind:?}");
        let result =
            if kind == BudgetKind::WallTimeMs { "ok" } else { "Not run: the session has reached a limit" };
        assert!(
            bench.sent()[2].starts_with(&format!("results a0:{result}")),
            "the call is answered: {kind:?}"
        );
        bench.say("done");
        assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    }
}

#[test]
fn what_needs_no_further_call_completes_at_the_limit() {
    let mut bench = bench(Budget::default().with_tokens(22).with_tool_calls(1));
    bench.submit("go");
    bench.round("a");
    bench.say("done");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
    assert_eq!(reached(&bench), []);
    assert_eq!(bench.machine.spent().tokens(), 22);
}

#[test]
fn no_more_tools_run_than_may_and_the_rest_is_answered() {
    let mut bench = bench(Budget::default().with_tool_calls(2));
    bench.submit("go");
    bench.call(&["a", "b", "c", "d"]);
    bench.wanted();
    bench.asks(0);
    for index in [1, 2] {
        bench.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(bench.wanted(), ["ask 0", "run 1", "run 2", "withdraw 0"], "nobody need decide any more");
    bench.prepared(3, Effect::Read, &[]);
    let decided = InputKind::ApprovalDecided { call: bench.key(0), approved: true, reason: None };
    bench.tell(decided);
    assert_eq!(bench.wanted(), [""; 0], "what comes late changes nothing");
    bench.finish(2, "seen");
    bench.finish(1, "heard");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    assert_eq!(reached(&bench), [(BudgetKind::ToolCalls, 2, 2)]);
    raise(&mut bench, Budget::default().with_tool_calls(3));
    bench.submit("go on");
    let results = &bench.sent()[2];
    assert!(results.starts_with("results a0:Not run: the session has reached a limit"), "{results}");
    assert!(results.contains("b0:heard c0:seen d0:Not run"), "{results}");
    bench.round("e");
    bench.say("done");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn as_many_calls_start_at_once_as_may() {
    for (limit, started) in [(9, vec!["run 0", "run 1", "run 2"]), (2, vec!["run 0", "run 1"])] {
        let mut bench = bench(Budget::default().with_tool_calls(limit));
        bench.submit("go");
        bench.call(&["a", "b", "c"]);
        bench.wanted();
        // The first is prepared last, and the others wait for it.
        for index in [2, 1, 0] {
            bench.prepared(index, Effect::Read, &[]);
        }
        assert_eq!(bench.wanted(), started, "{limit} may run");
    }
}

#[test]
fn calls_that_are_refused_are_not_counted() {
    let mut bench = bench(Budget::default().with_tool_calls(1));
    bench.submit("go");
    bench.call(&["nope", "a"]);
    let preparation =
        Preparation::Refused { error: ToolErrorKind::UnknownTool, message: "Unknown tool: nope".into() };
    bench.tell(InputKind::CallPrepared { call: bench.key(0), preparation });
    bench.prepared(1, Effect::Read, &[]);
    bench.finish(1, "ok");
    assert_eq!((bench.requests.len(), bench.machine.spent().tool_calls), (2, 1));
}

#[test]
fn nothing_may_be_spent_of_a_budget_of_nothing() {
    for budget in [Budget::default().with_tokens(0), Budget::default().with_cost_micros(0)] {
        let mut bench = bench(budget);
        bench.submit("go");
        assert_eq!((bench.last_outcome().0, bench.requests.len()), (OutcomeStatus::Budget, 0));
    }
    let mut bench = bench(Budget::default().with_tool_calls(0));
    bench.submit("go");
    bench.wanted();
    bench.call(&["a"]);
    bench.prepared(0, Effect::Read, &[]);
    assert_eq!(bench.wanted(), [""; 0], "nothing is prepared for nothing");
    assert_eq!((bench.last_outcome().0, bench.requests.len()), (OutcomeStatus::Budget, 1));
}

#[test]
fn a_model_without_a_price_is_not_called_under_a_limit_on_cost() {
    let mut bench = bench(Budget::default().with_cost_micros(1));
    bench.submit("go");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    let error = bench.outcomes[0].error.clone().unwrap();
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
    assert!(error.message.contains("the price of `m` is unknown"), "{error}");
    assert_eq!(bench.requests.len(), 0);
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.tell(InputKind::Submit { run: RunId(2), text: "again".into() });
    bench.load_this(priced());
    bench.say("done");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn a_cost_that_is_not_known_cannot_be_limited_later() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("done");
    assert_eq!(bench.machine.spent().cost_micros, None);
    raise(&mut bench, Budget::default().with_cost_micros(1_000_000));
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.tell(InputKind::Submit { run: RunId(2), text: "again".into() });
    bench.load_this(priced());
    let error = bench.outcomes[1].error.clone().unwrap();
    assert!(error.message.contains("were called before it was set"), "{error}");
    raise(&mut bench, Budget::default().with_tokens(100));
    bench.submit("and now");
    bench.say("done");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn a_price_that_is_unknown_for_cached_tokens_only_is_that_of_the_others() {
    let mut usage = Usage::new(10, 1);
    usage.cache_read_tokens = Some(4);
    let spent = Spent::of_answer(&usage, priced().pricing.as_deref());
    assert_eq!(spent.cost_micros, Some(11_000_000));
}

#[test]
fn the_end_of_the_time_stops_a_model_call() {
    let mut bench = bench(Budget::default().with_wall_time(Duration::from_secs(60)));
    bench.submit("go");
    assert_eq!(bench.wanted(), ["timer 60", "load"]);
    bench.clock += 60_000;
    bench.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!(bench.wanted(), ["cancel model"]);
    bench.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    bench.tell(InputKind::Interrupt);
    bench.failed(ErrorKind::Abort, "so far");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    assert!(matches!(reached(&bench)[..], [(BudgetKind::WallTimeMs, 60_000, 60_000..)]));
    bench.submit("go on");
    assert_eq!(bench.sent(), ["user go", "assistant so far", "user go on"], "each run has its time");
    bench.say("done");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn the_end_of_the_time_stops_a_round_and_answers_truthfully() {
    let mut bench = bench(Budget::default().with_wall_time(Duration::from_secs(60)));
    bench.submit("go");
    bench.call(&["runs", "asks"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.tell(InputKind::ToolStarted { call: bench.key(0) });
    bench.asks(1);
    bench.wanted();
    bench.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!(bench.wanted(), ["cancel 0", "withdraw 1"]);
    bench.tell(InputKind::ToolLost { call: bench.key(0) });
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    bench.submit("go on");
    assert!(bench.sent()[2].starts_with("results a0:Interrupted: the turn was stopped while"));
    assert!(bench.sent()[2].contains("b0:Not run: the turn was stopped"));
}

#[test]
fn a_timer_is_believed_although_the_clock_has_jumped_back() {
    let mut bench = bench(Budget::default().with_wall_time(Duration::from_secs(60)));
    bench.clock = 1_000_000;
    bench.submit("go");
    bench.clock = 0;
    bench.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    bench.failed(ErrorKind::Abort, "");
    assert_eq!(reached(&bench), [(BudgetKind::WallTimeMs, 60_000, 60_000)]);
}

#[test]
fn the_time_of_a_run_can_be_changed_while_it_goes_on() {
    let seconds = |seconds| Budget::default().with_wall_time(Duration::from_secs(seconds));
    let mut bench = bench(Budget::default());
    bench.submit("go");
    bench.clock += 10_000;
    bench.wanted();
    raise(&mut bench, seconds(60));
    raise(&mut bench, seconds(60));
    raise(&mut bench, seconds(5));
    assert_eq!(bench.wanted(), ["timer 49", "timer 0"], "it counts from the beginning of the run");
    raise(&mut bench, Budget::default());
    bench.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!(bench.wanted(), [""; 0], "a timer whose limit is gone means nothing");
    bench.say("done");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
    raise(&mut bench, seconds(60));
    bench.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    assert_eq!((bench.wanted(), bench.outcomes.len()), (Vec::<String>::new(), 1), "nothing runs");
}

#[test]
fn follow_ups_and_steering_wait_for_the_budget() {
    let mut bench = bench(Budget::default().with_tokens(5));
    bench.submit("go");
    bench.tell(InputKind::FollowUp { text: "later".into() });
    bench.round("a");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Budget);
    bench.tell(InputKind::Steer { text: "this way".into() });
    raise(&mut bench, Budget::default());
    bench.submit("go on");
    assert_eq!(bench.sent()[3..], ["user go on", "user this way"]);
    bench.say("done");
    assert_eq!(bench.sent().last().unwrap(), "user later");
}

#[test]
fn what_is_left_is_what_a_subagent_may_spend() {
    let budget = Budget::default()
        .with_tokens(100)
        .with_cost_micros(100)
        .with_tool_calls(1)
        .with_wall_time(Duration::from_secs(1));
    let mut spent = Spent { input_tokens: 20, output_tokens: 5, cost_micros: Some(120), tool_calls: 1 };
    let expected = Budget::default().with_tokens(75).with_cost_micros(0).with_tool_calls(0);
    assert_eq!(budget.left(&spent), expected, "time is not handed on");
    spent.cost_micros = None;
    assert_eq!(budget.left(&spent).cost_micros, Some(0), "an unknown cost leaves nothing");
    assert_eq!(Budget::default().left(&spent), Budget::default());
}

#[test]
fn a_limit_that_holds_a_call_back_comes_before_a_question() {
    let mut bench = bench(Budget::default().with_tool_calls(1));
    bench.submit("go");
    bench.call(&["ask_user", "is held"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.ask(0, "Which port?");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Budget, SessionState::Idle));
    assert_eq!(reached(&bench), [(BudgetKind::ToolCalls, 1, 1)]);
}

#[test]
fn a_turn_that_is_being_interrupted_when_its_time_is_over_was_interrupted() {
    let mut bench = bench(Budget::default().with_wall_time(Duration::from_secs(60)));
    bench.submit("go");
    bench.tell(InputKind::Interrupt);
    bench.tell(InputKind::TimerFired { timer: Timer::Run(RunId(1)) });
    bench.failed(ErrorKind::Abort, "");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    assert_eq!(reached(&bench), []);
}
