//! Servers that do not read the request.

use std::time::Duration;

use pintle_llm::{ErrorKind, Message, Request};
use pintle_test_conditions::is_full;
use pintle_testkit::{Dialect, FaultGate, FaultScript, FaultServer};

use super::attempt::{BOTH, Fault, Mode, asking, call, client, fail, finish, patient};
use super::sample::{LAST_CHUNK, TEXT, events, sized, stream_of, whole};
use crate::harness::in_each_dialect;

in_each_dialect!(
    a_request_that_is_not_fully_read,
    a_request_that_is_read_slowly,
    a_request_that_is_refused_before_it_is_read,
    a_connection_that_breaks_within_the_request,
);

/// A request that takes a while to send.
const LARGE: usize = 1024 * 1024;
/// A request larger than the buffers between client and server.
const HUGE: usize = 8 * 1024 * 1024;

/// Returns the modes of huge requests: by default each dialect has one of them.
fn modes(dialect: Dialect) -> Vec<Mode> {
    if is_full() { BOTH.to_vec() } else { vec![BOTH[dialect as usize % BOTH.len()]] }
}

fn request_of(dialect: Dialect, bytes: usize) -> Request {
    asking(dialect, [Message::user("x".repeat(bytes))]).with_timeout(patient())
}

/// The server reads slowly and then stops: the time to the first byte includes that for sending.
async fn a_request_that_is_not_fully_read(dialect: Dialect) {
    let gate = FaultGate::new();
    let limits = patient().with_first_byte(Duration::from_secs(1));
    let slowly = FaultScript::new().read_slowly(64 * 1024, 8 * 1024, Duration::from_millis(5));
    let attempts =
        [("not at all", FaultScript::new(), Mode::Complete), ("slowly at first", slowly, Mode::Stream)];
    let modes = modes(dialect);
    for (name, script, mode) in attempts.into_iter().filter(|(.., mode)| modes.contains(mode)) {
        let server = FaultServer::start([script.clone().wait(&gate)]).await.unwrap();
        let client = client(dialect, &server.url(), limits);
        let error = fail(&client, request_of(dialect, HUGE).with_timeout(limits), mode, name).await;
        let fault = Fault::new(name, script, ErrorKind::RequestTimeout).saying("no response within 1s");
        fault.judge(dialect, name, &error);
    }
}

async fn a_request_that_is_read_slowly(dialect: Dialect) {
    let slowly = FaultScript::new().read_slowly(256 * 1024, 16 * 1024, Duration::from_millis(2));
    let slowly = slowly.read_slowly(LARGE - 256 * 1024, 64 * 1024, Duration::ZERO);
    let answer = sized("200 OK", &["content-type: application/json"], whole(dialect));
    let stream = [stream_of(&events(dialect)), LAST_CHUNK.into()].concat();
    for (mode, answer) in [(Mode::Complete, answer), (Mode::Stream, stream)] {
        let gate = FaultGate::new();
        let server = FaultServer::start([slowly.clone().write(answer).wait(&gate)]).await.unwrap();
        let client = client(dialect, &server.url(), patient());
        assert_eq!(call(&client, request_of(dialect, LARGE), mode).await.unwrap().text(), TEXT, "{mode:?}");
        gate.open();
        finish(server).await;
    }
}

/// The error response is read even though the request is never sent completely.
async fn a_request_that_is_refused_before_it_is_read(dialect: Dialect) {
    let refusal = sized("413 Payload Too Large", &["content-type: text/plain"], "too large");
    for mode in modes(dialect) {
        let gate = FaultGate::new();
        let script =
            FaultScript::new().read_slowly(1024, 1024, Duration::ZERO).write(refusal.clone()).wait(&gate);
        let server = FaultServer::start([script.clone()]).await.unwrap();
        let client = client(dialect, &server.url(), patient());
        let error = fail(&client, request_of(dialect, HUGE), mode, "refused").await;
        let fault = Fault::new("refused", script, ErrorKind::ContextLength).status(413);
        fault.judge(dialect, "refused", &error);
        gate.open();
        finish(server).await;
    }
}

async fn a_connection_that_breaks_within_the_request(dialect: Dialect) {
    let script = FaultScript::new().read_slowly(64 * 1024, 8 * 1024, Duration::from_millis(1));
    for (name, script) in [("closed", script.clone()), ("reset", script.reset())] {
        for mode in BOTH {
            let server = FaultServer::start([script.clone()]).await.unwrap();
            let client = client(dialect, &server.url(), patient());
            let error = fail(&client, request_of(dialect, LARGE), mode, name).await;
            Fault::new(name, script.clone(), ErrorKind::Network)
                .saying("broke before the response began")
                .judge(dialect, name, &error);
            drop(client);
            finish(server).await;
        }
    }
}
