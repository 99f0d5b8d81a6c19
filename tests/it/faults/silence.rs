//! Servers that send nothing, or too little for too long.

use std::time::Duration;

use pintle_llm::ErrorKind;
use pintle_testkit::{Dialect, FaultScript, FaultServer};

use super::attempt::{Fault, Mode, SHORT, call, check_all, client, finish, patient, question};
use super::sample::{LAST_CHUNK, TEXT, chunk, chunked_head, events, head, sized, stream_of, whole};
use crate::harness::in_each_dialect;

in_each_dialect!(
    silence_before_the_first_byte,
    silence_within_the_response,
    comments_keep_a_stream_alive,
    whitespace_keeps_a_complete_response_alive,
    comments_alone_are_not_a_response,
    silence_within_an_error_response,
    a_trickle_reaches_the_total_time_limit,
    stream_headers_time_out,
    late_headers_of_a_complete_response_are_accepted,
    keep_alives_without_content_time_out,
    content_resets_its_limit,
);

const COMMENT: &str = ": keep-alive\n\n";

fn read() -> FaultScript {
    FaultScript::new().read_request()
}

async fn silence_before_the_first_byte(dialect: Dialect) {
    let rows = [
        ("no byte", read()),
        ("half a head", read().write("HTTP/1.1 200 OK\r\ncontent-ty")),
        ("a head", read().write(head("200 OK", &["content-length: 10"]))),
        ("the head of chunks", read().write(chunked_head())),
        ("the size of a chunk", read().write(chunked_head()).write("10\r\n")),
        ("half of the request is read", FaultScript::new().read_slowly(20, 20, Duration::ZERO)),
    ];
    let faults = rows.map(|(name, script)| {
        Fault::new(name, script.await_close(), ErrorKind::RequestTimeout)
            .within(patient().with_first_byte(SHORT))
            .saying("no response within 200ms")
    });
    let records = check_all(dialect, faults).await;
    assert!(records.iter().all(|record| record.completed), "the client closed each connection: {records:?}");
}

async fn silence_within_the_response(dialect: Dialect) {
    let whole = whole(dialect);
    let answer = sized("200 OK", &["content-type: application/json"], &whole);
    let script = read().write(&answer[..answer.len() - 1]).await_close();
    Fault::new("a whole answer without its last byte", script, ErrorKind::RequestTimeout)
        .within(patient().with_stream_read(SHORT))
        .only(Mode::Complete)
        .saying("the response stopped: no byte for 200ms")
        .check(dialect)
        .await;
    let events = events(dialect);
    let first = events[0].as_bytes();
    let cuts: [(&str, Vec<u8>); 3] = [
        ("after the first byte", [chunked_head().as_bytes(), &chunk("d")].concat()),
        ("inside an event", [chunked_head().as_bytes(), &chunk(&first[..first.len() / 2])].concat()),
        ("between events", stream_of(&events[..3])),
    ];
    for (name, bytes) in cuts {
        let records = Fault::new(name, read().write(bytes).await_close(), ErrorKind::RequestTimeout)
            .within(patient().with_stream_read(SHORT))
            .only(Mode::Stream)
            .saying("the response stopped: no byte for 200ms")
            .check(dialect)
            .await;
        assert!(records.iter().all(|record| record.completed), "{name}");
    }
}

/// Time limit for activity without content, and number of keep-alives.
const LIFE: Duration = Duration::from_millis(500);
const SIGNS: usize = 25;

/// Returns a script that repeats a keep-alive for the duration of the limit.
fn living(script: FaultScript, sign: &str) -> FaultScript {
    let pause = LIFE / u32::try_from(SIGNS).unwrap();
    script.repeat(chunk(sign), SIGNS, pause)
}

async fn answers(dialect: Dialect, mode: Mode, script: FaultScript) {
    let server = FaultServer::start([script.write(LAST_CHUNK).await_close()]).await.unwrap();
    let limits = patient().with_first_byte(LIFE).with_stream_read(LIFE);
    let client = client(dialect, &server.url(), limits);
    let response = call(&client, question(dialect).with_timeout(limits), mode).await.unwrap();
    assert_eq!(response.text(), TEXT);
    drop(client);
    finish(server).await;
}

/// Sends only comments for three times the limit: before the first event, between two events, and within one.
async fn comments_keep_a_stream_alive(dialect: Dialect) {
    let events = events(dialect);
    let middle = events.len() / 2;
    let (begin, end) = events[middle].split_at(events[middle].find("data:").unwrap());
    let mut script = living(read().write(chunked_head()), COMMENT);
    script = events[..middle].iter().fold(script, |script, event| script.write(chunk(event)));
    // A comment within an event is a single line, without a blank one.
    script = living(living(script, COMMENT).write(chunk(begin)), ": keep-alive\n").write(chunk(end));
    script = events[middle + 1..].iter().fold(script, |script, event| script.write(chunk(event)));
    answers(dialect, Mode::Stream, script).await;
}

/// Some servers send whitespace while they compute a complete response.
async fn whitespace_keeps_a_complete_response_alive(dialect: Dialect) {
    let script = living(living(read().write(chunked_head()), "\n"), " ").write(chunk(whole(dialect)));
    answers(dialect, Mode::Complete, script).await;
}

async fn comments_alone_are_not_a_response(dialect: Dialect) {
    let commented = read().write(chunked_head()).repeat(chunk(COMMENT), 5, Duration::ZERO);
    Fault::new("comments, then silence", commented.clone().await_close(), ErrorKind::RequestTimeout)
        .within(patient().with_stream_read(SHORT))
        .only(Mode::Stream)
        .saying("the response stopped")
        .check(dialect)
        .await;
    let rows = [
        ("comments, then a close", commented.clone()),
        ("comments, then a clean end", commented.clone().write(LAST_CHUNK)),
        ("half a comment at the end", commented.write(chunk(": keep")).write(LAST_CHUNK)),
    ];
    for (name, script) in rows {
        Fault::new(name, script, ErrorKind::Stream).only(Mode::Stream).check(dialect).await;
    }
}

/// The status is known; the client does not wait indefinitely for the message.
async fn silence_within_an_error_response(dialect: Dialect) {
    let rows = [
        (503, "503 Service Unavailable", ErrorKind::Server),
        (429, "429 Too Many Requests", ErrorKind::RateLimit),
        (401, "401 Unauthorized", ErrorKind::Authentication),
    ];
    let mut faults = Vec::new();
    for (status, line, kind) in rows {
        for body in ["", "{\"error\": {\"mess"] {
            let script = read().write(head(line, &["content-length: 100"])).write(body).await_close();
            let mut fault = Fault::new(format!("{line} {body:?}"), script, kind).status(status);
            fault.retryable = kind != ErrorKind::Authentication;
            faults.push(fault.within(patient().with_stream_read(SHORT)));
        }
    }
    check_all(dialect, faults).await;
}

/// A server that sends single bytes is always active, but never finishes.
async fn a_trickle_reaches_the_total_time_limit(dialect: Dialect) {
    let trickle = read().write(head("200 OK", &["content-length: 1000000"]));
    let trickle = trickle.repeat(" ", 1_000_000, Duration::from_millis(5));
    Fault::new("a trickle", trickle, ErrorKind::RequestTimeout)
        .within(patient().with_request(Some(SHORT)))
        .only(Mode::Complete)
        .saying("no complete response within 200ms")
        .check(dialect)
        .await;
}

/// A pause between two bytes that is below every limit on silence.
const DRIP: Duration = Duration::from_millis(5);

/// A response head that never ends, one byte at a time.
fn dripping_head() -> FaultScript {
    read().write("HTTP/1.1 200 OK\r\nx-drip: ").repeat("a", 1_000_000, DRIP)
}

async fn stream_headers_time_out(dialect: Dialect) {
    let rows = [
        ("no byte", read().await_close()),
        ("a byte at a time", dripping_head()),
        ("interim responses", read().repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 90, DRIP).await_close()),
    ];
    let faults = rows.map(|(name, script)| {
        Fault::new(name, script, ErrorKind::RequestTimeout)
            .within(patient().with_headers(SHORT))
            .only(Mode::Stream)
            .saying("no response headers within 200ms")
    });
    check_all(dialect, faults).await;
    Fault::new("a whole answer", dripping_head(), ErrorKind::RequestTimeout)
        .within(patient().with_headers(SHORT).with_first_byte(2 * SHORT))
        .only(Mode::Complete)
        .saying("no response within 400ms")
        .check(dialect)
        .await;
}

/// A provider sends these headers only once the response is complete.
async fn late_headers_of_a_complete_response_are_accepted(dialect: Dialect) {
    let answer = sized("200 OK", &["content-type: application/json"], whole(dialect));
    let server = FaultServer::start([read().sleep(2 * SHORT).write(answer).await_close()]).await.unwrap();
    let limits = patient().with_headers(SHORT);
    let client = client(dialect, &server.url(), limits);
    let response = call(&client, question(dialect).with_timeout(limits), Mode::Complete).await.unwrap();
    assert_eq!(response.text(), TEXT);
    drop(client);
    finish(server).await;
}

async fn keep_alives_without_content_time_out(dialect: Dialect) {
    let forever = 1_000_000;
    let events = events(dialect);
    let begun =
        |upto: usize| events[..upto].iter().fold(read().write(chunked_head()), |s, e| s.write(chunk(e)));
    let content = patient().with_content(Some(SHORT));
    let rows = [
        ("comments before the first event", begun(0).repeat(chunk(COMMENT), forever, DRIP)),
        ("comments in the middle", begun(events.len() / 2).repeat(chunk(COMMENT), forever, DRIP)),
        ("blank lines", begun(0).repeat(chunk("\n"), forever, DRIP)),
        ("an event that never ends", begun(0).write(chunk("data: ")).repeat(chunk("x"), forever, DRIP)),
        ("an event without data", begun(0).repeat(chunk("event: ping\n\n"), forever, DRIP)),
    ];
    let faults = rows.map(|(name, script)| {
        Fault::new(name, script, ErrorKind::RequestTimeout)
            .within(content)
            .only(Mode::Stream)
            .saying("no content for 200ms")
    });
    check_all(dialect, faults).await;
    Fault::new("blanks", begun(0).repeat(chunk(" "), forever, DRIP), ErrorKind::RequestTimeout)
        .within(content)
        .only(Mode::Complete)
        .saying("no complete response within 200ms")
        .check(dialect)
        .await;
}

/// A response may take many times the limit if each interval has some content.
async fn content_resets_its_limit(dialect: Dialect) {
    let events = events(dialect);
    let pause = LIFE / 2;
    let script = events.iter().fold(read().write(chunked_head()), |script, event| {
        script.repeat(chunk(COMMENT), 5, pause / 5).write(chunk(event))
    });
    let server = FaultServer::start([script.write(LAST_CHUNK).await_close()]).await.unwrap();
    // Some events, such as the start of a segment, are not content.
    let limits = patient().with_content(Some(LIFE * 3));
    let client = client(dialect, &server.url(), limits);
    let response = call(&client, question(dialect).with_timeout(limits), Mode::Stream).await.unwrap();
    assert_eq!(response.text(), TEXT);
    drop(client);
    finish(server).await;
}
