//! Configuration changes while a session works.

use super::*;

#[test]
fn configuration_changes_from_the_next_request_on() {
    let mut harness = Harness::new();
    harness.submit("go");
    let effort = Change::ReasoningEffort(Some(ReasoningEffort::High));
    harness.tell(InputKind::Configure { change: effort });
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.wanted();
    harness.round("a");
    assert_eq!(harness.wanted().last().unwrap(), "load");
    let mut context = TurnContext::new("q", "n", "another system", 1_000);
    context.max_tokens = Some(77);
    harness.load_this(context);
    let request = harness.requests.last().unwrap();
    assert_eq!((request.provider.as_deref(), request.model.as_str()), (Some("q"), "n"));
    assert_eq!(
        (request.max_tokens, request.reasoning_effort.clone()),
        (Some(77), Some(ReasoningEffort::High))
    );
    assert_eq!(harness.sent().len(), 3, "the history is carried over");
    assert!(harness.events.iter().any(|event| matches!(
        event,
        EventKind::RequestPrepared { moved: Some(pintle_llm::Segment::System), .. }
    )));
}

#[test]
fn change_during_a_load_reloads_the_context() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.load();
    assert!(harness.requests.is_empty());
    assert_eq!(harness.wanted(), ["load", "load"]);
    harness.load();
    assert_eq!(harness.requests.len(), 1);
}

#[test]
fn context_of_an_interrupted_turn_is_ignored() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
    let load = LoadId(harness.machine.loads);
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::Submit { run: RunId(2), message: "again".into() });
    let late = Box::new(TurnContext::new("p", "old", "late", 1_000));
    harness.tell(InputKind::ContextLoaded { load, context: late });
    let error = Error::new(ErrorKind::Configuration, "late").info().clone();
    harness.tell(InputKind::ContextFailed { load, error });
    assert_eq!((harness.requests.len(), harness.machine.state()), (0, SessionState::Processing));
    harness.load();
    assert_eq!(harness.requests[0].model, "m");
}

#[test]
fn change_during_a_model_call_keeps_its_response() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.call(&["a", "b"]);
    harness.wanted();
    for index in 0..2 {
        harness.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(harness.wanted(), ["start 0", "start 1"], "calls still run side by side");
}

#[test]
fn limits_change_from_the_next_decision_on() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.round("a");
    let limits = TurnLimits { max_tool_rounds_per_input: 2, ..TurnLimits::default() };
    harness.tell(InputKind::Configure { change: Change::Limits(limits) });
    harness.round("b");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::RoundLimit, SessionState::Idle));
    harness.tell(InputKind::Configure { change: Change::Limits(TurnLimits::default()) });
    harness.submit("on");
    harness.round("c");
    harness.round("d");
    harness.round("e");
    assert_eq!(harness.outcomes.len(), 1, "a raised limit no longer stops the run");
}

#[test]
fn smaller_parallel_limit_keeps_running_calls() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["a", "b", "c"]);
    for index in 0..2 {
        harness.prepared(index, Effect::Read, &[]);
    }
    let limits = TurnLimits { max_parallel_tools: 1, ..TurnLimits::default() };
    harness.tell(InputKind::Configure { change: Change::Limits(limits) });
    harness.prepared(2, Effect::Read, &[]);
    for index in 0..3 {
        harness.finish(index, "ok");
    }
    assert_eq!(harness.requests.len(), 2);
}

#[test]
fn reasoning_effort_can_be_reset() {
    let mut harness = Harness::new();
    let mut efforts = Vec::new();
    for effort in [Some(ReasoningEffort::Low), None, Some(ReasoningEffort::High)] {
        harness.tell(InputKind::Configure { change: Change::ReasoningEffort(effort) });
        harness.submit("go");
        efforts.push(harness.requests.last().unwrap().reasoning_effort.clone());
        harness.say("done");
    }
    assert_eq!(efforts, [Some(ReasoningEffort::Low), None, Some(ReasoningEffort::High)]);
}

#[test]
fn unchanged_context_keeps_the_prompt_item() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.say("done");
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.submit("again");
    let moved = harness.events.iter().rev().find_map(|event| match event {
        EventKind::RequestPrepared { moved, .. } => Some(*moved),
        _ => None,
    });
    assert_eq!(moved, Some(None), "the next request extends the previous one");
}

#[test]
fn project_is_reported_only_when_it_changes() {
    use std::path::Path;

    use crate::protocol::SkippedFile;

    let mut harness = Harness::new();
    let mut reported = Vec::new();
    for (run, skipped) in [(1, "a"), (2, "a"), (3, "b")] {
        harness.tell(InputKind::Configure { change: Change::Context });
        harness.tell(InputKind::Submit { run: RunId(run), message: "go".into() });
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.project.skipped = vec![SkippedFile::new(Path::new(skipped), "unreadable")];
        harness.load_this(context);
        harness.say("done");
        reported.push(harness.kinds().iter().filter(|kind| *kind == "PROJECT_LOADED").count());
    }
    assert_eq!(reported, [1, 1, 2]);
}
