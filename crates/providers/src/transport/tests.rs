mod certificate;

use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_llm::{ImageData, Message, ProviderAdapter, Retry, StreamEvent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::*;
use crate::compatible::Chat;
use crate::transport::events::StreamLimits;
use crate::{Anthropic, Gemini, OpenAi, OpenAiCompatible};

const KEY: &str = "sk-a-key-that-nobody-may-see";

/// Action of the server after it has read a request.
enum ServerAction {
    Send(Vec<u8>),
    Wait(Duration),
    /// Sends nothing and keeps the connection open until the client closes it.
    Hold,
}

/// A server on loopback that plays one script per connection and records the requests.
struct Server {
    base_url: String,
    heads: tokio::task::JoinHandle<Vec<String>>,
}

impl Server {
    async fn start(scripts: Vec<Vec<ServerAction>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "the test awaits the task")]
        let heads = tokio::spawn(async move {
            let mut heads = Vec::new();
            for script in scripts {
                let (mut socket, _) = listener.accept().await.unwrap();
                heads.push(read_request(&mut socket).await);
                for action in script {
                    match action {
                        ServerAction::Send(bytes) => socket.write_all(&bytes).await.unwrap(),
                        ServerAction::Wait(time) => tokio::time::sleep(time).await,
                        ServerAction::Hold => drop(socket.read(&mut [0; 64]).await),
                    }
                }
            }
            heads
        });
        Self { base_url, heads }
    }

    async fn responding(bytes: impl Into<Vec<u8>>) -> Self {
        Self::start(vec![vec![ServerAction::Send(bytes.into())]]).await
    }

    fn adapter(&self) -> OpenAiCompatible {
        OpenAiCompatible::builder(&self.base_url).with_api_key(KEY).build().unwrap()
    }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).await.unwrap();
        seen.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        let is_complete = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            body.len() >= length.parse::<usize>().unwrap()
        });
        if is_complete || count == 0 {
            return text;
        }
    }
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

fn chunked(parts: &[&str]) -> String {
    let chunks: String = parts.iter().map(|part| chunk(part)).collect();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"
    )
}

fn chunk(part: &str) -> String {
    format!("{:x}\r\n{part}\r\n", part.len())
}

const COMPLETE: &str =
    r#"{"id": "c1", "model": "m1", "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}"#;
const TEXT: &str = "data: {\"id\": \"c1\", \"choices\": [{\"delta\": {\"content\": \"hé\"}}]}\n\n";
const STOP: &str = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";

fn request() -> Request {
    Request::new("m", [Message::user("hi")])
}

async fn collect(adapter: &impl ProviderAdapter, request: &Request) -> (Vec<StreamEvent>, Option<Error>) {
    let mut stream = match adapter.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return (events, Some(error));
            }
        }
    }
    (events, None)
}

#[tokio::test]
async fn complete_response_with_rate_limits() {
    let headers = "content-type: application/json\r\nx-ratelimit-remaining-requests: 9\r\n";
    let server = Server::responding(http("200 OK", headers, COMPLETE)).await;
    let adapter = OpenAiCompatible::builder(format!("{}/", server.base_url))
        .with_api_key(KEY)
        .with_default_header("X-Custom", "mine")
        .build()
        .unwrap();
    let response = adapter.complete(&request()).await.unwrap();
    assert_eq!(response.text(), "hello");
    assert_eq!(response.rate_limit.unwrap().requests_remaining, Some(9));
    let head = server.heads.await.unwrap().remove(0);
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n") && head.contains("x-custom: mine\r\n"),
        "{head}"
    );
    assert!(!head.contains("accept-encoding"), "{head}");
}

#[tokio::test]
async fn streams_end_with_the_complete_response() {
    let server =
        Server::responding(chunked(&[": ping\n\n", &TEXT[..40], &TEXT[40..], STOP, "data: ignored\n\n"]))
            .await;
    let (events, error) = collect(&server.adapter(), &request()).await;
    assert!(error.is_none(), "{error:?}");
    let Some(StreamEvent::Finish { response, .. }) = events.last() else { panic!("no finish: {events:?}") };
    assert_eq!((response.text().as_str(), response.id.as_str()), ("hé", "c1"));
    assert_eq!(response.message.origin, Some(pintle_llm::Origin::new("openai-compatible", "m")));
}

#[tokio::test]
async fn a_streamed_response_is_read_by_its_first_character() {
    let events = format!("{TEXT}{STOP}");
    let cases = [
        ("text/event-stream", events.clone(), "hé"),
        ("application/json", events.clone(), "hé"),
        ("application/json; charset=utf-8", format!(": connected\n\n{events}"), "hé"),
        ("application/json", format!("\u{feff}{events}"), "hé"),
        ("application/json", COMPLETE.to_owned(), "hello"),
        ("text/event-stream", COMPLETE.to_owned(), "hello"),
        ("application/json", format!(" \n{COMPLETE}"), "hello"),
    ];
    for (content_type, body, text) in cases {
        let headers = format!("content-type: {content_type}\r\n");
        let server = Server::responding(http("200 OK", &headers, &body)).await;
        let (events, error) = collect(&server.adapter(), &request()).await;
        assert!(error.is_none(), "{content_type}: {body}: {error:?}");
        let Some(StreamEvent::Finish { response, .. }) = events.last() else {
            panic!("{content_type}: {body}: {events:?}");
        };
        assert_eq!(response.text(), text, "{content_type}: {body}");
    }
}

#[tokio::test]
async fn truncated_events_at_the_end_are_errors() {
    let finish = STOP.trim_end_matches("data: [DONE]\n\n");
    let usage = "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 7, \"completion_tokens\": 5}}";
    let cases = [
        ("", true),
        ("data: [DONE]", true),
        (": bye", true),
        (&format!("{usage}\n\n"), true),
        (&format!("{usage}\n"), false),
        ("data: {\"choices\": [], \"usa", false),
        ("data: [DO", false),
        ("da", false),
    ];
    for (end, is_complete) in cases {
        let server = Server::responding(http("200 OK", "", &format!("{TEXT}{finish}{end}"))).await;
        let (events, error) = collect(&server.adapter(), &request()).await;
        let finished = matches!(events.last(), Some(StreamEvent::Finish { .. }));
        assert_eq!((finished, error.is_none()), (is_complete, is_complete), "{end:?}: {error:?}");
        if let Some(error) = error {
            assert_eq!(
                (error.kind(), error.message()),
                (ErrorKind::Stream, "the stream ended inside an event")
            );
        }
    }
}

#[tokio::test]
async fn characters_split_between_reads_survive() {
    let body = format!("{TEXT}{STOP}");
    let mut script = vec![ServerAction::Send(chunked(&[]).into_bytes())];
    script.extend(body.bytes().map(|byte| ServerAction::Send([b"1\r\n", &[byte][..], b"\r\n"].concat())));
    let server = Server::start(vec![script]).await;
    let (events, error) = collect(&server.adapter(), &request()).await;
    assert!(error.is_none(), "{error:?}");
    assert!(
        events.iter().any(|event| matches!(event, StreamEvent::TextDelta { delta, .. } if delta == "hé"))
    );
}

#[tokio::test]
async fn connections_are_reused_after_a_stream() {
    let end = "0\r\n\r\n";
    let response = format!("{}{end}", chunked(&[TEXT, STOP]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let adapter =
        OpenAiCompatible::builder(format!("http://{}/v1", listener.local_addr().unwrap())).build().unwrap();
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        for _ in 0..3 {
            read_request(&mut socket).await;
            socket.write_all(response.as_bytes()).await.unwrap();
        }
    };
    let ask = async {
        for _ in 0..3 {
            assert!(collect(&adapter, &request()).await.1.is_none());
        }
    };
    // The server accepts one connection only.
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn error_responses_carry_delay_and_request_id() {
    let body = r#"{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}"#;
    let headers = "retry-after: 7\r\nx-request-id: req-1\r\n";
    for streamed in [false, true] {
        let server = Server::responding(http("429 Too Many Requests", headers, body)).await;
        let adapter = server.adapter();
        let error = if streamed {
            collect(&adapter, &request()).await.1.unwrap()
        } else {
            adapter.complete(&request()).await.unwrap_err()
        };
        assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimit, Some(429)));
        assert_eq!(error.retry(), Retry::After(Some(Duration::from_secs(7))));
        assert_eq!((error.request_id(), error.provider()), (Some("req-1"), Some("openai-compatible")));
    }
}

/// Builds an adapter for a base URL.
type Build<'a> = &'a dyn Fn(&str) -> Box<dyn ProviderAdapter>;

#[tokio::test]
async fn media_that_a_refusal_names_are_in_the_error() {
    let images = [1, 2].map(|byte| ImageData::data(vec![byte; 4], "image/png"));
    let fingerprints = images.clone().map(|image| Some(image.source.fingerprint()));
    let [first, second] = images;
    let request = Request::new(
        "m",
        [
            Message::user("look").with_part(first.into()),
            Message::assistant("seen"),
            Message::user("again").with_part(second.into()),
        ],
    );
    let adapters: [(Build<'_>, [&str; 3]); 4] = [
        (
            &|url| Box::new(Anthropic::builder(KEY).with_base_url(url).build().unwrap()),
            [
                "messages.0.content.1.image.source.base64.data: bad",
                "messages.2.content.1.image: bad",
                "messages.2: bad",
            ],
        ),
        (
            &|url| Box::new(OpenAiCompatible::builder(url).with_api_key(KEY).build().unwrap()),
            [
                "messages[0].content[1].image_url",
                "messages[2].content[1].image_url.url",
                "messages[1].content",
            ],
        ),
        (
            &|url| Box::new(OpenAi::builder(KEY).with_base_url(url).build().unwrap()),
            ["Invalid 'input[0].content[1].image_url'.", "input[2].content[1]", "input[1].content[0]"],
        ),
        (
            &|url| Box::new(Gemini::builder(KEY).with_base_url(url).build().unwrap()),
            ["contents[0].parts[1].inline_data", "contents[2].parts[1].inlineData", "contents[1].parts[0]"],
        ),
    ];
    for (adapter, messages) in adapters {
        for (message, expected) in messages.into_iter().zip([fingerprints[0], fingerprints[1], None]) {
            let body = format!(
                r#"{{"type": "error", "error": {{"type": "invalid_request_error", "message": "{message}"}}}}"#
            );
            let response =
                http("400 Bad Request", "content-type: application/json\r\nconnection: close\r\n", &body);
            for is_streamed in [true, false] {
                let server = Server::responding(response.clone()).await;
                let adapter = adapter(&server.base_url);
                let error = if is_streamed {
                    adapter.stream(&request).await.err().unwrap()
                } else {
                    adapter.complete(&request).await.unwrap_err()
                };
                let found = (error.kind(), error.refused_media());
                assert_eq!(found, (ErrorKind::InvalidRequest, expected), "{}: {message}", adapter.name());
            }
            // Some servers begin a stream before they read the images.
            let status = r#""status": "INVALID_ARGUMENT", "type": "invalid_request_error""#;
            let event = format!(
                "event: error\ndata: {{\"type\": \"error\", \"error\": {{{status}, \"message\": \"{message}\"}}}}\n\n"
            );
            let headers = "content-type: text/event-stream\r\nconnection: close\r\n";
            let server = Server::responding(http("200 OK", headers, &event)).await;
            let adapter = adapter(&server.base_url);
            let mut stream = adapter.stream(&request).await.unwrap();
            let error = loop {
                match stream.next().await {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break error,
                    None => panic!("{}: the stream ends without an error", adapter.name()),
                }
            };
            let found = (error.kind(), error.refused_media());
            assert_eq!(found, (ErrorKind::InvalidRequest, expected), "{} stream: {message}", adapter.name());
        }
    }
}

#[tokio::test]
async fn invalid_responses_are_typed_errors() {
    let page = http("200 OK", "content-type: text/html\r\n", "<html>hello</html>");
    let stall = vec![
        ServerAction::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n".to_vec()),
        ServerAction::Hold,
    ];
    let inside = vec![ServerAction::Send(chunked(&[TEXT]).into_bytes()), ServerAction::Hold];
    let cases: Vec<(&str, Vec<ServerAction>, ErrorKind, &str)> = vec![
        ("no response", vec![], ErrorKind::Network, "before the response began"),
        (
            "no HTTP",
            vec![ServerAction::Send(b"what?\r\n\r\n".to_vec())],
            ErrorKind::Network,
            "before the response began",
        ),
        (
            "half a head",
            vec![ServerAction::Send(b"HTTP/1.1 200 OK\r\nx".to_vec())],
            ErrorKind::Network,
            "before the response began",
        ),
        ("silence", vec![ServerAction::Hold], ErrorKind::RequestTimeout, "no response within"),
        ("a head only", stall, ErrorKind::RequestTimeout, "no response within"),
        ("silence inside", inside, ErrorKind::RequestTimeout, "the response stopped"),
        (
            "cut",
            vec![ServerAction::Send(chunked(&[TEXT]).into_bytes())],
            ErrorKind::Stream,
            "the connection broke",
        ),
        (
            "cut inside an event",
            vec![ServerAction::Send(chunked(&[&TEXT[..30]]).into_bytes())],
            ErrorKind::Stream,
            "the connection broke",
        ),
        (
            "ended early",
            vec![ServerAction::Send(format!("{}0\r\n\r\n", chunked(&[TEXT])).into_bytes())],
            ErrorKind::Stream,
            "before a finish reason",
        ),
        ("a page", vec![ServerAction::Send(page.into_bytes())], ErrorKind::Stream, "instead of text/html"),
        (
            "zipped",
            vec![ServerAction::Send(http("200 OK", "content-encoding: gzip\r\n", "xx").into_bytes())],
            ErrorKind::Stream,
            "gzip",
        ),
        (
            "garbage",
            vec![ServerAction::Send(http("200 OK", "", "data: \u{1}\n\n").into_bytes())],
            ErrorKind::Stream,
            "expected a JSON chunk",
        ),
        (
            "empty",
            vec![ServerAction::Send(http("200 OK", "", "").into_bytes())],
            ErrorKind::Stream,
            "before a finish reason",
        ),
        (
            "busy",
            vec![ServerAction::Send(http("503 Busy", "", "<html>").into_bytes())],
            ErrorKind::Server,
            "the body begins with",
        ),
        (
            "an error whose body never comes",
            vec![
                ServerAction::Send(b"HTTP/1.1 503 Busy\r\ncontent-length: 10\r\n\r\n".to_vec()),
                ServerAction::Hold,
            ],
            ErrorKind::Server,
            "no reason given",
        ),
        (
            "an error whose body is cut",
            vec![ServerAction::Send(b"HTTP/1.1 429 Slow\r\ncontent-length: 10\r\n\r\n".to_vec())],
            ErrorKind::RateLimit,
            "no reason given",
        ),
        (
            "bad bytes",
            vec![ServerAction::Send([chunked(&[TEXT]).as_bytes(), b"9\r\ndata: \xff\n\n\r\n"].concat())],
            ErrorKind::Stream,
            "expected a JSON chunk",
        ),
    ];
    let limit = Duration::from_millis(200);
    for (name, script, kind, words) in cases {
        let server = Server::start(vec![script]).await;
        let limits = AdapterTimeout::default().with_first_byte(limit).with_stream_read(limit);
        let (events, error) = collect(&server.adapter(), &request().with_timeout(limits)).await;
        let error = error.unwrap_or_else(|| panic!("{name}: a clean finish: {events:?}"));
        assert_eq!(error.kind(), kind, "{name}: {error:?}");
        assert!(error.message().contains(words), "{name}: {error:?}");
        assert_eq!(error.provider(), Some("openai-compatible"), "{name}");
        assert!(!events.iter().any(|event| matches!(event, StreamEvent::Finish { .. })), "{name}");
    }
}

#[tokio::test]
async fn complete_responses_have_a_total_timeout() {
    let script = vec![
        ServerAction::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec()),
        ServerAction::Hold,
    ];
    let server = Server::start(vec![script]).await;
    let limits = AdapterTimeout::default().with_request(Some(Duration::from_millis(100)));
    let error = server.adapter().complete(&request().with_timeout(limits)).await.unwrap_err();
    assert_eq!((error.kind(), error.retry()), (ErrorKind::RequestTimeout, Retry::Never));
    assert!(error.message().contains("no complete response within 100ms"), "{error}");

    let server = Server::responding(http("200 OK", "", "<html>")).await;
    let error = server.adapter().complete(&request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stream);
    assert!(error.message().contains("expected a JSON completion, found \"<html>\""), "{error}");
}

#[tokio::test]
async fn known_status_precedes_the_total_timeout() {
    let script = vec![
        ServerAction::Send(b"HTTP/1.1 503 Busy\r\ncontent-length: 10\r\n\r\nno".to_vec()),
        ServerAction::Hold,
    ];
    let server = Server::start(vec![script]).await;
    let limits = AdapterTimeout::default().with_request(Some(Duration::from_millis(200)));
    let error = server.adapter().complete(&request().with_timeout(limits)).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Server, Some(503)), "{error:?}");
}

/// The template of the model contains `<think>`, so content is held until the closing tag.
#[tokio::test]
async fn content_that_is_held_resets_the_time_without_content() {
    let text =
        |text: &str| format!("data: {{\"choices\": [{{\"delta\": {{\"content\": \"{text}\"}}}}]}}\n\n");
    let limits = AdapterTimeout::default().with_content(Some(Duration::from_secs(1)));
    let request = Request::new("deepseek-r1:8b", [Message::user("hi")]).with_timeout(limits);
    for (piece, is_stalled) in [(text("Hm. "), false), (": ping\n\n".to_owned(), true)] {
        let mut script = vec![ServerAction::Send(chunked(&[&text("Hm. ")]).into_bytes())];
        for _ in 0..8 {
            script.push(ServerAction::Wait(Duration::from_millis(200)));
            script.push(ServerAction::Send(chunk(&piece).into_bytes()));
        }
        let end = [chunk(&text("</think>So.")), chunk(STOP), "0\r\n\r\n".to_owned()].concat();
        script.push(ServerAction::Send(end.into_bytes()));
        let server = Server::start(vec![script]).await;
        let (events, error) = collect(&server.adapter(), &request).await;
        if is_stalled {
            assert!(error.unwrap().message().contains("no content for 1s"), "{piece}");
            continue;
        }
        assert!(error.is_none(), "{error:?}");
        let Some(StreamEvent::Finish { response, .. }) = events.last() else { panic!("no end") };
        assert_eq!((response.text().as_str(), response.reasoning()), ("So.", Some("Hm. ".repeat(9))));
    }
}

#[tokio::test]
async fn streams_and_events_have_size_limits() {
    let pings = ": ping\n\n".repeat(20);
    let cases = [
        (StreamLimits { event: 10_000, stream: 10_000, content: None }, None),
        (
            StreamLimits { event: 10_000, stream: 100, content: None },
            Some("the stream is larger than 100 bytes"),
        ),
        (StreamLimits { event: 20, stream: 10_000, content: None }, Some("an event is larger than 20 bytes")),
    ];
    for (limits, expected) in cases {
        let server = Server::responding(format!("{}0\r\n\r\n", chunked(&[TEXT, &pings, STOP]))).await;
        let dialect =
            |host: &str| Chat { provider: "local".to_owned(), api_key: None, host: host.to_owned() };
        let adapter = HttpAdapter::new("local", HttpOptions::new(&server.base_url), dialect).unwrap();
        let call = adapter.dialect().encode(&request(), true).unwrap();
        let exchange = adapter.open(call, &AdapterTimeout::default(), ResponseMode::Streamed).await.unwrap();
        let decoder = adapter.dialect().decoder(&request(), 1);
        let events: Vec<_> =
            Events::new(exchange, decoder, "local", "m", None, limits).into_stream().collect().await;
        match (events.last().unwrap(), expected) {
            (Ok(event), None) => assert!(matches!(event, StreamEvent::Finish { .. }), "{event:?}"),
            (Err(error), Some(message)) => {
                assert_eq!((error.kind(), error.message()), (ErrorKind::Stream, message));
                // The next attempt would be as large and as expensive.
                assert_eq!(error.retry(), Retry::Never);
            }
            (last, expected) => panic!("{last:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn last_event_may_repeat_a_large_response() {
    // Each takes 1.5 MiB on the wire.
    let pieces = pintle_test_conditions::cases(3, 12);
    let piece = "a\\n".repeat(1 << 19);
    let text = piece.repeat(pieces);
    let item = format!(
        r#"{{"id":"i","type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}"#
    );
    let mut stream = String::from("data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n");
    stream.push_str(
        r#"data: {"type":"response.output_item.added","output_index":0,"item":{"id":"i","type":"message"}}"#,
    );
    for _ in 0..pieces {
        stream.push_str("\n\n");
        stream.push_str(
            r#"data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":""#,
        );
        stream.push_str(&piece);
        stream.push_str(r#""}"#);
    }
    stream.push_str("\n\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":");
    stream.push_str(&item);
    stream.push_str("}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[");
    stream.push_str(&item);
    stream.push_str("]}}\n\n");
    let server = Server::responding(http("200 OK", "content-type: text/event-stream\r\n", &stream)).await;
    let adapter = OpenAi::builder(KEY).with_base_url(&server.base_url).build().unwrap();
    let (events, error) = collect(&adapter, &request()).await;
    assert!(error.is_none(), "{error:?}");
    let Some(StreamEvent::Finish { response, .. }) = events.last() else { panic!("no end") };
    assert_eq!(response.text().len(), pieces * (2 << 19));
}

#[tokio::test]
async fn default_headers_replace_the_adapters_own() {
    let server = Server::responding(http("200 OK", "", COMPLETE)).await;
    let adapter = OpenAiCompatible::builder(&server.base_url)
        .with_api_key(KEY)
        .with_default_header("Authorization", "Basic abc")
        .build()
        .unwrap();
    adapter.complete(&request()).await.unwrap();
    let head = server.heads.await.unwrap().remove(0);
    let sent: Vec<&str> = head.lines().filter(|line| line.starts_with("authorization:")).collect();
    assert_eq!(sent, ["authorization: Basic abc"]);
}

#[tokio::test]
async fn keep_alive_comments_reset_the_read_timeout() {
    let pings = [": ping\n\n"; 12];
    let mut script = vec![ServerAction::Send(chunked(&[]).into_bytes())];
    script.extend(
        pings.iter().map(|ping| ServerAction::Send(format!("{:x}\r\n{ping}\r\n", ping.len()).into_bytes())),
    );
    let (release, released) = oneshot::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let adapter =
        OpenAiCompatible::builder(format!("http://{}/v1", listener.local_addr().unwrap())).build().unwrap();
    let limit = Duration::from_millis(300);
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        // Takes twice the timeout, with bytes in between.
        let mut beat = tokio::time::interval(limit / 6);
        for action in script {
            beat.tick().await;
            if let ServerAction::Send(bytes) = action {
                socket.write_all(&bytes).await.unwrap();
            }
        }
        let rest = format!("{:x}\r\n{TEXT}{STOP}\r\n", TEXT.len() + STOP.len());
        socket.write_all(rest.as_bytes()).await.unwrap();
        let _ = released.await;
    };
    let ask = async {
        let limits = AdapterTimeout::default().with_first_byte(limit).with_stream_read(limit);
        let (events, error) = collect(&adapter, &request().with_timeout(limits)).await;
        assert!(error.is_none(), "{error:?}");
        assert!(matches!(events.last(), Some(StreamEvent::Finish { .. })));
        let _ = release.send(());
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let adapter =
        OpenAiCompatible::builder(format!("http://{}/v1", listener.local_addr().unwrap())).build().unwrap();
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(chunked(&[TEXT]).as_bytes()).await.unwrap();
        // Returns when the client closes the connection.
        assert_eq!(socket.read(&mut [0; 16]).await.unwrap_or(0), 0);
    };
    let ask = async {
        let mut stream = adapter.stream(&request()).await.unwrap();
        assert!(stream.next().await.unwrap().is_ok());
        drop(stream);
    };
    tokio::time::timeout(Duration::from_secs(10), async { tokio::join!(serve, ask) }).await.unwrap();
}

#[tokio::test]
async fn refused_connections_and_redirects() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let adapter =
        OpenAiCompatible::builder(format!("http://{address}/v1")).with_api_key(KEY).build().unwrap();
    let error = adapter.complete(&request()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Network, format!("no connection to {address}").as_str())
    );
    assert!(std::error::Error::source(&error).is_some() && error.is_retryable());

    let headers = "location: http://127.0.0.1:9/elsewhere?token=abc\r\n";
    let server = Server::responding(http("307 Temporary Redirect", headers, "")).await;
    let error = server.adapter().complete(&request()).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Configuration, Some(307)));
    assert!(error.message().contains("redirects to http://127.0.0.1:9/elsewhere;"), "{error}");
}

#[tokio::test]
async fn tls_failures_are_network_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let adapter = OpenAiCompatible::builder(url).build().unwrap();
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 This is no TLS\r\n\r\n").await.unwrap();
    };
    let request = request();
    let (error, ()) = tokio::join!(adapter.complete(&request), serve);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Network);
}

#[tokio::test]
async fn errors_and_debug_show_no_key() {
    let body = format!(r#"{{"error": {{"message": "Incorrect key: {KEY}", "code": "invalid_api_key"}}}}"#);
    let server = Server::responding(http("401 Unauthorized", "", &body)).await;
    let adapter = server.adapter();
    let error = adapter.complete(&request()).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Authentication, "Incorrect key: [key]"));
    let shown = format!(
        "{error:?} {error} {adapter:?} {:?}",
        OpenAiCompatible::builder("http://u:pw@x").with_api_key(KEY)
    );
    assert!(!shown.contains(KEY) && !shown.contains("pw"), "{shown}");
}

#[tokio::test]
async fn codes_causes_and_gateway_keys_are_redacted() {
    const GATEWAY: &str = "gw-another-secret-value";
    const PASSWORD: &str = "pw-of-the-user";
    let body = format!(r#"{{"error": {{"message": "no", "code": "bad {KEY}", "param": "{GATEWAY}"}}}}"#);
    let headers = format!("x-request-id: {GATEWAY}\r\n");
    let server = Server::responding(http("400 Bad", &headers, &body)).await;
    let adapter = OpenAiCompatible::builder(&server.base_url)
        .with_api_key(KEY)
        .with_default_header("x-gateway-token", GATEWAY)
        .build()
        .unwrap();
    let error = adapter.complete(&request()).await.unwrap_err();
    assert_eq!((error.error_code(), error.request_id()), (Some("bad [key]"), Some("[key]")));
    assert!(!format!("{error:?}").contains(GATEWAY), "{error:?}");

    // A proxy quotes the request line.
    let body = format!("cannot POST /v1/chat/completions?api-key={GATEWAY} as user:{PASSWORD}");
    let server = Server::responding(http("404 Not Found", "", &body)).await;
    let url = format!("{}?api-key={GATEWAY}", server.base_url.replace("//", &format!("//user:{PASSWORD}@")));
    let adapter = OpenAiCompatible::builder(url).build().unwrap();
    let error = adapter.complete(&request()).await.unwrap_err();
    let debug = format!("{error:?}");
    assert!(debug.contains("?api-key=[key] as user:[key]"), "{debug}");

    // The error of the decoder quotes undecodable data.
    let event = format!("{{\"type\": \"message_start\", \"index\": \"{KEY}\"}}");
    let padding = " ".repeat(300);
    let server = Server::responding(chunked(&[&format!("data:{padding}{event}\n\n")])).await;
    let adapter = Anthropic::builder(KEY).with_base_url(&server.base_url).build().unwrap();
    let mut stream = adapter.stream(&request()).await.unwrap();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stream);
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
}

#[test]
fn complete_and_truncated_keys_are_redacted() {
    let cases = [
        ("abababab-x", "key abababab-x!", "key [key]!"),
        ("abababab-x", "abababab-xabababab-x", "[key][key]"),
        ("abababab-x", "ababababab-x", "ab[key]"),
        ("abababab-x", "cut abababab", "cut [key]"),
        ("abababab-x", "cut \"abababab-\"", "cut \"[key]\""),
        ("abababab-x", "cut ababababab", "cut ab[key]"),
        ("abababab-x", "abababab-y", "abababab-y"),
        ("abababab-x", "too little: ababab", "too little: ababab"),
        ("abababab-x", "abababab€", "abababab€"),
    ];
    for (key, text, redacted) in cases {
        assert_eq!(exchange::redact(text, key), redacted, "{text}");
    }
}

#[tokio::test]
async fn truncated_messages_show_no_partial_key() {
    // A key may straddle the length limit of a message.
    let visible = 12;
    let excerpt = format!("<html>{}{KEY}</html>", "x".repeat(200 - "<html>".len() - visible));
    let message = format!("{}{KEY}", "x".repeat(2_000 - visible));
    let raw = format!("{}{KEY}", "x".repeat(64 * 1024 - visible));
    for (status, body) in [
        ("200 OK", excerpt.clone()),
        ("502 Bad", excerpt),
        ("400 Bad", format!(r#"{{"error": {{"message": "{message}"}}}}"#)),
        ("500 Bad", raw),
    ] {
        let server = Server::responding(http(status, "", &body)).await;
        let error = server.adapter().complete(&request()).await.unwrap_err();
        let debug = format!("{error:?}");
        assert!(debug.contains("[key]") && !debug.contains(&KEY[..visible]), "{status}: {error}");
    }
    // A prefix of a key is not redacted if other text follows.
    let server =
        Server::responding(http("401 No", "", r#"{"error": {"message": "sk-a-key-of-yours?"}}"#)).await;
    assert_eq!(server.adapter().complete(&request()).await.unwrap_err().message(), "sk-a-key-of-yours?");
}

#[test]
fn base_urls_and_headers_are_checked() {
    for bad in ["", "localhost:8080", "/v1", "ftp://example.com", "file:///etc"] {
        let error = OpenAiCompatible::builder(bad).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{bad}");
        assert!(error.message().contains("base URL"), "{error}");
    }
    for (name, value) in [("bad name", "x"), ("x", "line\nbreak")] {
        let error =
            OpenAiCompatible::builder("http://x").with_default_header(name, value).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{name}");
    }
    assert!(OpenAiCompatible::builder("http://x").with_api_key("two words").build().is_err());
}

#[test]
fn paths_are_joined_below_the_base_url() {
    let cases = [
        ("https://a/v1", "/x", "https://a/v1/x"),
        ("https://a/v1/", "/x", "https://a/v1/x"),
        ("https://a", "/x?alt=sse", "https://a/x?alt=sse"),
        ("https://a/v1?api-version=1", "/x", "https://a/v1/x?api-version=1"),
        ("https://a/v1?api-version=1", "/x?alt=sse", "https://a/v1/x?api-version=1&alt=sse"),
    ];
    for (base, path, expected) in cases {
        assert_eq!(join(&Url::parse(base).unwrap(), path).as_str(), expected);
    }
}

#[test]
fn loopback_addresses_are_recognised() {
    for (url, expected) in [
        ("http://localhost:1/", true),
        ("http://127.0.0.1/", true),
        ("http://127.9.9.9/", true),
        ("http://[::1]:1/", true),
        ("http://10.0.0.1/", false),
        ("http://localhost.example.com/", false),
    ] {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
    }
}
