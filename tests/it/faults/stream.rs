//! Truncated streams, and invalid events.

use std::time::Duration;

use pintle_llm::{ErrorKind, Warning};
use pintle_test_conditions::is_full;
use pintle_testkit::{Dialect, FaultScript, FaultServer};

use super::attempt::{BOTH, Fault, Mode, call, client, finish, patient, question};
use super::sample::{
    CHARACTER, LAST_CHUNK, TEXT, chunk, chunked_head, events, head, sized, stream_of, unfinished, whole,
};
use crate::harness::in_each_dialect;

in_each_dialect!(
    the_samples_are_valid_responses,
    a_cut_at_any_event_boundary,
    a_cut_within_any_event,
    a_cut_within_a_character,
    invalid_characters_are_replaced,
    arguments_are_never_changed,
    keep_alives_of_any_form_are_skipped,
    garbage_instead_of_events,
    an_endless_event,
    an_endless_complete_response,
);

/// End of the bytes of a stream.
#[derive(Clone, Copy, Debug)]
enum End {
    /// In the middle of a chunked body.
    Broken,
    /// With the last chunk, as if the stream were complete.
    Clean,
    /// With the connection, as in HTTP/1.0.
    Closed,
}

const ENDS: [End; 3] = [End::Broken, End::Clean, End::Closed];

/// A server that sends these bytes of a stream and ends.
fn cut(bytes: &[u8], end: End) -> FaultScript {
    let read = FaultScript::new().read_request();
    match end {
        End::Broken => read.write(chunked_head()).write(chunk(bytes)),
        End::Clean => read.write(chunked_head()).write(chunk(bytes)).write(LAST_CHUNK),
        End::Closed => read.write("HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").write(bytes),
    }
}

/// A connection that breaks before the body is one that never responded.
fn kind(bytes: &[u8], end: End) -> ErrorKind {
    match end {
        End::Broken if bytes.is_empty() => ErrorKind::Network,
        End::Broken | End::Clean | End::Closed => ErrorKind::Stream,
    }
}

/// The samples are valid: without the cut they are responses.
async fn the_samples_are_valid_responses(dialect: Dialect) {
    let stream = FaultScript::new().read_request().write(stream_of(&events(dialect))).write(LAST_CHUNK);
    let old = cut(events(dialect).concat().as_bytes(), End::Closed);
    let answer = sized("200 OK", &["content-type: application/json"], whole(dialect));
    let answer = FaultScript::new().read_request().write(answer);
    for (mode, script) in [(Mode::Complete, answer), (Mode::Stream, stream), (Mode::Stream, old)] {
        let server = FaultServer::start([script]).await.unwrap();
        let client = client(dialect, &server.url(), patient());
        let response = call(&client, question(dialect).with_timeout(patient()), mode).await.unwrap();
        assert_eq!(response.text(), TEXT, "{mode:?}");
        assert_eq!(response.reasoning().as_deref(), Some("Look."), "{mode:?}");
        let calls: Vec<_> = response.tool_calls().collect();
        assert_eq!(calls.len(), 1, "{mode:?}");
        assert_eq!((calls[0].name.as_str(), calls[0].arguments["at"].as_str()), ("look", Some("é")));
        assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (9, 7), "{mode:?}");
        drop(client);
        finish(server).await;
    }
}

async fn a_cut_at_any_event_boundary(dialect: Dialect) {
    let events = events(dialect);
    for kept in 0..=unfinished(dialect) {
        let bytes = events[..kept].concat();
        for end in ENDS {
            let name = format!("{kept} events, {end:?}");
            let kind = kind(bytes.as_bytes(), end);
            Fault::new(name, cut(bytes.as_bytes(), end), kind).only(Mode::Stream).check(dialect).await;
        }
    }
}

/// Covers every event, including the terminal one and those after it: a truncated event is lost, and the loss is
/// reported.
async fn a_cut_within_any_event(dialect: Dialect) {
    let events = events(dialect);
    for kept in 0..events.len() {
        let event = &events[kept];
        let value = event.find("data:").unwrap() + "data: ".len();
        for at in [3, value, value + 1, event.trim_end().len() - 1] {
            let bytes = [events[..kept].concat().as_bytes(), &event.as_bytes()[..at]].concat();
            for end in ENDS {
                let name = format!("event {kept} cut after {at} bytes, {end:?}");
                Fault::new(name, cut(&bytes, end), ErrorKind::Stream).only(Mode::Stream).check(dialect).await;
            }
        }
    }
}

async fn a_cut_within_a_character(dialect: Dialect) {
    let text = events(dialect).concat();
    let start = text.find(CHARACTER).unwrap();
    for at in start + 1..start + CHARACTER.len() {
        for end in ENDS {
            let script = cut(&text.as_bytes()[..at], end);
            let name = format!("{} bytes of a character, {end:?}", at - start);
            Fault::new(name, script, ErrorKind::Stream).only(Mode::Stream).check(dialect).await;
        }
    }
    // A content length that ends within a character is as broken as a body that ends too soon.
    let text = whole(dialect);
    let half = &text.as_bytes()[..text.find(CHARACTER).unwrap() + 2];
    let counted = FaultScript::new().read_request().write(sized("200 OK", &[], half));
    Fault::new("counted", counted, ErrorKind::Stream).only(Mode::Complete).check(dialect).await;
    // A read that ends within a character is not an error: the rest follows with the next read.
    let text = events(dialect).concat();
    let (first, second) = text.as_bytes().split_at(start + 2);
    let pause = Duration::from_millis(5);
    let script = FaultScript::new().read_request().write(chunked_head()).write(chunk(first)).sleep(pause);
    let server = FaultServer::start([script.write(chunk(second)).write(LAST_CHUNK)]).await.unwrap();
    let client = client(dialect, &server.url(), patient());
    let response = call(&client, question(dialect).with_timeout(patient()), Mode::Stream).await.unwrap();
    assert_eq!(response.text(), TEXT);
}

/// A byte that is never valid UTF-8, a truncated character, and halves of a surrogate pair in JSON escapes.
const NO_CHARACTERS: [&[u8]; 4] = [b"\xff", b"\xf0\x9f\xa6", br"\ud83e", br"\udd80"];

fn replace(text: &str, from: &str, to: &[u8], times: usize) -> Vec<u8> {
    let parts: Vec<&[u8]> = text.splitn(times + 1, from).map(str::as_bytes).collect();
    parts.join(to)
}

/// Returns a sample for each mode with its characters replaced, in the stream `times` times.
fn with_characters(dialect: Dialect, from: &str, to: &[u8], times: usize) -> [(Mode, FaultScript); 2] {
    let read = || FaultScript::new().read_request();
    let stream = replace(&events(dialect).concat(), from, to, times);
    let answer = replace(&whole(dialect), from, to, usize::MAX - 1);
    let answer = sized("200 OK", &["content-type: application/json"], answer);
    let stream = read().write(chunked_head()).write(chunk(stream)).write(LAST_CHUNK);
    [(Mode::Complete, read().write(answer)), (Mode::Stream, stream)]
}

async fn invalid_characters_are_replaced(dialect: Dialect) {
    let expected = TEXT.replace(CHARACTER, "\u{fffd}");
    for bad in NO_CHARACTERS {
        // If the dialect repeats the text at its end, that copy may be intact.
        for times in [1, usize::MAX - 1] {
            for (mode, script) in with_characters(dialect, CHARACTER, bad, times) {
                let server = FaultServer::start([script]).await.unwrap();
                let client = client(dialect, &server.url(), patient());
                let request = question(dialect).with_timeout(patient());
                let response = call(&client, request, mode).await.unwrap();
                assert_eq!(response.text(), expected, "{bad:?}, {mode:?}");
                assert_eq!(response.tool_calls().count(), 1, "the answer goes on");
                let [warning] = response.warnings.as_slice() else { panic!("{:?}", response.warnings) };
                assert_eq!(warning.code.as_deref(), Some(Warning::REPLACED_CHARACTERS));
                if times == 1 || mode == Mode::Complete {
                    assert!(
                        warning.message.starts_with("1 invalid Unicode character of the response"),
                        "{}",
                        warning.message
                    );
                }
                drop(client);
                finish(server).await;
            }
        }
    }
}

/// Arguments would be written to a file, or run.
async fn arguments_are_never_changed(dialect: Dialect) {
    for bad in NO_CHARACTERS {
        for (mode, script) in with_characters(dialect, "é", bad, usize::MAX - 1) {
            Fault::new(format!("{bad:?}"), script, ErrorKind::Stream)
                .only(mode)
                .saying("the arguments of a tool call contain an invalid Unicode character")
                .check(dialect)
                .await;
        }
    }
}

async fn keep_alives_of_any_form_are_skipped(dialect: Dialect) {
    for alive in [
        "data:\n\n",
        "data: \n\n",
        "data: ping\n\n",
        "data: : ping\n\n",
        ": ping\n\n",
        ":\n\n",
        "event: ping\n\n",
        "event: ping\ndata:\n\n",
        "event: keepalive\ndata: keepalive\n\n",
        "event: keepalive\ndata: {}\n\n",
        "id: 7\ndata: ping - 2026-01-01 00:00:00+00:00\n\n",
    ] {
        let stream: String = events(dialect).iter().flat_map(|event| [alive, event.as_str()]).collect();
        let server = FaultServer::start([cut(stream.as_bytes(), End::Clean)]).await.unwrap();
        let client = client(dialect, &server.url(), patient());
        let response = call(&client, question(dialect).with_timeout(patient()), Mode::Stream).await;
        let response = response.unwrap_or_else(|error| panic!("{alive:?}: {error:?}"));
        assert_eq!((response.text().as_str(), response.tool_calls().count()), (TEXT, 1), "{alive:?}");
        drop(client);
        finish(server).await;
    }
}

async fn garbage_instead_of_events(dialect: Dialect) {
    let first = events(dialect)[0].clone();
    let rows: [(&str, &[u8]); 7] = [
        ("no UTF-8 in an event", b"data: {\"a\": \"\xff\xfe\"}\n\n"),
        ("no JSON in an event", b"data: {\"a\": \n\n"),
        ("another value than an object", b"data: [1, 2]\n\n"),
        ("control characters", b"data: \x00\x01\x02\x03\n\n"),
        ("bytes without a line", &[0xff; 5000]),
        ("lines of no field", b"one\ntwo\nthree\n\n"),
        ("a NUL in every byte", &[0; 5000]),
    ];
    for (name, bytes) in rows {
        for before in ["", first.as_str()] {
            let bytes = [before.as_bytes(), bytes].concat();
            let name = format!("{name} after {} bytes", before.len());
            Fault::new(name, cut(&bytes, End::Clean), ErrorKind::Stream)
                .only(Mode::Stream)
                .check(dialect)
                .await;
        }
        let answer = FaultScript::new().read_request().write(sized("200 OK", &[], bytes));
        Fault::new(name, answer, ErrorKind::Stream).only(Mode::Complete).check(dialect).await;
    }
}

/// Returns whether a dialect has responses up to the limits. All dialects share the transport with its limits, so by
/// default only one of them does.
fn reaches_the_limit(dialect: Dialect) -> bool {
    dialect == Dialect::AnthropicMessages || is_full()
}

/// An oversized event is refused: it is buffered up to the limit, and the rest is not read.
async fn an_endless_event(dialect: Dialect) {
    if !reaches_the_limit(dialect) {
        return;
    }
    let begin = FaultScript::new().read_request();
    let begin =
        begin.write(head("200 OK", &["content-type: text/event-stream"])).write("data: {\"text\": \"");
    let script = begin.repeat(vec![b'x'; 64 * 1024], usize::MAX, Duration::ZERO);
    let mut fault = Fault::new("without an end", script, ErrorKind::Stream).only(Mode::Stream);
    // A retry would be just as large.
    fault.retryable = false;
    for record in fault.saying("an event is larger than 134217728 bytes").check(dialect).await {
        assert!(!record.completed && record.written < 200 * 1024 * 1024, "{record:?}");
    }
}

async fn an_endless_complete_response(dialect: Dialect) {
    let begin = FaultScript::new().read_request();
    let begin = begin.write(head("200 OK", &["content-type: application/json"])).write("{\"text\": \"");
    let script = begin.repeat(vec![b'x'; 64 * 1024], usize::MAX, Duration::ZERO);
    let mut fault = Fault::new("without an end", script.clone(), ErrorKind::Stream).only(Mode::Complete);
    // As above.
    fault.retryable = false;
    if reaches_the_limit(dialect) {
        for record in fault.saying("the response is larger than 67108864 bytes").check(dialect).await {
            assert!(!record.completed && record.written < 120 * 1024 * 1024, "{record:?}");
        }
    }
    // An error response is read only as far as an error keeps it.
    let begin = FaultScript::new().read_request().write(head("500 Internal Server Error", &[]));
    let script = begin.repeat(vec![b'x'; 64 * 1024], usize::MAX, Duration::ZERO);
    for mode in BOTH {
        let fault = Fault::new("a refusal without an end", script.clone(), ErrorKind::Server);
        for record in fault.status(500).only(mode).check(dialect).await {
            assert!(!record.completed && record.written < 60 * 1024 * 1024, "{record:?}");
        }
    }
}
