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
    bench.tell(InputKind::Interrupt);
    bench.tell(InputKind::Submit { run: RunId(2), text: "again".into() });
    let late = Box::new(TurnContext::new("p", "old", "late", 1_000));
    bench.tell(InputKind::ContextLoaded { load: LoadId(1), context: late });
    let error = Error::new(ErrorKind::Configuration, "late").info().clone();
    bench.tell(InputKind::ContextFailed { load: LoadId(1), error });
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
