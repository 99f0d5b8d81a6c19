//! What is changed while a session works.

use super::*;

#[test]
fn configuration_changes_from_the_next_request_on() {
    let mut bench = Bench::new();
    bench.submit("go");
    let effort = Change::ReasoningEffort(Some(ReasoningEffort::High));
    bench.tell(InputKind::Configure { change: effort });
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.wanted();
    bench.round("a");
    assert_eq!(bench.wanted().last().unwrap(), "load");
    let mut context = TurnContext::new("q", "n", "another system", 1_000);
    context.max_tokens = Some(77);
    bench.load_this(context);
    let request = bench.requests.last().unwrap();
    assert_eq!((request.provider.as_deref(), request.model.as_str()), (Some("q"), "n"));
    assert_eq!(
        (request.max_tokens, request.reasoning_effort.clone()),
        (Some(77), Some(ReasoningEffort::High))
    );
    assert_eq!(bench.sent().len(), 3, "the history is carried over");
    assert!(bench.events.iter().any(|event| matches!(
        event,
        EventKind::RequestPrepared { moved: Some(pintle_llm::Segment::System), .. }
    )));
}

#[test]
fn a_change_while_the_context_is_loading_loads_it_again() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.load();
    assert!(bench.requests.is_empty());
    assert_eq!(bench.wanted(), ["load", "load"]);
    bench.load();
    assert_eq!(bench.requests.len(), 1);
}

#[test]
fn facts_that_were_gathered_for_a_turn_that_was_interrupted_come_too_late() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    let load = LoadId(bench.machine.loads);
    bench.tell(InputKind::Interrupt);
    bench.tell(InputKind::Submit { run: RunId(2), text: "again".into() });
    let late = Box::new(TurnContext::new("p", "old", "late", 1_000));
    bench.tell(InputKind::ContextLoaded { load, context: late });
    let error = Error::new(ErrorKind::Configuration, "late").info().clone();
    bench.tell(InputKind::ContextFailed { load, error });
    assert_eq!((bench.requests.len(), bench.machine.state()), (0, SessionState::Processing));
    bench.load();
    assert_eq!(bench.requests[0].model, "m");
}

#[test]
fn a_change_during_a_model_call_leaves_its_answer_as_it_was_asked_for() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.call(&["a", "b"]);
    bench.wanted();
    for index in 0..2 {
        bench.prepared(index, Effect::Read, &[]);
    }
    assert_eq!(bench.wanted(), ["run 0", "run 1"], "calls still run side by side");
}

#[test]
fn limits_change_from_the_next_decision_on() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.round("a");
    let limits = TurnLimits { max_tool_rounds_per_input: 2, ..TurnLimits::default() };
    bench.tell(InputKind::Configure { change: Change::Limits(limits) });
    bench.round("b");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::RoundLimit, SessionState::Idle));
    bench.tell(InputKind::Configure { change: Change::Limits(TurnLimits::default()) });
    bench.submit("on");
    bench.round("c");
    bench.round("d");
    bench.round("e");
    assert_eq!(bench.outcomes.len(), 1, "a limit that is raised does not stop any more");
}

#[test]
fn calls_that_run_are_not_stopped_by_a_smaller_limit_on_how_many_may() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.call(&["a", "b", "c"]);
    for index in 0..2 {
        bench.prepared(index, Effect::Read, &[]);
    }
    let limits = TurnLimits { max_parallel_tools: 1, ..TurnLimits::default() };
    bench.tell(InputKind::Configure { change: Change::Limits(limits) });
    bench.prepared(2, Effect::Read, &[]);
    for index in 0..3 {
        bench.finish(index, "ok");
    }
    assert_eq!(bench.requests.len(), 2);
}

#[test]
fn an_effort_can_be_taken_back() {
    let mut bench = Bench::new();
    let mut efforts = Vec::new();
    for effort in [Some(ReasoningEffort::Low), None, Some(ReasoningEffort::High)] {
        bench.tell(InputKind::Configure { change: Change::ReasoningEffort(effort) });
        bench.submit("go");
        efforts.push(bench.requests.last().unwrap().reasoning_effort.clone());
        bench.say("done");
    }
    assert_eq!(efforts, [Some(ReasoningEffort::Low), None, Some(ReasoningEffort::High)]);
}

#[test]
fn facts_that_came_out_the_same_leave_the_prompt_as_it_was() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("done");
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.submit("again");
    let moved = bench.events.iter().rev().find_map(|event| match event {
        EventKind::RequestPrepared { moved, .. } => Some(*moved),
        _ => None,
    });
    assert_eq!(moved, Some(None), "the next request begins with the bytes of the one before");
}

#[test]
fn what_the_prompt_holds_of_the_project_is_told_when_it_changes_and_not_again() {
    use std::path::Path;

    use crate::discovery::SkippedFile;

    let mut bench = Bench::new();
    let mut told = Vec::new();
    for (run, skipped) in [(1, "a"), (2, "a"), (3, "b")] {
        bench.tell(InputKind::Configure { change: Change::Context });
        bench.tell(InputKind::Submit { run: RunId(run), text: "go".into() });
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.project.skipped = vec![SkippedFile::new(Path::new(skipped), "unreadable")];
        bench.load_this(context);
        bench.say("done");
        told.push(bench.kinds().iter().filter(|kind| *kind == "PROJECT_LOADED").count());
    }
    assert_eq!(told, [1, 1, 2]);
}
