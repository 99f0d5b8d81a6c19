//! No key in any log, error or debug output.
//!
//! Every adapter succeeds and fails in every way, with servers that quote the key wherever possible, while everything
//! sent to `tracing` is recorded. Then all output is searched for fragments of the keys.

pub(crate) mod log;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_llm::{
    AdapterTimeout, Budget, Client, Error, ErrorKind, Logging, Message, ProviderAdapter, Request,
};
use pintle_middleware::{CircuitBreaker, KnownModels, RateLimit, ResponseCache, UnknownModel};
use pintle_providers::{AdapterBuilder, Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, FaultScript, FaultServer, Script, ScriptedServer, ServerOptions, Turn};

use self::log::Log;

/// The key in the `authorization`, `x-api-key` or `x-goog-api-key` header.
const KEY: &str = "sk-Recognisable0123456789Tail";
/// The key of a gateway, in a header added by the application.
const GATEWAY_KEY: &str = "gw-Unmistakable9876543210Tail";
/// Fragments that must not be seen: the starts, which remain after truncation, and the ends.
const FRAGMENTS: [&str; 4] = ["sk-Recog", "gw-Unmis", "0123456789Tail", "9876543210Tail"];

/// How long a client waits for a server that does not answer.
const SILENCE: Duration = Duration::from_millis(150);
/// How long it waits for others, also on a busy machine.
const ANSWER: Duration = Duration::from_secs(60);

#[tokio::test]
async fn openai_leaks_no_key() {
    leaks_no_key(Dialect::OpenAiResponses).await;
}

#[tokio::test]
async fn anthropic_leaks_no_key() {
    leaks_no_key(Dialect::AnthropicMessages).await;
}

#[tokio::test]
async fn gemini_leaks_no_key() {
    leaks_no_key(Dialect::Gemini).await;
}

#[tokio::test]
async fn compatible_servers_leak_no_key() {
    leaks_no_key(Dialect::ChatCompletions).await;
}

async fn leaks_no_key(dialect: Dialect) {
    let log = Log::begin();
    let mut observed = ObservedOutput::default();
    success(dialect, &mut observed).await;
    for fault in faults() {
        let server = FaultServer::start([fault.script.clone()]).await.unwrap();
        let client = client(dialect, &server.url(), fault.wait(), &mut observed);
        let kinds = fail(&client, dialect, &fault.name, &mut observed).await;
        assert!(
            fault.kinds.is_empty() || kinds.iter().all(|kind| fault.kinds.contains(kind)),
            "{}: {kinds:?}",
            fault.name
        );
    }
    let refusing = FaultServer::refusing().unwrap();
    let client = client(dialect, &refusing.url(), ANSWER, &mut observed);
    let kinds = fail(&client, dialect, "refused", &mut observed).await;
    assert_eq!(kinds, [ErrorKind::Network; 2]);
    misconfigured(dialect, &mut observed);

    let log = log.text();
    assert!(
        log.contains("DEBUG pintle_providers::transport") && log.contains("gen_ai.request.model"),
        "{log}"
    );
    observed.record("the log", log);
    observed.search();
}

/// All observable output, with its source.
#[derive(Default)]
struct ObservedOutput(Vec<(String, String)>);

impl ObservedOutput {
    fn record(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.0.push((place.into(), text.into()));
    }

    fn debug(&mut self, place: &str, value: &impl Debug) {
        self.record(place, format!("{value:?}\n{value:#?}"));
    }

    /// Records an error in each form, and each of its causes.
    fn error(&mut self, place: &str, error: &Error) {
        self.debug(place, error);
        self.record(place, format!("{error} {error:#} {:?} {:?}", error.raw(), error.message()));
        self.record(place, serde_json::to_string(error.info()).unwrap());
        let mut cause = std::error::Error::source(error);
        while let Some(found) = cause {
            self.record(place, format!("{found} {found:?} {found:#?}"));
            cause = found.source();
        }
    }

    fn search(&self) {
        for (place, text) in &self.0 {
            for fragment in FRAGMENTS {
                if let Some(at) = text.find(fragment) {
                    let before: String = text[..at].chars().rev().take(200).collect();
                    let before: String = before.chars().rev().collect();
                    panic!("{place} shows {fragment} after: {before}");
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "here shows")]
fn the_search_finds_a_key() {
    let mut observed = ObservedOutput::default();
    observed.record("here", format!("authorization: Bearer {KEY}"));
    observed.search();
}

/// Behaviour of a server, and the errors that may follow; any error if none is given.
struct Fault {
    name: String,
    script: FaultScript,
    kinds: &'static [ErrorKind],
}

impl Fault {
    fn new(name: impl Into<String>, script: FaultScript, kinds: &'static [ErrorKind]) -> Self {
        Self { name: name.into(), script, kinds }
    }

    /// Returns how long a client waits for each part of the response.
    fn wait(&self) -> Duration {
        if self.kinds == [ErrorKind::RequestTimeout] { SILENCE } else { ANSWER }
    }

    /// Creates a response with these bytes.
    fn answering(name: impl Into<String>, status: u16, head: &str, body: &str) -> Self {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} x\r\nconnection: close\r\n{head}content-length: {length}\r\n\r\n{body}"
        );
        Self::new(name, FaultScript::new().read_request().write(answer), &[])
    }
}

fn faults() -> Vec<Fault> {
    let mut faults = quoting_refusals();
    faults.extend(quoting_answers());
    faults.extend(redirects());
    faults.extend(silences());
    faults
}

/// Returns the quotes seen in real responses: the key, the header, all headers.
fn quotes() -> String {
    format!("Incorrect API key provided: {KEY}. authorization: Bearer {KEY}, x-gateway-key: {GATEWAY_KEY}")
}

fn quoting_refusals() -> Vec<Fault> {
    let json = "content-type: application/json\r\n";
    let quotes = quotes();
    let mut faults = Vec::new();
    for status in [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529] {
        let body = serde_json::json!({
            "type": "error",
            "error": {"message": quotes, "type": KEY, "code": GATEWAY_KEY, "status": KEY, "param": KEY,
                "details": [{"reason": KEY}]},
            "request_id": KEY,
        });
        faults.push(Fault::answering(format!("{status} in JSON"), status, json, &body.to_string()));
        let page = format!("<html>{quotes}</html>");
        faults.push(Fault::answering(format!("{status} as a page"), status, "", &page));
    }
    // Truncation of a message may split the key at any position.
    for pad in (130..=200).step_by(5) {
        let page = format!("{}{KEY}{GATEWAY_KEY}", "x".repeat(pad));
        faults.push(Fault::answering(format!("a key after {pad} bytes"), 500, "", &page));
    }
    for pad in (1_960..=2_000).step_by(4) {
        let body = serde_json::json!({"error": {"message": format!("{}{KEY}", "x".repeat(pad))}});
        faults.push(Fault::answering(format!("a key after {pad} characters"), 400, json, &body.to_string()));
    }
    let long = format!("{}{KEY}", "x".repeat(64 * 1024 - 12));
    faults.push(Fault::answering("a key where the body is cut", 500, "", &long));
    let ids = format!("x-request-id: {KEY}\r\nrequest-id: {KEY}\r\nretry-after: {KEY}\r\n");
    faults.push(Fault::answering("a key in headers", 503, &ids, ""));
    faults
}

fn quoting_answers() -> Vec<Fault> {
    let quotes = quotes();
    let events = "content-type: text/event-stream\r\n";
    let json = "content-type: application/json\r\n";
    let event = |data: &str| format!("data: {data}\n\n");
    let error = serde_json::json!({"type": "error", "code": KEY, "error": {"message": quotes, "type": KEY, "code": KEY}});
    let failed = serde_json::json!({"type": "response.failed",
        "response": {"status": "failed", "error": {"message": quotes, "code": KEY}}});
    let mut faults = vec![
        Fault::answering("a page instead of an answer", 200, "content-type: text/html\r\n", &quotes),
        Fault::answering("no JSON", 200, json, &format!("{{\"a\": {quotes}")),
        Fault::answering("JSON of another kind", 200, json, &format!("[\"{KEY}\"]")),
        Fault::answering("an error in an answer", 200, json, &error.to_string()),
        Fault::answering("an error in a stream", 200, events, &event(&error.to_string())),
        Fault::answering("a failure in a stream", 200, events, &event(&failed.to_string())),
        Fault::answering("no JSON in a stream", 200, events, &event(&quotes)),
        Fault::answering("another kind in a stream", 200, events, &event(&format!("[\"{KEY}\"]"))),
        Fault::answering("another encoding", 200, &format!("content-encoding: {KEY}\r\n"), "x"),
        Fault::answering("no UTF-8", 200, json, &format!("{quotes}\u{fffd}")),
    ];
    let cut = format!("HTTP/1.1 200 OK\r\n{events}content-length: 9999\r\n\r\ndata: {{\"a\": \"{KEY}");
    let cut = FaultScript::new().read_request().write(cut);
    faults.push(Fault::new("a cut stream", cut.clone(), &[ErrorKind::Stream]));
    faults.push(Fault::new("a reset stream", cut.reset(), &[]));
    faults.push(Fault::new("garbage", FaultScript::new().read_request().write(quotes), &[]));
    faults
}

fn redirects() -> Vec<Fault> {
    let places = [
        format!("http://127.0.0.1:9/{KEY}"),
        format!("http://127.0.0.1:9/?key={KEY}"),
        format!("http://{KEY}:{GATEWAY_KEY}@127.0.0.1:9/"),
        format!("http://127.0.0.1:9/{}{KEY}", "x".repeat(170)),
        KEY.to_owned(),
    ];
    let redirect = |(status, place): (u16, &String)| {
        let mut fault = Fault::answering(
            format!("{status} to {}", place.len()),
            status,
            &format!("location: {place}\r\n"),
            "",
        );
        fault.kinds = &[ErrorKind::Configuration];
        fault
    };
    [301, 302, 303, 307, 308].into_iter().zip(&places).map(redirect).collect()
}

fn silences() -> Vec<Fault> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let read = || FaultScript::new().read_request();
    vec![
        Fault::new("no first byte", read().await_close(), &[ErrorKind::RequestTimeout]),
        Fault::new(
            "no second byte",
            read().write(format!("{head}data: {{\"{KEY}")).await_close(),
            &[ErrorKind::RequestTimeout],
        ),
        Fault::new("closed at once", read(), &[ErrorKind::Network]),
        Fault::new("reset at once", read().reset(), &[ErrorKind::Network]),
    ]
}

/// Calls in both modes, which must both fail, and records all output.
async fn fail(
    client: &Client,
    dialect: Dialect,
    name: &str,
    observed: &mut ObservedOutput,
) -> [ErrorKind; 2] {
    let name = format!("{dialect:?}, {name}");
    let whole = client.complete(question(dialect)).await.expect_err(&name);
    let streamed = match client.stream(question(dialect)).await {
        Err(error) => error,
        Ok(mut stream) => loop {
            match stream.next().await {
                Some(Err(error)) => break error,
                Some(Ok(event)) => observed.debug(&name, &event),
                None => panic!("{name}: a clean end"),
            }
        },
    };
    observed.error(&name, &whole);
    observed.error(&name, &streamed);
    [whole.kind(), streamed.kind()]
}

async fn success(dialect: Dialect, observed: &mut ObservedOutput) {
    let script = Script::new("two answers").with_turn(Turn::text("Fine.")).with_turn(Turn::text("Fine."));
    let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
    let client = client(dialect, &server.base_url(dialect), ANSWER, observed);
    let response = client.complete(question(dialect)).await.unwrap();
    observed.debug("a response", &response);
    let mut stream = client.stream(question(dialect)).await.unwrap();
    while let Some(event) = stream.next().await {
        observed.debug("an event", &event.unwrap());
    }
    assert_eq!(server.requests().len(), 2, "the server took the key twice");
}

/// Returns a client with every middleware, and records the debug output of its parts. The key is the same in each.
fn client(dialect: Dialect, url: &str, wait: Duration, observed: &mut ObservedOutput) -> Client {
    let adapter = adapter(dialect, url, KEY, wait, observed).unwrap();
    observed.debug("an adapter", &adapter);
    let client = Client::builder()
        .shared_provider(adapter)
        .default_provider(dialect.name())
        .middleware(Logging::new().with_contents(1_000_000))
        .middleware(KnownModels::new().with_unknown(UnknownModel::Warned))
        .middleware(ResponseCache::builder().with_max_bytes(1).build().unwrap())
        .middleware(Budget::builder().with_max_tokens(u64::MAX).build().unwrap())
        .middleware(RateLimit::builder().with_requests(1_000).build().unwrap())
        .middleware(CircuitBreaker::builder().with_threshold(1_000).build().unwrap());
    observed.debug("a client's builder", &client);
    let client = client.build().unwrap();
    observed.debug("a client", &client);
    observed.debug("a request", &question(dialect));
    client
}

fn adapter(
    dialect: Dialect,
    url: &str,
    key: &str,
    wait: Duration,
    observed: &mut ObservedOutput,
) -> Result<Arc<dyn ProviderAdapter>, Error> {
    fn build<A: ProviderAdapter + 'static>(
        builder: AdapterBuilder<A>,
        url: &str,
        wait: Duration,
        observed: &mut ObservedOutput,
    ) -> Result<Arc<dyn ProviderAdapter>, Error> {
        let limits = AdapterTimeout::default().with_first_byte(wait).with_stream_read(wait);
        let builder =
            builder.with_base_url(url).with_timeout(limits).with_default_header("x-gateway-key", GATEWAY_KEY);
        observed.debug("an adapter's builder", &builder);
        Ok(Arc::new(builder.build()?))
    }
    match dialect {
        Dialect::OpenAiResponses => build(OpenAi::builder(key), url, wait, observed),
        Dialect::AnthropicMessages => build(Anthropic::builder(key), url, wait, observed),
        Dialect::Gemini => build(Gemini::builder(key), url, wait, observed),
        Dialect::ChatCompletions => {
            build(OpenAiCompatible::builder(url).with_api_key(key), url, wait, observed)
        }
    }
}

/// Keys and URLs that are refused when an adapter is built.
fn misconfigured(dialect: Dialect, observed: &mut ObservedOutput) {
    let url = "http://127.0.0.1:9";
    let rows = [
        (format!("{KEY}\n"), url.to_owned()),
        (format!("\"{KEY}\""), format!("127.0.0.1/{KEY}")),
        (format!("{KEY} {GATEWAY_KEY}"), url.to_owned()),
        (KEY.to_owned(), format!("http://{KEY}:{GATEWAY_KEY}@")),
        (KEY.to_owned(), format!("ftp://{KEY}@127.0.0.1/")),
    ];
    for (key, url) in rows {
        let error = adapter(dialect, &url, &key, ANSWER, observed).expect_err(&url);
        assert_eq!(error.kind(), ErrorKind::Configuration);
        observed.error("a wrong configuration", &error);
    }
}

fn question(dialect: Dialect) -> Request {
    let model = match dialect {
        Dialect::OpenAiResponses => "gpt-5.2",
        Dialect::AnthropicMessages => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-3.1-pro-preview",
        Dialect::ChatCompletions => "local-model",
    };
    Request::new(model, [Message::user("What is there?")])
}
