//! Repairs of the history after a refused request.

use pintle_llm::{ContentPart, Fingerprint, OpaqueData, TextData};

use super::*;
use crate::protocol::CompactionPolicy;

/// Handles a round whose call returns an image.
fn look(harness: &mut Harness, text: &str) {
    harness.call(&["look"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.finish_with_image(0, text);
}

fn repairs(harness: &Harness) -> usize {
    harness.kinds().iter().filter(|kind| *kind == "HISTORY_REPAIRED").count()
}

/// Fails the model call with this message, which names these media.
fn refuse(harness: &mut Harness, message: &str, media: Option<Fingerprint>) {
    let error = Error::new(ErrorKind::InvalidRequest, message).with_status(400);
    let error = media.into_iter().fold(error, Error::with_refused_media);
    harness.failed_with(&error);
}

/// Returns the number of images in each result of the newest request.
fn images_sent(harness: &Harness) -> Vec<usize> {
    let messages = harness.requests.last().unwrap().messages.iter();
    messages.flat_map(|item| item.results()).map(|result| result.images.len()).collect()
}

const NOTE: &str = "[The image that was here is left out: the provider refused a request with it.]";

#[test]
fn refused_image_is_replaced_and_the_request_retried() {
    for (kind, end) in [
        (ErrorKind::InvalidRequest, OutcomeStatus::Failed),
        (ErrorKind::ContextLength, OutcomeStatus::ContextFull),
    ] {
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
        assert_eq!(harness.last_outcome(), (end, SessionState::Idle));
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
fn named_image_is_replaced_instead_of_the_newest() {
    let mut harness = Harness::new();
    harness.submit("go");
    for text in ["first", "second", "third"] {
        look(&mut harness, text);
    }
    refuse(&mut harness, "messages.2: too wide", Some(Fingerprint::from_bytes(b"first")));
    assert_eq!((images_sent(&harness), repairs(&harness)), (vec![0, 1, 1], 1));
    assert_eq!(harness.sent()[2], format!("results a0:first\n{NOTE}"));

    look(&mut harness, "fourth");
    assert_eq!(images_sent(&harness), [0, 1, 1, 1], "later images are sent");
    refuse(&mut harness, "messages.4: too wide", Some(Fingerprint::from_bytes(b"second")));
    assert_eq!((images_sent(&harness), repairs(&harness)), (vec![0, 0, 1, 1], 2));

    // The same refusal again: its cause is not the newest image.
    refuse(&mut harness, "messages.4: too wide", None);
    assert_eq!((harness.last_outcome().0, repairs(&harness)), (OutcomeStatus::Failed, 2));

    // The session can still recover.
    harness.submit("again");
    refuse(&mut harness, "messages.4: too wide", None);
    assert_eq!((images_sent(&harness), repairs(&harness)), (vec![0, 0, 1, 0], 3));
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn named_media_that_are_not_in_the_history_are_those_that_no_response_followed() {
    let mut harness = Harness::new();
    harness.submit("go");
    look(&mut harness, "first");
    look(&mut harness, "second");
    refuse(&mut harness, "too wide", Some(Fingerprint::from_bytes(b"unknown")));
    assert_eq!((images_sent(&harness), repairs(&harness)), (vec![1, 0], 1));
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

/// Handles a round whose response has reasoning, and signatures in its other parts.
fn think(harness: &mut Harness, id: &str) {
    let seal = || Some("sealed".to_owned());
    let thought = ThinkingData::new("hm").with_signature(seal());
    let text = ContentPart::Text(TextData { text: "I look.".into(), signature: seal() });
    let call = ToolCall::from_raw(id, "look", "{}").with_signature(seal());
    harness.reply(Message::new(Role::Assistant, vec![thought.into(), text, call.into()]));
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "ok");
}

fn refuse_reasoning(harness: &mut Harness) {
    let error = Error::new(ErrorKind::InvalidRequest, "invalid signature").with_status(400);
    harness.failed_with(&error.with_refused_reasoning());
}

/// Returns the number of parts of the newest request that are reasoning or have a signature.
fn reasoning_sent(harness: &Harness) -> usize {
    let messages = harness.requests.last().unwrap().messages.iter();
    let is_reasoning = |part: &&ContentPart| match part {
        ContentPart::Thinking(_) => true,
        ContentPart::Text(data) => data.signature.is_some(),
        ContentPart::ToolCall(call) => call.signature.is_some(),
        _ => false,
    };
    messages.flat_map(|item| &item.content).filter(is_reasoning).count()
}

#[test]
fn refused_reasoning_is_removed_and_the_request_retried() {
    let mut harness = Harness::new();
    harness.submit("go");
    think(&mut harness, "a");
    think(&mut harness, "b");
    assert_eq!(reasoning_sent(&harness), 6);
    refuse_reasoning(&mut harness);
    assert_eq!((harness.requests.len(), repairs(&harness)), (4, 1));
    assert_eq!(reasoning_sent(&harness), 0);
    assert_eq!(harness.sent(), ["user go", "calls a=look", "results a:ok", "calls b=look", "results b:ok"]);
    assert_eq!(harness.requests[3].messages.get(2).unwrap().text(), "I look.", "its text stays");
    assert_eq!(harness.machine.repairs(), 1, "the change of the history is visible");
    let chars: u64 = harness.machine.history().iter().map(Turn::chars).sum();
    assert_eq!(harness.machine.size.history_chars(), chars, "the size of the history has changed, too");

    think(&mut harness, "c");
    assert_eq!(reasoning_sent(&harness), 3, "later reasoning is sent");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);

    // The record leads to the same history.
    let mut replayed = Machine::new(TurnLimits::default(), None);
    for (input, _) in &harness.log {
        replayed.step(input.clone());
    }
    assert_eq!(replayed.history(), harness.machine.history());
}

#[test]
fn reasoning_is_removed_once() {
    let mut harness = Harness::new();
    harness.submit("go");
    think(&mut harness, "a");
    refuse_reasoning(&mut harness);
    refuse_reasoning(&mut harness);
    assert_eq!((harness.requests.len(), repairs(&harness)), (3, 1));
    let repaired = harness.events.iter().any(|event| match event {
        EventKind::HistoryRepaired { message } => {
            message.ends_with("; the reasoning of 1 earlier response is left out")
        }
        _ => false,
    });
    assert!(repaired, "{:?}", harness.events);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    harness.submit("again");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn provider_specific_content_is_removed_if_there_is_no_reasoning() {
    let opaque = || ContentPart::Opaque(OpaqueData { kind: "x".into(), data: serde_json::json!({"a": 1}) });
    let mut harness = Harness::new();
    harness.submit("go");
    harness.reply(Message::assistant("one").with_part(opaque()));
    harness.submit("again");
    refuse_reasoning(&mut harness);
    assert_eq!((harness.requests.len(), repairs(&harness)), (3, 1));
    let sent = harness.requests[2].messages.get(2).unwrap();
    assert_eq!(sent.content, [ContentPart::text("one")]);
}

#[test]
fn refused_reasoning_is_neither_an_image_nor_an_overflow() {
    let mut harness = Harness::new();
    harness.submit("go");
    look(&mut harness, "a picture");
    refuse_reasoning(&mut harness);
    assert_eq!((harness.last_outcome().0, repairs(&harness)), (OutcomeStatus::Failed, 0));
    assert_eq!(images_sent(&harness), [1]);

    let compaction = CompactionPolicy::automatic().with_at_percent(100);
    let mut harness = Harness::with(TurnLimits { compaction, ..TurnLimits::default() });
    harness.submit("go");
    harness.reply_counted("first", 910);
    harness.submit("again");
    refuse_reasoning(&mut harness);
    assert_eq!((harness.last_outcome().0, repairs(&harness)), (OutcomeStatus::Failed, 0));
    assert!(!harness.kinds().contains(&"COMPACTION_START".to_owned()));
}

#[test]
fn reasoning_is_removed_after_the_request_for_a_summary_was_refused() {
    let mut harness = Harness::new();
    harness.submit("go");
    think(&mut harness, "a");
    harness.say("first");
    harness.tell(InputKind::Compact);
    assert_eq!(reasoning_sent(&harness), 3);
    refuse_reasoning(&mut harness);
    assert_eq!((harness.machine.state(), repairs(&harness)), (SessionState::Idle, 1));
    harness.submit("again");
    assert_eq!(reasoning_sent(&harness), 0);
}
