//! Servers and proxies that do not behave.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use pintle_agent::{EventKind, SessionId};

use super::harness::{Canned, PATIENCE, head_and_body, next, quick, response};
use crate::operation;
use crate::transport::{FailedRequest, Transport};
use crate::{Client, ClientError, EventId, SessionItem, SessionQuery};

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream";

fn id() -> SessionId {
    SessionId::new("s1")
}

fn key_of(request: &str) -> &str {
    request.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap()
}

#[tokio::test]
async fn a_change_is_repeated_with_its_key() {
    let bad = response("502 Bad Gateway", "text/html", "", "<p>no</p>");
    let busy = response("429 Too Many Requests", JSON, "retry-after: 0\r\n", "{}");
    let cut = b"HTTP/1.1 202 Acc".to_vec();
    let server =
        Canned::start(vec![bad, busy, Vec::new(), cut, response("202 Accepted", JSON, "", "")]).await;
    server.client(quick()).submit(&id(), "Once").await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 5, "{requests:?}");
    assert!(requests.iter().all(|request| request.ends_with(r#"{"text":"Once"}"#)), "{requests:?}");
    let keys: Vec<&str> = requests.iter().map(|request| key_of(request)).collect();
    assert!(keys.iter().all(|key| *key == keys[0] && key.len() == 32), "{keys:?}");
}

#[tokio::test]
async fn failures_that_stay_are_not_repeated() {
    let problem = r#"{"type":"/problems/full","title":"Full","status":429,"detail":"too much"}"#;
    for (given, status, requests) in [
        (response("500 Internal Server Error", JSON, "", "{}"), 500, 1),
        (response("400 Bad Request", "text/plain", "", "no"), 400, 1),
        (response("429 Too Many Requests", JSON, "", problem), 429, 1),
        (response("429 Too Many Requests", JSON, "retry-after: 3600\r\n", problem), 429, 1),
        (response("307 Temporary Redirect", JSON, "location: http://127.0.0.1:1/\r\n", ""), 307, 1),
        (response("503 Service Unavailable", JSON, "", ""), 503, 3),
    ] {
        let server = Canned::start(vec![given]).await;
        let error = server.client(quick().with_retries(2)).interrupt(&id()).await.unwrap_err();
        assert_eq!((error.status(), server.requests().len()), (Some(status), requests), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
    }
}

#[tokio::test]
async fn bodies_of_other_servers_are_errors() {
    for (media_type, body) in
        [("text/html", "<p>hello</p>"), (JSON, "{}"), (JSON, ""), (JSON, "{\"sessions\":[{}]}")]
    {
        let server = Canned::start(vec![response("200 OK", media_type, "", body)]).await;
        let error = server.client(quick()).list_sessions(&SessionQuery::default()).await.unwrap_err();
        assert!(matches!(error, ClientError::Unexpected { .. }), "{body}: {error:?}");
        assert_eq!(server.requests().len(), 1);
    }
    let server = Canned::start(vec![response("200 OK", "text/html", "", "<p>log in</p>")]).await;
    let error = next(&mut server.client(quick()).events(&id(), None)).await.unwrap_err();
    assert_eq!(error.to_string(), "expected a stream of events in the response");
    let server = Canned::start(vec![response("200 OK", STREAM, "", "data: no JSON\n\n")]).await;
    let error = next(&mut server.client(quick()).events(&id(), None)).await.unwrap_err();
    assert!(matches!(error, ClientError::Unexpected { .. }), "{error:?}");
}

#[tokio::test]
async fn a_history_names_the_damage_of_its_record() {
    for (body, damage) in [
        (r#"{"turns":[]}"#, None),
        (r#"{"turns":[],"damage":"damaged at line 9"}"#, Some("damaged at line 9")),
    ] {
        let server = Canned::start(vec![response("200 OK", JSON, "", body)]).await;
        let history = server.client(quick()).history(&id()).await.unwrap();
        assert_eq!(history.damage.as_deref(), damage, "{body}");
    }
}

#[tokio::test]
async fn long_lines_are_not_held() {
    let options = quick().with_max_bytes(1 << 16).with_retries(0);
    let line = format!("data: {}", "x".repeat(1 << 20));
    let event = "data: x\n".repeat(1 << 14);
    for body in [line, event] {
        let server = Canned::start(vec![response("200 OK", STREAM, "", &body)]).await;
        let error = next(&mut server.client(options.clone()).events(&id(), None)).await.unwrap_err();
        assert!(matches!(error, ClientError::TooLong(65_536)), "{error:?}");
    }
    let server = Canned::start(vec![response("200 OK", "application/jsonl", "", &"x".repeat(1 << 20))]).await;
    let client = server.client(options);
    let error = client.journal(&id(), 1, None).next().await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::TooLong(_)), "{error:?}");
    let error = client.history(&id()).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLong(_)), "{error:?}");
}

#[tokio::test]
async fn silence_is_a_lost_connection() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9\r\n\r\n".to_vec();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut open = tokio::task::JoinSet::new();
    open.spawn(async move {
        let mut streams = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            head_and_body(&mut stream).await;
            tokio::io::AsyncWriteExt::write_all(&mut stream, &head).await.unwrap();
            streams.push(stream);
        }
    });
    let short = Duration::from_millis(50);
    let options = quick().with_silence(short).with_timeout(short).with_retries(1);
    let client = Client::with_options(&url, None, options).unwrap();
    let mut items = client.events(&id(), None);
    for failures in 1..=3 {
        let item = next(&mut items).await.unwrap();
        let SessionItem::Disconnected(lost) = item else { panic!("{item:?}") };
        assert!(matches!(lost.error, ClientError::Silent(_)) && lost.failures == failures, "{lost:?}");
    }
    let began = Instant::now();
    assert!(matches!(client.models().await, Err(ClientError::Silent(_))));
    assert!(began.elapsed() >= 2 * short && began.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_server_that_is_gone_is_an_error_of_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/#token=secret");
    let client = Client::with_options(&url, None, quick().with_retries(1)).unwrap();
    let error = client.models().await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot connect to {address}"));
    assert!(error.is_retryable() && !format!("{error:?}").contains("secret"), "{error:?}");
}

/// Asks the server once, and returns the failure.
async fn fail(transport: &Transport) -> FailedRequest {
    let request = transport.request(&operation::HEALTH, &[]).unwrap();
    transport.call(&request).await.err().unwrap()
}

#[tokio::test]
async fn a_failure_to_connect_is_final_only_at_a_server_that_never_was() {
    let directory = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", directory.path().join("missing").display());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let transport = Transport::new(&url, None, quick().with_retries(2)).unwrap();
    let serving = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        head_and_body(&mut stream).await;
        let busy = response("500 Internal Server Error", JSON, "", "{}");
        tokio::io::AsyncWriteExt::write_all(&mut stream, &busy).await.unwrap();
    };
    let (answered, ()) = tokio::join!(fail(&transport), serving);
    assert_eq!((answered.error.status(), answered.attempts), (Some(500), 1));
    // The listener is closed.
    let gone = fail(&transport).await;
    assert!(matches!(gone.error, ClientError::Connect { .. }), "{:?}", gone.error);
    assert_eq!(gone.attempts, 3);
    for url in [url, socket] {
        let unknown = fail(&Transport::new(&url, None, quick().with_retries(2)).unwrap()).await;
        assert!(matches!(unknown.error, ClientError::Connect { .. }), "{url}: {:?}", unknown.error);
        assert_eq!(unknown.attempts, 1, "{url}");
    }
}

/// Returns the text of an event of a session.
fn event(seq: u64, offset: Option<u64>, kind: &str, data: &str) -> String {
    let id = if offset.is_none() { format!("id: {seq}-7\n") } else { String::new() };
    let offset = offset.map_or(String::new(), |offset| format!("\"offset\":{offset},"));
    let head = r#""timestamp":"2026-01-02T03:04:05.007Z","session_id":"s1""#;
    format!("{id}data: {{\"seq\":{seq},{offset}{head},\"kind\":\"{kind}\",\"data\":{data}}}\n\n")
}

#[tokio::test]
async fn events_and_text_that_are_sent_again_are_dropped() {
    let delta = |offset, text: &str| {
        event(1, Some(offset), "ASSISTANT_TEXT_DELTA", &format!("{{\"delta\":\"{text}\"}}"))
    };
    let input = event(0, None, "USER_INPUT", r#"{"content":"Hi"}"#);
    let start = event(1, None, "ASSISTANT_TEXT_START", "{}");
    let later = event(2, None, "OF_A_LATER_SERVER", r#"{"x":1}"#);
    let later_delta = event(2, Some(0), "OF_A_LATER_SERVER_DELTA", r#"{"delta":"x"}"#);
    let end = event(3, None, "ASSISTANT_TEXT_END", r#"{"text":"Grüße"}"#);
    let heartbeat = "event: heartbeat\ndata: {}\n\n: comment\n\nevent: of_a_later_server\ndata: {}\n\n";
    let first = format!("retry: 500\n\n{input}{start}{heartbeat}{}data: {{\"cut", delta(0, "Gr"));
    let second = format!("{start}{}{}{later_delta}{later}", delta(0, "Grü"), delta(4, "ße"));
    let third = format!("{input}{}{end}", delta(0, "Grüße"));
    let reset = format!("event: reset\ndata: {{\"reason\":\"lost\"}}\n\n{input}event: ready\ndata: {{}}\n\n");
    let streams = [first, second, third, reset].map(|body| response("200 OK", STREAM, "", &body));
    let server = Canned::start(streams.to_vec()).await;
    let mut items = server.client(quick()).events(&id(), Some(EventId::new("")));
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "ready") {
        seen.push(match next(&mut items).await.unwrap() {
            SessionItem::Event { id, event } => format!("{id} {}", event.seq),
            SessionItem::Unknown { id, event } => format!("{id} unknown {}", event["data"]["x"]),
            SessionItem::Delta(event) => {
                let EventKind::AssistantTextDelta { delta } = event.kind else { panic!("{event:?}") };
                format!("{:?} {delta}", event.offset.unwrap())
            }
            SessionItem::Disconnected(lost) => format!("lost {}", lost.failures),
            SessionItem::Reset { reason } => format!("reset {reason}"),
            SessionItem::Ready => "ready".to_owned(),
            SessionItem::Gap(_) => "gap".to_owned(),
        });
    }
    let expected = [
        "0-7 0",
        "1-7 1",
        "0 Gr",
        "lost 1",
        "2 ü",
        "4 ße",
        "2-7 unknown 1",
        "lost 1",
        "3-7 3",
        "lost 1",
        "reset lost",
        "0-7 0",
        "ready",
    ];
    assert_eq!(seen, expected);
    let afters: Vec<String> =
        server.requests().iter().map(|one| one.lines().next().unwrap().to_owned()).collect();
    let path = "GET /v1/sessions/s1/events";
    let expected = ["?after=", "?after=1-7", "?after=2-7", "?after=3-7"];
    assert_eq!(afters, expected.map(|after| format!("{path}{after} HTTP/1.1")));
}

#[tokio::test]
async fn problems_within_a_stream_end_its_connection() {
    let problem = |status: u16, kind: &str| {
        let data = format!(r#"{{"type":"/problems/{kind}","title":"","status":{status},"detail":"why"}}"#);
        response("200 OK", STREAM, "", &format!("event: problem\ndata: {data}\n\n"))
    };
    let server = Canned::start(vec![problem(503, "unavailable"), problem(404, "not_found")]).await;
    let mut items = server.client(quick()).events(&id(), None);
    let lost = next(&mut items).await.unwrap();
    assert!(
        matches!(&lost, SessionItem::Disconnected(lost) if lost.error.code() == Some("unavailable")),
        "{lost:?}"
    );
    assert!(items.next().await.is_none(), "the session was deleted");
    let server = Canned::start(vec![problem(400, "invalid")]).await;
    let mut items = server.client(quick()).events(&id(), None);
    assert_eq!(next(&mut items).await.unwrap_err().to_string(), "why");
    assert!(items.next().await.is_none());
    assert!(items.next().await.is_none(), "a stream that has ended can be asked again");
}
