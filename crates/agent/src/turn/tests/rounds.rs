//! Calls of one response.

use super::*;
use crate::protocol::{CallKind, PolicyChange};

#[test]
fn a_tool_round_answers_every_call_in_the_order_of_the_calls() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["grep", "glob", "read_file"]);
    harness.wanted();
    for index in [2, 0, 1] {
        harness.prepared(index, Effect::Read, &[]);
    }
    for (index, text) in [(1, "second"), (2, "third"), (0, "first")] {
        harness.finish(index, text);
    }
    assert_eq!(
        harness.sent(),
        ["user go", "calls a0=grep b0=glob c0=read_file", "results a0:first b0:second c0:third"]
    );
    harness.say("done");
    assert_eq!(harness.outcomes[0].tool_calls, 3);
    assert_eq!(harness.outcomes[0].model_calls, 2);
}

#[test]
fn effects_decide_which_calls_run_concurrently() {
    type Plan = (Effect, &'static [&'static str]);
    let read: Plan = (Effect::Read, &[]);
    let run: Plan = (Effect::Execute, &[]);
    let write_a: Plan = (Effect::Write, &["/w/a"]);
    let write_b: Plan = (Effect::Write, &["/w/b"]);
    let cases: [(&[Plan], &[&str]); 7] = [
        (&[read, read, read], &["start 0", "start 1", "start 2"]),
        (&[write_a, write_b], &["start 0", "start 1"]),
        (&[write_a, write_a], &["start 0"]),
        (&[write_a, read, write_a], &["start 0", "start 1"]),
        (&[run, write_a], &["start 0"]),
        (&[write_a, run], &["start 0"]),
        (&[run, run], &["start 0", "start 1"]),
    ];
    for (plans, started) in cases {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.call(&vec!["tool"; plans.len()]);
        harness.wanted();
        for (index, (effect, writes)) in plans.iter().enumerate() {
            harness.prepared(index, *effect, writes);
        }
        assert_eq!(harness.wanted(), started, "{plans:?}");
        for index in 0..plans.len() {
            harness.finish(index, "ok");
        }
        assert_eq!(harness.requests.len(), 2, "every call runs in the end: {plans:?}");
    }
}

#[test]
fn calls_run_one_by_one_without_parallelism() {
    let mut harness = Harness::new();
    harness.runs = 1;
    harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.parallel_tool_calls = false;
    harness.load_this(context);
    harness.call(&["a", "b"]);
    harness.wanted();
    harness.prepared(1, Effect::Read, &[]);
    assert_eq!(harness.wanted(), [""; 0], "the second waits for the first");
    harness.prepared(0, Effect::Read, &[]);
    assert_eq!(harness.wanted(), ["start 0"]);
    harness.finish(0, "x");
    assert_eq!(harness.wanted(), ["start 1"]);
}

#[test]
fn parallel_limit_is_respected() {
    let mut harness = Harness::with(TurnLimits { max_parallel_tools: 2, ..TurnLimits::default() });
    harness.submit("go");
    harness.call(&["a", "b", "c"]);
    harness.wanted();
    for index in 0..3 {
        harness.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(harness.wanted(), ["start 0", "start 1"]);
    harness.finish(1, "x");
    assert_eq!(harness.wanted(), ["start 2"]);
}

#[test]
fn question_of_a_tool_awaits_its_answer() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["ask_user", "look"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.prepared(1, Effect::Read, &[]);
    harness.ask(0, "Which port?");
    assert!(harness.outcomes.is_empty(), "the other call still runs");
    harness.finish(1, "seen");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::AwaitingInput, SessionState::AwaitingInput));
    assert_eq!(harness.outcomes[0].text, "Which port?");
    assert_eq!(harness.requests.len(), 1);
    harness.submit("8080");
    assert_eq!(
        harness.sent(),
        ["user go", "calls a0=ask_user b0=look", "results a0:asked b0:seen", "user 8080"]
    );
    harness.say("ok");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn approval_runs_or_refuses_a_call() {
    let mut harness = Harness::with(TurnLimits {
        approval_timeout: Some(Duration::from_secs(60)),
        ..TurnLimits::default()
    });
    harness.submit("go");
    harness.call(&["a", "b", "c"]);
    harness.wanted();
    for index in 0..3 {
        harness.asks(index);
    }
    assert_eq!(harness.wanted(), ["timer 60", "ask 0", "timer 60", "ask 1", "timer 60", "ask 2"]);
    let decide = |harness: &mut Harness, index, approved| {
        let reason = Some("not now".to_owned());
        let call = harness.key(index);
        harness.tell(InputKind::ApprovalDecided { call, approved, reason, by: None });
    };
    decide(&mut harness, 0, true);
    decide(&mut harness, 1, false);
    decide(&mut harness, 1, true);
    harness.tell(InputKind::TimerFired { timer: Timer::Approval(harness.key(0)) });
    harness.tell(InputKind::TimerFired { timer: Timer::Approval(harness.key(2)) });
    assert_eq!(harness.wanted(), ["start 0"], "a decision applies to one call and is final");
    harness.finish(0, "ran");
    assert_eq!(
        harness.sent()[2],
        "results a0:ran b0:The call of b was denied: not now c0:The call of c was denied: nobody decided in time"
    );
}

#[test]
fn refused_call_has_an_error_result() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["shel"]);
    let preparation =
        Preparation::Refused { error: ToolErrorKind::UnknownTool, message: "Unknown tool: shel".into() };
    let key = harness.key(0);
    harness.judged(key, preparation);
    assert_eq!(harness.sent()[2], "results a0:Unknown tool: shel");
    let result = harness.machine.history()[2].item.results().next().unwrap().clone();
    assert!(result.is_error);
}

#[test]
fn lost_environment_ends_the_turn_after_the_round() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["a"]);
    harness.prepared(0, Effect::Execute, &[]);
    harness.tell(InputKind::ToolStarted { call: harness.key(0) });
    harness.finish_started(0, "gone", Some(ToolErrorKind::EnvironmentLost));
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    assert_eq!(harness.machine.history().len(), 3, "the call has its result");
}

#[test]
fn repairs_are_reported_before_the_call_starts() {
    use pintle_tools::{ArgumentRepair, RepairKind};

    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["read", "read"]);
    let repairs = vec![ArgumentRepair::new("limit", RepairKind::NumberFromText)];
    let plan = CallPlan {
        effect: Effect::Read,
        repeatable: true,
        declares_changes: false,
        writes: Vec::new(),
        repairs: repairs.clone(),
    };
    let key = harness.key(0);
    harness.judged(key, Preparation::Ready(plan));
    harness.prepared(1, Effect::Read, &[]);
    harness.finish(0, "text");
    let reported: Vec<&EventKind> = harness
        .events
        .iter()
        .filter(|event| matches!(event, EventKind::ToolCallRepaired { .. } | EventKind::ToolCallStart { .. }))
        .collect();
    assert!(
        matches!(reported.as_slice(), [
        EventKind::ToolCallRepaired { tool_name, repairs: found, .. },
        EventKind::ToolCallStart { .. },
    ] if tool_name == "read" && *found == repairs),
        "{reported:?}"
    );
}

#[test]
fn environment_lost_before_a_call_ends_the_turn() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["a", "b"]);
    let message = "The execution environment cannot be used".to_owned();
    let preparation = Preparation::Refused { error: ToolErrorKind::EnvironmentLost, message };
    let key = harness.key(0);
    harness.judged(key, preparation);
    harness.prepared(1, Effect::Read, &[]);
    harness.finish(1, "ok");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    assert_eq!(
        (harness.machine.history().len(), harness.requests.len()),
        (3, 1),
        "the model is not called again"
    );
    harness.submit("again");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed, "the loss is reported once");
}

#[test]
fn results_of_an_earlier_round_are_ignored() {
    let mut harness = Harness::new();
    harness.submit("go");
    let (first, late) = (harness.model_call(), harness.key(0));
    harness.round("a");
    assert_ne!(harness.model_call(), first);
    let response = Box::new(Response::new("p", "m", Message::assistant("late")));
    harness.tell(InputKind::ModelReplied { model_call: first, response });
    let error = Error::new(ErrorKind::Server, "late").info().clone();
    harness.tell(InputKind::ModelFailed { model_call: first, error, partial: String::new() });
    assert_eq!((harness.machine.history().len(), harness.outcomes.len()), (3, 0));
    harness.call(&["b"]);
    harness.wanted();
    let plan = CallPlan {
        effect: Effect::Read,
        repeatable: true,
        declares_changes: false,
        writes: Vec::new(),
        repairs: Vec::new(),
    };
    harness.judged(late, Preparation::Ready(plan));
    harness.tell(InputKind::ToolLost { call: late });
    assert_eq!(harness.wanted(), [""; 0]);
}

#[test]
fn call_runs_once_its_start_is_recorded() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["shell"]);
    harness.prepared(0, Effect::Execute, &[]);
    assert_eq!(harness.wanted().last().unwrap(), "start 0");
    assert!(harness.ran.is_empty(), "its start is not recorded yet");
    assert!(!harness.kinds().contains(&"TOOL_CALL_START".to_owned()));
    let call = harness.key(0);
    for _ in 0..2 {
        harness.tell(InputKind::ToolStarted { call });
    }
    assert_eq!(harness.ran, [0]);
    assert_eq!(harness.kinds().last().unwrap(), "TOOL_CALL_START");
}

#[test]
fn call_kinds_are_those_of_the_context() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.call_kinds.insert("apply_patch".into(), CallKind::Edit);
    harness.load_this(context);
    let segment = SegmentId(7);
    for tool_name in ["apply_patch", "unknown"] {
        let tool_name = tool_name.to_owned();
        harness.tell(InputKind::ArgumentsOpened { segment, call_id: "c".into(), tool_name });
        harness.tell(InputKind::ArgumentsClosed { segment, call_id: "c".into(), interrupted: true });
    }
    harness.call(&["apply_patch", "unknown"]);
    harness.asks(0);
    harness.asks(1);
    harness.tell(InputKind::Abort);
    let kinds = harness.events.iter().filter_map(|event| match event {
        EventKind::ToolCallArgumentsStart { call_kind, .. } => Some(("arguments", *call_kind)),
        EventKind::ApprovalRequested { call_kind, .. } => Some(("approval", *call_kind)),
        EventKind::ToolCallStart { call_kind, .. } => Some(("start", *call_kind)),
        _ => None,
    });
    let expected = ["arguments", "approval", "start"]
        .into_iter()
        .flat_map(|event| [(event, CallKind::Edit), (event, CallKind::Other)]);
    assert_eq!(kinds.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn arguments_are_reported_only_while_the_model_responds() {
    let mut harness = Harness::new();
    let segment = SegmentId(0);
    let open = || InputKind::ArgumentsOpened { segment, call_id: "c".into(), tool_name: "shell".into() };
    harness.tell(open());
    harness.submit("go");
    harness.tell(open());
    harness.tell(InputKind::ArgumentsClosed { segment, call_id: "c".into(), interrupted: false });
    harness.say("done");
    harness.tell(open());
    let kinds = harness.kinds();
    let count = |kind: &str| kinds.iter().filter(|known| *known == kind).count();
    assert_eq!((count("TOOL_CALL_ARGUMENTS_START"), count("TOOL_CALL_ARGUMENTS_END")), (1, 1));
}

#[test]
fn denials_are_remembered_until_the_policy_or_the_task_changes() {
    let changes: [(Option<InputKind>, bool); 3] = [
        (None, true),
        (Some(InputKind::PolicyChanged { change: PolicyChange::mode("edit") }), false),
        (Some(InputKind::Steer { message: "go on".into() }), false),
    ];
    for (change, is_remembered) in changes {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.call(&["a", "b"]);
        harness.asks(0);
        harness.prepared(1, Effect::Read, &[]);
        let call = harness.key(0);
        harness.tell(InputKind::ApprovalDecided { call, approved: false, reason: None, by: None });
        if let Some(change) = change.clone() {
            harness.tell(change);
        }
        harness.finish(1, "ok");
        harness.call(&["a"]);
        let again = harness.key(0);
        assert_eq!(harness.machine.was_denied(again, &serde_json::json!({})), is_remembered, "{change:?}");
        assert!(!harness.machine.was_denied(again, &serde_json::json!({"other": 1})));
    }
}
