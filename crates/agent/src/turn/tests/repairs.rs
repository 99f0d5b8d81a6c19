//! A request that the provider refuses for something in the history does not brick the session.

use pintle_llm::{ContentPart, ImageData};

use super::*;

/// A round whose call returns an image.
fn look(bench: &mut Bench, text: &str) {
    bench.call(&["look"]);
    bench.prepared(0, Effect::Read, &[]);
    let call = bench.key(0);
    bench.tell(InputKind::ToolStarted { call });
    let image = ImageData::data(b"not an image".to_vec(), "image/png");
    let finished = FinishedCall {
        result: ToolResult::new("whatever", text, false).with_image(image),
        output: Output::from(text),
        error: None,
        timed_out: None,
        changes: Vec::new(),
        question: None,
    };
    bench.tell(InputKind::ToolFinished { call, finished: Box::new(finished) });
}

fn repairs(bench: &Bench) -> usize {
    bench.kinds().iter().filter(|kind| *kind == "HISTORY_REPAIRED").count()
}

const NOTE: &str = "[The image that was here is left out: the provider refused a request with it.]";

#[test]
fn an_image_that_the_provider_refuses_is_replaced_and_the_request_made_once_more() {
    for kind in [ErrorKind::InvalidRequest, ErrorKind::ContextLength] {
        let mut bench = Bench::new();
        bench.submit("go");
        look(&mut bench, "a picture");
        bench.failed(kind, "");
        assert_eq!((bench.requests.len(), repairs(&bench)), (3, 1), "{kind:?}");
        assert_eq!(bench.sent()[2], format!("results a0:a picture\n{NOTE}"));
        assert!(bench.requests[2].messages.iter().all(|item| item.results().all(|r| r.images.is_empty())));
        assert_eq!(bench.machine.repairs(), 1, "who shows the history knows that it has changed");
        bench.failed(kind, "");
        assert_eq!((bench.requests.len(), repairs(&bench)), (3, 1), "one retry");
        assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
        bench.submit("again");
        bench.say("done");
        assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
    }
}

#[test]
fn what_the_model_has_accepted_is_not_suspected_until_there_is_another_model() {
    let mut bench = Bench::new();
    bench.submit("go");
    look(&mut bench, "");
    bench.say("a cat");
    bench.submit("again");
    bench.failed(ErrorKind::InvalidRequest, "");
    assert_eq!((bench.last_outcome().0, repairs(&bench)), (OutcomeStatus::Failed, 0));
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.submit("with the same model");
    bench.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(repairs(&bench), 0);
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.tell(InputKind::Submit { run: RunId(9), text: "with another".into() });
    bench.load_this(TurnContext::new("p", "blind", "system", 1_000));
    bench.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(repairs(&bench), 1);
    assert_eq!(bench.sent()[2], format!("results a0:{NOTE}"));
}

#[test]
fn failures_of_other_kinds_touch_nothing() {
    for kind in [ErrorKind::Server, ErrorKind::RateLimit, ErrorKind::QuotaExceeded, ErrorKind::ContentFilter]
    {
        let mut bench = Bench::new();
        bench.submit("go");
        look(&mut bench, "a picture");
        bench.failed(kind, "");
        assert_eq!((bench.last_outcome().0, repairs(&bench)), (OutcomeStatus::Failed, 0), "{kind:?}");
        assert_eq!(bench.machine.repairs(), 0);
    }
}

#[test]
fn a_stop_in_the_middle_is_no_reason_to_try_again() {
    let mut bench = Bench::new();
    bench.submit("go");
    look(&mut bench, "a picture");
    bench.tell(InputKind::Interrupt);
    bench.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    assert_eq!(repairs(&bench), 0);
}

#[test]
fn media_in_an_answer_are_replaced_where_they_stand() {
    let mut bench = Bench::new();
    bench.submit("go");
    let picture = ContentPart::Image(ImageData::data(b"x".to_vec(), "image/png"));
    bench.reply(Message::assistant("here").with_part(picture));
    bench.submit("again");
    bench.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(bench.sent()[1], format!("assistant here{NOTE}").to_lowercase());
}

#[test]
fn what_stands_beside_an_image_stays_as_it_was() {
    let mut bench = Bench::new();
    // What adapters make of an entry is not stored.
    bench.is_stored = false;
    bench.submit("go");
    bench.round("a");
    // Another model has accepted nothing yet.
    bench.tell(InputKind::Configure { change: Change::Context });
    bench.machine.history()[2].item.encoding("dialect", "target", |_| "made once");
    bench.call(&["look", "read"]);
    bench.prepared(0, Effect::Read, &[]);
    bench.prepared(1, Effect::Read, &[]);
    bench.finish(1, "plain");
    let call = bench.key(0);
    bench.tell(InputKind::ToolStarted { call });
    let image = ImageData::data(b"not an image".to_vec(), "image/png");
    let finished = FinishedCall {
        result: ToolResult::new("whatever", "", false).with_image(image),
        output: Output::from(""),
        error: None,
        timed_out: None,
        changes: Vec::new(),
        question: None,
    };
    bench.tell(InputKind::ToolFinished { call, finished: Box::new(finished) });
    bench.load_this(TurnContext::new("p", "blind", "system", 1_000));
    bench.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(bench.sent()[2], "results a0:ok");
    assert_eq!(bench.sent()[4], format!("results a1:{NOTE} b1:plain"));
    let kept = bench.machine.history()[2].item.encoding("dialect", "target", |_| "made again");
    assert_eq!(*kept, "made once");
}
