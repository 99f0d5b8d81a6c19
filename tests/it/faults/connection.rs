//! Connections that cannot be established, or break.

use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_llm::{ErrorKind, StreamEvent};
use pintle_testkit::{Dialect, FaultGate, FaultScript, FaultServer};

use super::attempt::{BOTH, Fault, Mode, SHORT, client, fail, finish, patient, question};
use super::sample::{TEXT, chunked_head, events, head, sized, stream_of, whole};
use crate::harness::in_each_dialect;

in_each_dialect!(
    a_refused_connection,
    a_connection_that_times_out,
    a_connection_that_breaks_before_the_response,
    a_connection_that_breaks_within_the_response,
    an_idle_connection_that_breaks,
    a_response_that_is_not_http,
    an_endless_response_head,
    a_server_without_tls,
);

async fn a_refused_connection(dialect: Dialect) {
    let fault =
        Fault::new("refused", FaultScript::new(), ErrorKind::Network).saying("no connection to 127.0.0.1");
    for mode in BOTH {
        fault.check_against(dialect, &FaultServer::refusing().unwrap(), mode).await;
    }
}

async fn a_connection_that_times_out(dialect: Dialect) {
    let mut fault = Fault::new("never accepted", FaultScript::new(), ErrorKind::RequestTimeout)
        .within(patient().with_connect(SHORT))
        .saying("no connection to 127.0.0.1");
    // Nothing was sent, so a retry is safe.
    fault.retryable = true;
    let server = FaultServer::never_accepting().await.unwrap();
    for mode in BOTH {
        fault.check_against(dialect, &server, mode).await;
    }
}

async fn a_connection_that_breaks_before_the_response(dialect: Dialect) {
    let read = || FaultScript::new().read_request();
    let inside = "HTTP/1.1 200 OK\r\ncontent-ty";
    let rows = [
        ("closed at once", FaultScript::new()),
        ("reset at once", FaultScript::new().reset()),
        ("reset inside the request", FaultScript::new().read_slowly(20, 20, Duration::ZERO).reset()),
        ("closed before the head", read()),
        ("reset before the head", read().reset()),
        ("closed inside the head", read().write(inside)),
        ("reset inside the head", read().write(inside).reset()),
        ("closed after an interim head", read().write("HTTP/1.1 100 Continue\r\n\r\n")),
        ("closed after the head", read().write(head("200 OK", &["content-length: 10"]))),
        ("reset after the head", read().write(head("200 OK", &["content-length: 10"])).reset()),
        ("reset after the head of chunks", read().write(chunked_head()).reset()),
    ];
    for (name, script) in rows {
        Fault::new(name, script, ErrorKind::Network).check(dialect).await;
    }
}

async fn a_connection_that_breaks_within_the_response(dialect: Dialect) {
    // The client reads the first bytes before the connection breaks, since a reset discards unread data.
    let whole = whole(dialect);
    let half = &whole.as_bytes()[..whole.len() / 2];
    let whole_head =
        head("200 OK", &["content-type: application/json", &format!("content-length: {}", whole.len())]);
    let begun =
        FaultScript::new().read_request().write(whole_head).write(half).sleep(Duration::from_millis(20));
    let rows =
        [("closed inside a whole answer", begun.clone()), ("reset inside a whole answer", begun.reset())];
    for (name, script) in rows {
        Fault::new(name, script, ErrorKind::Stream)
            .only(Mode::Complete)
            .saying("the connection broke in the middle of the response")
            .check(dialect)
            .await;
    }
    for reset in [false, true] {
        let gate = FaultGate::new();
        let script = FaultScript::new().read_request().write(stream_of(&events(dialect)[..3])).wait(&gate);
        let script = if reset { script.reset() } else { script };
        let fault = Fault::new(format!("inside a stream, reset: {reset}"), script.clone(), ErrorKind::Stream)
            .saying("the connection broke in the middle of the response");
        let server = FaultServer::start([script]).await.unwrap();
        let client = client(dialect, &server.url(), patient());
        let mut stream = client.stream(question(dialect)).await.unwrap();
        let first = stream.next().await.unwrap();
        assert!(first.is_ok(), "{first:?}");
        gate.open();
        let error = loop {
            match stream.next().await.expect("no clean end") {
                Ok(event) => assert!(!matches!(event, StreamEvent::Finish { .. }), "{event:?}"),
                Err(error) => break error,
            }
        };
        fault.judge(dialect, &fault.name, &error);
        assert!(finish(server).await.iter().all(|record| record.completed));
    }
}

/// An idle connection that was closed in the meantime must not fail the next request.
async fn an_idle_connection_that_breaks(dialect: Dialect) {
    let gate = FaultGate::new();
    let answer = sized("200 OK", &["content-type: application/json"], whole(dialect));
    let kept = FaultScript::new().read_request().write(answer.clone()).wait(&gate);
    let other = FaultScript::new().read_request().write(answer).await_close();
    let server = FaultServer::start([kept, other]).await.unwrap();
    let client = client(dialect, &server.url(), patient());
    client.complete(question(dialect)).await.unwrap();
    gate.open();
    while !server.records()[0].completed {
        tokio::task::yield_now().await;
    }
    // The client may notice the end before sending, or while sending.
    match client.complete(question(dialect)).await {
        Ok(response) => assert_eq!(response.text(), TEXT),
        Err(error) => {
            Fault::new("kept", FaultScript::new(), ErrorKind::Network).judge(dialect, "kept", &error)
        }
    }
    drop(client);
    finish(server).await;
}

async fn a_response_that_is_not_http(dialect: Dialect) {
    let rows: [(&str, &[u8]); 5] = [
        ("bytes", b"\x00\x01\x02\xff\xfe\xfd\r\n\r\n"),
        ("another protocol", b"SSH-2.0-OpenSSH_9.6\r\n"),
        ("a head that is none", b"HTTP/1.1 two hundred\r\n\r\n"),
        ("a header that is none", b"HTTP/1.1 200 OK\r\n\xff\xff\r\n\r\n"),
        ("two lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
    ];
    for (name, bytes) in rows {
        let script = FaultScript::new().read_request().write(bytes).await_close();
        Fault::new(name, script, ErrorKind::Network).check(dialect).await;
    }
    let chunks = [chunked_head().as_bytes(), b"never\r\n"].concat();
    let script = FaultScript::new().read_request().write(chunks).await_close();
    Fault::new("a chunk without a size", script, ErrorKind::Network).check(dialect).await;
}

async fn an_endless_response_head(dialect: Dialect) {
    let line = format!("x-line: {}\r\n", "x".repeat(1000));
    let endless = FaultScript::new().read_request().write("HTTP/1.1 200 OK\r\n");
    let endless = endless.repeat(line, usize::MAX, Duration::ZERO);
    for record in Fault::new("a head without an end", endless, ErrorKind::Network).check(dialect).await {
        assert!(record.written < 16 * 1024 * 1024, "{} bytes were taken", record.written);
    }
    let interim = FaultScript::new().read_request();
    let interim = interim.repeat("HTTP/1.1 103 Early Hints\r\n\r\n", usize::MAX, Duration::from_millis(1));
    Fault::new("interim heads for ever", interim, ErrorKind::RequestTimeout)
        .within(patient().with_first_byte(SHORT))
        .saying("no response within")
        .check(dialect)
        .await;
}

async fn a_server_without_tls(dialect: Dialect) {
    let refusal = "HTTP/1.1 400 Bad Request\r\n\r\nThe plain HTTP request was sent to HTTPS port";
    let rows = [
        ("a plain port", FaultScript::new().write(refusal).await_close(), patient()),
        (
            "garbage in records",
            FaultScript::new().write(b"\x16\x03\x03\x00\x08garbage!").await_close(),
            patient(),
        ),
        ("an alert", FaultScript::new().write(b"\x15\x03\x03\x00\x02\x02\x28").await_close(), patient()),
        (
            "reset inside the greeting",
            FaultScript::new().read_slowly(5, 5, Duration::ZERO).reset(),
            patient(),
        ),
        ("closed instead of a greeting", FaultScript::new(), patient()),
        ("silence", FaultScript::new().await_close(), patient().with_connect(SHORT)),
    ];
    for (name, script, limits) in rows {
        for mode in BOTH {
            let server = FaultServer::start([script.clone()]).await.unwrap();
            let client = client(dialect, &format!("https://{}", server.address()), limits);
            let kind = if name == "silence" { ErrorKind::RequestTimeout } else { ErrorKind::Network };
            let mut fault = Fault::new(name, script.clone(), kind).saying("no connection to 127.0.0.1");
            fault.retryable = true;
            let error = fail(&client, question(dialect).with_timeout(limits), mode, name).await;
            fault.judge(dialect, name, &error);
            drop(client);
            finish(server).await;
        }
    }
}
