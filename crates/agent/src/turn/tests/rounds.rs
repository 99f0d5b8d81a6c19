//! The calls of one answer.

use super::*;

#[test]
fn a_tool_round_answers_every_call_in_the_order_of_the_calls() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["grep", "glob", "read_file"]);
    bench.wanted();
    for index in [2, 0, 1] {
        bench.prepared(index, Effect::Read, &[]);
    }
    for (index, text) in [(1, "second"), (2, "third"), (0, "first")] {
        bench.finish(index, text);
    }
    assert_eq!(
        bench.sent(),
        ["user go", "calls a0=grep b0=glob c0=read_file", "results a0:first b0:second c0:third"]
    );
    bench.say("done");
    assert_eq!(bench.outcomes[0].tool_calls, 3);
    assert_eq!(bench.outcomes[0].model_calls, 2);
}

#[test]
fn which_calls_of_a_round_run_at_the_same_time() {
    type Plan = (Effect, &'static [&'static str]);
    let read: Plan = (Effect::Read, &[]);
    let run: Plan = (Effect::Execute, &[]);
    let write_a: Plan = (Effect::Write, &["/w/a"]);
    let write_b: Plan = (Effect::Write, &["/w/b"]);
    let rows: [(&[Plan], &[&str]); 7] = [
        (&[read, read, read], &["run 0", "run 1", "run 2"]),
        (&[write_a, write_b], &["run 0", "run 1"]),
        (&[write_a, write_a], &["run 0"]),
        (&[write_a, read, write_a], &["run 0", "run 1"]),
        (&[run, write_a], &["run 0"]),
        (&[write_a, run], &["run 0"]),
        (&[run, run], &["run 0", "run 1"]),
    ];
    for (plans, started) in rows {
        let mut bench = Bench::new();
        bench.submit("go");
        bench.call(&vec!["tool"; plans.len()]);
        bench.wanted();
        for (index, (effect, writes)) in plans.iter().enumerate() {
            bench.prepared(index, *effect, writes);
        }
        assert_eq!(bench.wanted(), started, "{plans:?}");
        for index in 0..plans.len() {
            bench.finish(index, "ok");
        }
        assert_eq!(bench.requests.len(), 2, "every call runs in the end: {plans:?}");
    }
}

#[test]
fn without_parallel_calls_they_run_one_by_one() {
    let mut bench = Bench::new();
    bench.runs = 1;
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.parallel_tool_calls = false;
    bench.load_this(context);
    bench.call(&["a", "b"]);
    bench.wanted();
    bench.prepared(1, Effect::Read, &[]);
    assert_eq!(bench.wanted(), [""; 0], "the second waits for the first");
    bench.prepared(0, Effect::Read, &[]);
    assert_eq!(bench.wanted(), ["run 0"]);
    bench.finish(0, "x");
    assert_eq!(bench.wanted(), ["run 1"]);
}

#[test]
fn no_more_than_the_limit_run_at_once() {
    let mut bench = Bench::with(TurnLimits { max_parallel_tools: 2, ..TurnLimits::default() });
    bench.submit("go");
    bench.call(&["a", "b", "c"]);
    bench.wanted();
    for index in 0..3 {
        bench.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(bench.wanted(), ["run 0", "run 1"]);
    bench.finish(1, "x");
    assert_eq!(bench.wanted(), ["run 2"]);
}

#[test]
fn a_question_asked_with_a_tool_awaits_its_answer_with_the_round_in_the_history() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["ask_user", "look"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.prepared(1, Effect::Read, &[]);
    bench.ask(0, "Which port?");
    assert!(bench.outcomes.is_empty(), "the other call still runs");
    bench.finish(1, "seen");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::AwaitingInput, SessionState::AwaitingInput));
    assert_eq!(bench.outcomes[0].text, "Which port?");
    assert_eq!(bench.requests.len(), 1);
    bench.submit("8080");
    assert_eq!(
        bench.sent(),
        ["user go", "calls a0=ask_user b0=look", "results a0:asked b0:seen", "user 8080"]
    );
    bench.say("ok");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn approval_runs_or_refuses_a_call() {
    let mut bench =
        Bench::with(TurnLimits { approval_timeout: Some(Duration::from_secs(60)), ..TurnLimits::default() });
    bench.submit("go");
    bench.call(&["a", "b", "c"]);
    bench.wanted();
    for index in 0..3 {
        bench.asks(index);
    }
    assert_eq!(bench.wanted(), ["timer 60", "ask 0", "timer 60", "ask 1", "timer 60", "ask 2"]);
    let decide = |bench: &mut Bench, index, approved| {
        let reason = Some("not now".to_owned());
        let call = bench.key(index);
        bench.tell(InputKind::ApprovalDecided { call, approved, reason });
    };
    decide(&mut bench, 0, true);
    decide(&mut bench, 1, false);
    decide(&mut bench, 1, true);
    bench.tell(InputKind::TimerFired { timer: Timer::Approval(bench.key(0)) });
    bench.tell(InputKind::TimerFired { timer: Timer::Approval(bench.key(2)) });
    assert_eq!(bench.wanted(), ["run 0"], "a decision is for one call and stands");
    bench.finish(0, "ran");
    assert_eq!(
        bench.sent()[2],
        "results a0:ran b0:The call of b was denied: not now c0:The call of c was denied: nobody decided in time"
    );
}

#[test]
fn a_refused_call_is_an_error_result() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["shel"]);
    let preparation =
        Preparation::Refused { error: ToolErrorKind::UnknownTool, message: "Unknown tool: shel".into() };
    bench.tell(InputKind::CallPrepared { call: bench.key(0), preparation });
    assert_eq!(bench.sent()[2], "results a0:Unknown tool: shel");
    let result = bench.machine.history()[2].item.results().next().unwrap().clone();
    assert!(result.is_error);
}

#[test]
fn a_lost_environment_ends_the_turn_after_the_round() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["a"]);
    bench.prepared(0, Effect::Execute, &[]);
    bench.tell(InputKind::ToolStarted { call: bench.key(0) });
    bench.finish_started(0, "gone", Some(ToolErrorKind::EnvironmentLost));
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    assert_eq!(bench.machine.history().len(), 3, "the call has its result");
}

#[test]
fn what_was_mended_in_a_call_is_told_before_it_starts() {
    use pintle_tools::{ArgumentRepair, RepairKind};

    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["read", "read"]);
    let repairs = vec![ArgumentRepair::new("limit", RepairKind::NumberFromText)];
    let plan =
        CallPlan { effect: Effect::Read, repeatable: true, writes: Vec::new(), repairs: repairs.clone() };
    bench.tell(InputKind::CallPrepared { call: bench.key(0), preparation: Preparation::Ready(plan) });
    bench.prepared(1, Effect::Read, &[]);
    bench.finish(0, "text");
    let told: Vec<&EventKind> = bench
        .events
        .iter()
        .filter(|event| matches!(event, EventKind::ToolCallRepaired { .. } | EventKind::ToolCallStart { .. }))
        .collect();
    assert!(
        matches!(told.as_slice(), [
        EventKind::ToolCallRepaired { tool_name, repairs: found, .. },
        EventKind::ToolCallStart { .. },
    ] if tool_name == "read" && *found == repairs),
        "{told:?}"
    );
}

#[test]
fn a_place_that_is_lost_before_a_call_could_run_ends_the_turn_after_the_round() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["a", "b"]);
    let message = "The place where tools run cannot be used".to_owned();
    let preparation = Preparation::Refused { error: ToolErrorKind::EnvironmentLost, message };
    bench.tell(InputKind::CallPrepared { call: bench.key(0), preparation });
    bench.prepared(1, Effect::Read, &[]);
    bench.finish(1, "ok");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    assert_eq!((bench.machine.history().len(), bench.requests.len()), (3, 1), "no model is asked once more");
    bench.submit("again");
    bench.say("done");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed, "the loss is told once");
}

#[test]
fn what_an_earlier_call_of_the_model_gave_comes_too_late() {
    let mut bench = Bench::new();
    bench.submit("go");
    let (first, late) = (bench.model_call(), bench.key(0));
    bench.round("a");
    assert_ne!(bench.model_call(), first);
    let response = Box::new(Response::new("p", "m", Message::assistant("late")));
    bench.tell(InputKind::ModelReplied { model_call: first, response });
    let error = Error::new(ErrorKind::Server, "late").info().clone();
    bench.tell(InputKind::ModelFailed { model_call: first, error, partial: String::new() });
    assert_eq!((bench.machine.history().len(), bench.outcomes.len()), (3, 0));
    bench.call(&["b"]);
    bench.wanted();
    let plan = CallPlan { effect: Effect::Read, repeatable: true, writes: Vec::new(), repairs: Vec::new() };
    bench.tell(InputKind::CallPrepared { call: late, preparation: Preparation::Ready(plan) });
    bench.tell(InputKind::ToolLost { call: late });
    assert_eq!(bench.wanted(), [""; 0]);
}
