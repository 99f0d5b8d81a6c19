//! Tracing spans and events for calls.

mod contents;
mod record;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, Level, Span};

use self::record::{CallRecord, InSpan};
use crate::error::Error;
use crate::middleware::{Middleware, Mode, Next, Reply, observe};
use crate::request::{Request, ResponseFormat};

/// Middleware that records every call with `tracing`, in the field names of the OpenTelemetry conventions for
/// generative AI.
///
/// Each call has a span `gen_ai.chat` at level INFO, with `otel.name`, `otel.kind`, `gen_ai.operation.name`,
/// `gen_ai.provider.name`, `gen_ai.request.model`, `.max_tokens`, `.temperature`, `.top_p`, and `gen_ai.output.type`.
/// At the end the span gets `gen_ai.response.id`, `.model`, `.finish_reasons` and `.time_to_first_chunk` (seconds,
/// streams only), `gen_ai.usage.input_tokens` (including cached tokens, as in the convention), `.output_tokens`,
/// `.cache_read.input_tokens`, `.cache_creation.input_tokens` and `.reasoning.output_tokens`. After a failure it gets
/// `otel.status_code`, `error.type` (the kind; `dropped` if the caller dropped the call; `cut` for a stream without a
/// final event), `http.response.status_code` and `request_id`, the provider's id for the request. One event inside the
/// span repeats these fields for consumers of events: INFO for a response, WARN for a failure, DEBUG for a dropped
/// call. It adds `gen_ai.client.operation.duration` in seconds.
///
/// Contents are left out: prompts, responses, tools and the provider's error messages. [`Logging::with_contents`]
/// adds prompts and responses. API keys never reach this layer. Spans and events of the adapters are inside the span.
///
/// ```
/// # use pintle_llm::{Client, Error, Message, Request};
#[doc = include_str!("example_adapter.txt")]
/// use pintle_llm::Logging;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// // The application installs a subscriber of its choice.
/// let client = Client::builder().provider(Echo).default_provider("openai").middleware(Logging::new()).build()?;
/// client.complete(Request::new("any", [Message::user("hello")])).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Logging {
    max_content: Option<usize>,
}

impl Logging {
    /// Creates the middleware, without contents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds two DEBUG events with `gen_ai.input.messages` and `gen_ai.output.messages`: the messages as JSON, each
    /// truncated to `max_bytes`. Images and other media are left out. Conversations are often confidential: consider
    /// who reads the log.
    #[must_use]
    pub fn with_contents(mut self, max_bytes: usize) -> Self {
        self.max_content = Some(max_bytes);
        self
    }
}

#[async_trait]
impl Middleware for Logging {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let span = span_of(&request, next.provider());
        // Contents are long: do not build them unless DEBUG is enabled.
        let max_content = self.max_content.filter(|_| tracing::enabled!(Level::DEBUG));
        if let Some(limit) = max_content {
            span.in_scope(|| contents::log_input(&request.messages, limit));
        }
        let record = CallRecord {
            span: span.clone(),
            started: Instant::now(),
            time_to_first_event: None,
            max_content,
        };
        let call = async {
            Ok(match next.run(request, mode).await? {
                Reply::Stream(stream) => Reply::Stream(Box::pin(InSpan { stream, span: Span::current() })),
                response @ Reply::Response(_) => response,
            })
        };
        observe(call.instrument(span), record).await
    }
}

fn span_of(request: &Request, provider: &str) -> Span {
    // The convention's name for this provider.
    let provider = if provider == "gemini" { "gcp.gemini" } else { provider };
    let output = match request.response_format {
        Some(ResponseFormat::Json | ResponseFormat::JsonSchema { .. }) => "json",
        Some(ResponseFormat::Text) | None => "text",
    };
    tracing::info_span!(
        "gen_ai.chat",
        otel.name = format_args!("chat {}", request.model),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = request.model,
        gen_ai.request.max_tokens = request.max_tokens,
        gen_ai.request.temperature = request.temperature,
        gen_ai.request.top_p = request.top_p,
        request_id = Empty,
        gen_ai.output.type = output,
        gen_ai.response.id = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        error.type = Empty,
        http.response.status_code = Empty,
    )
}
