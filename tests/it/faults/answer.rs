//! Responses in an unexpected form.

use pintle_llm::ErrorKind;
use pintle_testkit::{Dialect, FaultScript, FaultServer};

use super::attempt::{Fault, KEY, Mode, call, client, finish, patient, question};
use super::sample::{TEXT, events, head, sized, whole};
use crate::harness::in_each_dialect;

in_each_dialect!(
    a_compressed_response,
    an_http_1_0_response_without_a_length,
    a_wrong_content_type,
    json_instead_of_a_stream,
    a_web_page_instead_of_a_response,
    an_empty_response,
    json_of_another_shape,
    a_redirect_is_not_followed,
);

fn answering(bytes: impl Into<Vec<u8>>) -> FaultScript {
    FaultScript::new().read_request().write(bytes)
}

/// Calls once and expects the text of the sample.
async fn answers(dialect: Dialect, mode: Mode, script: FaultScript, name: &str) {
    let server = FaultServer::start([script]).await.unwrap();
    let client = client(dialect, &server.url(), patient());
    let answer = call(&client, question(dialect).with_timeout(patient()), mode).await;
    assert_eq!(answer.unwrap_or_else(|error| panic!("{name}: {error:?}")).text(), TEXT, "{name}");
    drop(client);
    finish(server).await;
}

/// No content encoding was requested, so none is decoded.
async fn a_compressed_response(dialect: Dialect) {
    // The start of a gzip member, which is not valid text.
    let packed = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56\x4a\xcb\xcf\x07\x00";
    for encoding in ["gzip", "x-gzip", "br", "deflate", "zstd", "identity, gzip"] {
        let header = format!("content-encoding: {encoding}");
        for kind in ["text/event-stream", "application/json"] {
            let headers = [format!("content-type: {kind}"), header.clone()];
            let script = answering(sized("200 OK", &headers.each_ref().map(String::as_str), packed));
            Fault::new(format!("{encoding} of {kind}"), script, ErrorKind::Stream)
                .saying("which was not requested")
                .check(dialect)
                .await;
        }
        // For an error response the status is enough.
        let script = answering(sized("503 Service Unavailable", &[&header], packed));
        Fault::new(format!("{encoding} of a refusal"), script, ErrorKind::Server)
            .status(503)
            .check(dialect)
            .await;
    }
    let plain = ["content-type: application/json", "content-encoding: Identity"];
    answers(dialect, Mode::Complete, answering(sized("200 OK", &plain, whole(dialect))), "Identity").await;
}

async fn an_http_1_0_response_without_a_length(dialect: Dialect) {
    let answer = |body: &[u8]| answering([b"HTTP/1.0 200 OK\r\n\r\n", body].concat());
    let (whole, stream) = (whole(dialect), events(dialect).concat());
    answers(dialect, Mode::Complete, answer(whole.as_bytes()), "whole").await;
    answers(dialect, Mode::Stream, answer(stream.as_bytes()), "stream").await;
    // The end of the connection is the end of the body, even if it comes too early.
    for part in [1, whole.len() / 2, whole.len() - 1] {
        let script = answer(&whole.as_bytes()[..part]);
        Fault::new(format!("{part} bytes"), script, ErrorKind::Stream)
            .only(Mode::Complete)
            .check(dialect)
            .await;
    }
    let part = answer(&stream.as_bytes()[..stream.len() / 2]);
    Fault::new("half a stream", part, ErrorKind::Stream).only(Mode::Stream).check(dialect).await;
}

/// A content type that may be a mistake is accepted, one that rules out a stream is not.
async fn a_wrong_content_type(dialect: Dialect) {
    let (whole, stream) = (whole(dialect), events(dialect).concat());
    for header in ["content-type: text/plain", "content-type: application/octet-stream", "x-none: 1"] {
        answers(dialect, Mode::Complete, answering(sized("200 OK", &[header], &whole)), header).await;
        answers(dialect, Mode::Stream, answering(sized("200 OK", &[header], &stream)), header).await;
        // A response in JSON is decoded in both modes, a stream only if one was requested.
        answers(dialect, Mode::Stream, answering(sized("200 OK", &[header], &whole)), header).await;
        let script = answering(sized("200 OK", &[header], &stream));
        Fault::new("a stream", script, ErrorKind::Stream).only(Mode::Complete).check(dialect).await;
    }
    for header in ["content-type: application/json", "content-type: Application/JSON; charset=utf-8"] {
        answers(dialect, Mode::Stream, answering(sized("200 OK", &[header], &whole)), header).await;
        let cut = answering(sized("200 OK", &[header], &whole[..whole.find("model").unwrap()]));
        Fault::new("a part of an answer", cut, ErrorKind::Stream).check(dialect).await;
    }
    let script = answering(sized("200 OK", &["content-type: text/html"], &whole));
    Fault::new("a page", script, ErrorKind::Stream)
        .only(Mode::Stream)
        .saying("expected an event stream instead of text/html")
        .check(dialect)
        .await;
}

/// The request is not sent again, and the response is the same as for a complete request.
async fn json_instead_of_a_stream(dialect: Dialect) {
    let json = ["content-type: application/json", "x-ratelimit-remaining-requests: 9"];
    let mut responses = Vec::new();
    for mode in [Mode::Complete, Mode::Stream] {
        let server = FaultServer::start([answering(sized("200 OK", &json, whole(dialect)))]).await.unwrap();
        let client = client(dialect, &server.url(), patient());
        let mut response = call(&client, question(dialect).with_timeout(patient()), mode).await.unwrap();
        assert_eq!(response.raw.take().is_some(), mode == Mode::Complete);
        responses.push(response);
        drop(client);
        assert_eq!(finish(server).await.len(), 1);
    }
    assert_eq!(responses[0].text(), responses[1].text());
    assert_eq!(responses[0].finish_reason, responses[1].finish_reason);
    assert_eq!(responses[0].usage, responses[1].usage);
    let arguments =
        |at: usize| responses[at].tool_calls().map(|call| call.arguments.clone()).collect::<Vec<_>>();
    assert_eq!((arguments(0).len(), arguments(0)), (1, arguments(1)));
    assert_eq!(responses[0].reasoning(), responses[1].reasoning());
}

/// A proxy's error page, which may quote the request.
async fn a_web_page_instead_of_a_response(dialect: Dialect) {
    let page = format!("<!DOCTYPE html>\n<html><title>Sign in</title>{KEY}</html>");
    let wide = format!("<html>{}{KEY}</html>", "x".repeat(200 - "<html>".len() - KEY.len() / 2));
    for page in [page, wide] {
        for headers in [&["content-type: text/html; charset=utf-8"][..], &[]] {
            let script = answering(sized("200 OK", headers, &page));
            Fault::new(format!("a page with {headers:?}"), script, ErrorKind::Stream).check(dialect).await;
        }
        let script = answering(sized("502 Bad Gateway", &["content-type: text/html"], &page));
        let fault = Fault::new("a page with a status", script, ErrorKind::Server).status(502);
        fault.saying("the body begins with").check(dialect).await;
    }
}

async fn an_empty_response(dialect: Dialect) {
    let rows = [
        ("no body", sized("200 OK", &["content-type: application/json"], "")),
        ("no events", sized("200 OK", &["content-type: text/event-stream"], "")),
        ("blank lines", sized("200 OK", &["content-type: text/event-stream"], "\n\n\n\n")),
        ("no content", head("204 No Content", &[]).into_bytes()),
        ("old and empty", b"HTTP/1.0 200 OK\r\n\r\n".to_vec()),
    ];
    for (name, bytes) in rows {
        Fault::new(name, answering(bytes), ErrorKind::Stream).check(dialect).await;
    }
}

async fn json_of_another_shape(dialect: Dialect) {
    for body in ["null", "[]", "42", "\"text\"", "{}", "{\"hello\": \"world\"}"] {
        let script = answering(sized("200 OK", &["content-type: application/json"], body));
        Fault::new(body, script, ErrorKind::Stream).check(dialect).await;
    }
}

/// The key is not sent to the target of a redirect.
async fn a_redirect_is_not_followed(dialect: Dialect) {
    let elsewhere = FaultServer::start([answering(sized("200 OK", &[], whole(dialect)))]).await.unwrap();
    let absolute = format!("location: {}/elsewhere?key={KEY}", elsewhere.url());
    for line in
        ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent"]
    {
        for location in [absolute.as_str(), "location: /elsewhere", &format!("location: /{KEY}"), "x-none: 1"]
        {
            let script = answering(sized(line, &[location], "moved"));
            let status = line[..3].parse().unwrap();
            Fault::new(format!("{line}, {location}"), script, ErrorKind::Configuration)
                .status(status)
                .saying("redirects are not followed")
                .check(dialect)
                .await;
        }
    }
    assert!(finish(elsewhere).await.is_empty(), "nobody went there");
}
