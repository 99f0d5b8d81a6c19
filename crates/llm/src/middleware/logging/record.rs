//! The end of a call, written into its span and told as one event.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::time::Instant;
use tracing::{Span, field};

use crate::error::Error;
use crate::middleware::follow::{End, Follower};
use crate::middleware::logging::contents;
use crate::response::{Finish, Response};
use crate::stream::{EventStream, StreamEvent};

/// A call that has not ended yet.
pub(super) struct Record {
    pub(super) span: Span,
    pub(super) begun: Instant,
    /// How long the first event took.
    pub(super) first: Option<Duration>,
    pub(super) max_content: Option<usize>,
}

impl Follower for Record {
    fn event(&mut self, _event: &StreamEvent) {
        self.first.get_or_insert_with(|| self.begun.elapsed());
    }

    fn end(&mut self, end: End<'_>) {
        let span = self.span.clone();
        let _entered = span.enter();
        match end {
            End::Answered(response) => self.answered(response),
            End::Failed(error) => self.failed(error),
            End::Cut => self.broken_off("cut"),
            End::Dropped => self.broken_off("dropped"),
        }
    }
}

impl Record {
    fn answered(&self, response: &Response) {
        let usage = &response.usage;
        let input = usage.input_tokens;
        let reason = [word(response.finish_reason.reason)];
        let first = self.first.map(|first| first.as_secs_f64());
        let id = Some(response.id.as_str()).filter(|id| !id.is_empty());
        let span = &self.span;
        span.record("gen_ai.response.id", id);
        span.record("gen_ai.response.model", response.model.as_str());
        span.record("gen_ai.response.finish_reasons", field::debug(&reason));
        span.record("gen_ai.response.time_to_first_chunk", first);
        span.record("gen_ai.usage.input_tokens", input);
        span.record("gen_ai.usage.output_tokens", usage.output_tokens);
        span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read_tokens);
        span.record("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens);
        span.record("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens);
        tracing::info!(
            gen_ai.response.id = id,
            gen_ai.response.model = response.model,
            gen_ai.response.finish_reasons = ?reason,
            gen_ai.response.time_to_first_chunk = first,
            gen_ai.usage.input_tokens = input,
            gen_ai.usage.output_tokens = usage.output_tokens,
            gen_ai.usage.cache_read.input_tokens = usage.cache_read_tokens,
            gen_ai.usage.cache_creation.input_tokens = usage.cache_write_tokens,
            gen_ai.usage.reasoning.output_tokens = usage.reasoning_tokens,
            gen_ai.client.operation.duration = self.seconds(),
            "the model answered"
        );
        if let Some(limit) = self.max_content {
            contents::output(&response.message, limit);
        }
    }

    fn failed(&self, error: &Error) {
        // The kind as it is serialised; the provider's words may quote the prompt.
        let kind = serde_json::to_value(error.kind()).unwrap_or_default();
        let kind = kind.as_str().unwrap_or("_OTHER");
        let span = &self.span;
        span.record("otel.status_code", "ERROR");
        span.record("error.type", kind);
        span.record("http.response.status_code", error.status());
        span.record("request_id", error.request_id());
        tracing::warn!(
            error.type = kind,
            error_code = error.error_code(),
            http.response.status_code = error.status(),
            request_id = error.request_id(),
            retryable = error.is_retryable(),
            gen_ai.client.operation.duration = self.seconds(),
            "the model call failed"
        );
    }

    /// No error was seen, and no answer.
    fn broken_off(&self, how: &str) {
        self.span.record("otel.status_code", "ERROR");
        self.span.record("error.type", how);
        tracing::debug!(
            error.type = how,
            gen_ai.client.operation.duration = self.seconds(),
            "the model call was broken off"
        );
    }

    fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

fn word(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Error => "error",
        Finish::Other => "other",
    }
}

/// A stream that is polled inside a span.
pub(super) struct InSpan {
    pub(super) stream: EventStream,
    pub(super) span: Span,
}

impl Stream for InSpan {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { stream, span } = self.get_mut();
        let _entered = span.enter();
        stream.as_mut().poll_next(cx)
    }
}
