//! Repairs of the history after a refused request.

use pintle_llm::ContentPart;

use super::*;

/// Handles a round whose call returns an image.
fn look(harness: &mut Harness, text: &str) {
    harness.call(&["look"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.finish_with_image(0, text);
}

fn repairs(harness: &Harness) -> usize {
    harness.kinds().iter().filter(|kind| *kind == "HISTORY_REPAIRED").count()
}

const NOTE: &str = "[The image that was here is left out: the provider refused a request with it.]";

#[test]
fn refused_image_is_replaced_and_the_request_retried() {
    for kind in [ErrorKind::InvalidRequest, ErrorKind::ContextLength] {
        let mut harness = Harness::new();
        harness.submit("go");
        look(&mut harness, "a picture");
        harness.failed(kind, "");
        assert_eq!((harness.requests.len(), repairs(&harness)), (3, 1), "{kind:?}");
        assert_eq!(harness.sent()[2], format!("results a0:a picture\n{NOTE}"));
        assert!(harness.requests[2].messages.iter().all(|item| item.results().all(|r| r.images.is_empty())));
        assert_eq!(harness.machine.repairs(), 1, "the change of the history is visible");
        harness.failed(kind, "");
        assert_eq!((harness.requests.len(), repairs(&harness)), (3, 1), "one retry");
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
        harness.submit("again");
        harness.say("done");
        assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
    }
}

#[test]
fn accepted_media_are_kept_until_the_model_changes() {
    let mut harness = Harness::new();
    harness.submit("go");
    look(&mut harness, "");
    harness.say("a cat");
    harness.submit("again");
    harness.failed(ErrorKind::InvalidRequest, "");
    assert_eq!((harness.last_outcome().0, repairs(&harness)), (OutcomeStatus::Failed, 0));
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.submit("with the same model");
    harness.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(repairs(&harness), 0);
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.tell(InputKind::Submit { run: RunId(9), message: "with another".into() });
    harness.load_this(TurnContext::new("p", "blind", "system", 1_000));
    harness.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(repairs(&harness), 1);
    assert_eq!(harness.sent()[2], format!("results a0:{NOTE}"));
}

#[test]
fn other_errors_repair_nothing() {
    for kind in [ErrorKind::Server, ErrorKind::RateLimit, ErrorKind::QuotaExceeded, ErrorKind::ContentFilter]
    {
        let mut harness = Harness::new();
        harness.submit("go");
        look(&mut harness, "a picture");
        harness.failed(kind, "");
        assert_eq!((harness.last_outcome().0, repairs(&harness)), (OutcomeStatus::Failed, 0), "{kind:?}");
        assert_eq!(harness.machine.repairs(), 0);
    }
}

#[test]
fn no_repair_while_stopping() {
    let mut harness = Harness::new();
    harness.submit("go");
    look(&mut harness, "a picture");
    harness.tell(InputKind::Interrupt);
    harness.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    assert_eq!(repairs(&harness), 0);
}

#[test]
fn media_are_replaced_in_place() {
    let mut harness = Harness::new();
    harness.submit("go");
    let picture = ContentPart::Image(ImageData::data(b"x".to_vec(), "image/png"));
    harness.reply(Message::assistant("here").with_part(picture));
    harness.submit("again");
    harness.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(harness.sent()[1], format!("assistant here{NOTE}").to_lowercase());
}

#[test]
fn content_beside_an_image_is_kept() {
    let mut harness = Harness::new();
    // Cached encodings are not stored.
    harness.is_stored = false;
    harness.submit("go");
    harness.round("a");
    // Another model has not accepted anything yet.
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.machine.history()[2].item.encoding("dialect", "target", |_| "made once");
    harness.call(&["look", "read"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.prepared(1, Effect::Read, &[]);
    harness.finish(1, "plain");
    harness.finish_with_image(0, "");
    harness.load_this(TurnContext::new("p", "blind", "system", 1_000));
    harness.failed(ErrorKind::InvalidRequest, "");
    assert_eq!(harness.sent()[2], "results a0:ok");
    assert_eq!(harness.sent()[4], format!("results a1:{NOTE} b1:plain"));
    let kept = harness.machine.history()[2].item.encoding("dialect", "target", |_| "made again");
    assert_eq!(*kept, "made once");
}
