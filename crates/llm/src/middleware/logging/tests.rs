use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::error::ErrorKind;
use crate::message::Message;
use crate::response::Response;
use crate::testing::{FakeAdapter, Harness, MODES, scripted_error, user_request};
use crate::usage::Usage;

/// Subscriber that logs spans with their fields, fields recorded later (`then`), and events.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Log {
    fn line(&self, head: String, fields: impl FnOnce(&mut Line)) {
        let mut line = Line(head);
        fields(&mut line);
        self.0.lock().unwrap().push_str(&format!("{}\n", line.0));
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("pintle_llm")
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.line(format!("span {}", span.metadata().name()), |line| span.record(line));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &tracing::span::Record<'_>) {
        self.line("then".to_owned(), |line| values.record(line));
    }
    fn event(&self, event: &Event<'_>) {
        self.line(event.metadata().level().to_string(), |line| event.record(line));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The first line with this prefix.
fn line<'a>(log: &'a str, head: &str) -> &'a str {
    log.lines().find(|line| line.starts_with(head)).unwrap_or_else(|| panic!("no {head} in {log}"))
}

#[tokio::test(start_paused = true)]
async fn responses_are_logged_with_convention_field_names() {
    for mode in MODES {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let harness = Harness::new(FakeAdapter::new("gemini").answer("secret response"), Logging::new());
        harness.call(user_request("secret question").with_max_tokens(99), mode).await.unwrap();
        let log = log.text();
        for expected in [
            "otel.name=chat m",
            "otel.kind=\"client\"",
            "gen_ai.operation.name=\"chat\"",
            "gen_ai.provider.name=\"gcp.gemini\"",
            "gen_ai.request.model=\"m\"",
            "gen_ai.request.max_tokens=99",
            "gen_ai.output.type=\"text\"",
        ] {
            assert!(line(&log, "span gen_ai.chat").contains(expected), "{expected}: {log}");
        }
        for expected in [
            "gen_ai.response.model=\"m\"",
            "gen_ai.response.finish_reasons=[\"stop\"]",
            "gen_ai.usage.input_tokens=10",
            "gen_ai.usage.output_tokens=5",
        ] {
            assert!(log.contains(&format!("then {expected}\n")), "{expected}: {log}");
            assert!(line(&log, "INFO").contains(expected), "{expected}: {log}");
        }
        assert_eq!(log.contains("time_to_first_chunk"), mode == Mode::Stream);
        assert!(!log.contains("secret"), "{log}");
    }
}

#[tokio::test]
async fn failures_are_logged_without_their_message() {
    for mode in MODES {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let error = Error::new(ErrorKind::RateLimit, "you said secret things").with_status(429);
        let error = error.with_error_code("slow_down").with_request_id("req_1");
        let harness = Harness::new(
            FakeAdapter::new("p").cut("", scripted_error(ErrorKind::Stream)).failure(error),
            Logging::new(),
        );
        harness.call(user_request("secret"), Mode::Stream).await.unwrap_err();
        assert!(line(&log.text(), "WARN").contains("error.type=\"stream\""), "{}", log.text());
        log.0.lock().unwrap().clear();
        harness.call(user_request("secret"), mode).await.unwrap_err();
        let log = log.text();
        for expected in [
            "error.type=\"rate_limit\"",
            "error_code=\"slow_down\"",
            "http.response.status_code=429",
            "request_id=\"req_1\"",
            "retryable=true",
        ] {
            assert!(line(&log, "WARN").contains(expected), "{expected}: {log}");
        }
        assert!(log.contains("then otel.status_code=\"ERROR\"\n"), "{log}");
        assert!(!log.contains("secret"), "{log}");
    }
}

#[tokio::test]
async fn a_dropped_stream_is_logged_once() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let harness = Harness::new(FakeAdapter::new("p").answer("hi").answer("hi"), Logging::new());
    harness.read_and_drop(user_request("x"), 3).await;
    assert!(line(&log.text(), "DEBUG").contains("error.type=\"dropped\""), "{}", log.text());
    log.0.lock().unwrap().clear();
    harness.read_and_drop(user_request("x"), 5).await;
    let log = log.text();
    assert!(line(&log, "INFO").contains("model call completed") && !log.contains("dropped"), "{log}");
}

#[tokio::test]
async fn contents_are_logged_on_request_and_truncated() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let adapter = FakeAdapter::new("p").answer("an answer").answer("another");
    let harness = Harness::new(adapter, Logging::new().with_contents(62));
    harness.call(user_request("a question"), Mode::Stream).await.unwrap();
    let text = log.text();
    let prompt = r#"gen_ai.input.messages="[{\"parts\":[{\"content\":\"a question\",\"type\":\"text\"}],\"role\":\"use"#;
    assert!(line(&text, "DEBUG").contains(prompt), "{text}");
    assert!(text.contains(r#"gen_ai.output.messages="[{\"parts\":[{\"content\":\"an answer\""#), "{text}");
}

/// Layer that responds after two seconds and reports cached tokens.
#[derive(Debug)]
struct Cached;

#[async_trait]
impl Middleware for Cached {
    async fn handle(&self, request: Request, _: Mode, next: Next<'_>) -> Result<Reply, Error> {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut usage = Usage::new(1_110, 5);
        usage.cache_read_tokens = Some(100);
        usage.cache_write_tokens = Some(1_000);
        usage.reasoning_tokens = Some(3);
        let response = Response::new(next.provider(), request.model, Message::assistant("hi"));
        Ok(Reply::Response(Box::new(response.with_usage(usage))))
    }
}

#[tokio::test(start_paused = true)]
async fn input_tokens_include_cached_tokens() {
    for provider in ["anthropic", "openai"] {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let builder =
            crate::client::Client::builder().provider(FakeAdapter::new(provider)).default_provider(provider);
        let client = builder.middleware(Logging::new()).middleware(Cached).build().unwrap();
        client.complete(user_request("x")).await.unwrap();
        let log = log.text();
        for expected in [
            "gen_ai.usage.input_tokens=1110".to_owned(),
            "gen_ai.usage.cache_read.input_tokens=100".to_owned(),
            "gen_ai.usage.cache_creation.input_tokens=1000".to_owned(),
            "gen_ai.usage.reasoning.output_tokens=3".to_owned(),
            "gen_ai.client.operation.duration=2.0".to_owned(),
        ] {
            assert!(line(&log, "INFO").contains(&expected), "{expected}: {log}");
        }
    }
}
