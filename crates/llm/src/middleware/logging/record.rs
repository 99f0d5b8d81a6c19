//! Recording of a call's end: fields of its span and one event.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::time::Instant;
use tracing::{Span, field};

use crate::error::Error;
use crate::middleware::logging::contents;
use crate::middleware::{CallEnd, CallObserver};
use crate::response::{Finish, Response};
use crate::stream::{EventStream, StreamEvent};

/// A call in flight.
pub(super) struct CallRecord {
    pub(super) span: Span,
    pub(super) started: Instant,
    pub(super) time_to_first_event: Option<Duration>,
    pub(super) max_content: Option<usize>,
}

impl CallObserver for CallRecord {
    fn on_event(&mut self, _event: &StreamEvent) {
        self.time_to_first_event.get_or_insert_with(|| self.started.elapsed());
    }

    fn on_end(&mut self, end: CallEnd<'_>) {
        let span = self.span.clone();
        let _entered = span.enter();
        match end {
            CallEnd::Completed(response) => self.completed(response),
            CallEnd::Failed(error) => self.failed(error),
            CallEnd::Truncated => self.interrupted("cut"),
            CallEnd::Dropped => self.interrupted("dropped"),
        }
    }
}

impl CallRecord {
    fn completed(&self, response: &Response) {
        let usage = &response.usage;
        let input = usage.input_tokens;
        let reason = [finish_name(response.finish_reason.reason)];
        let first = self.time_to_first_event.map(|time| time.as_secs_f64());
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
            "model call completed"
        );
        if let Some(limit) = self.max_content {
            contents::log_output(&response.message, limit);
        }
    }

    fn failed(&self, error: &Error) {
        // The serialised kind only: the provider's message may quote the prompt.
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
            "model call failed"
        );
    }

    /// Records a call that ended with neither a response nor an error.
    fn interrupted(&self, how: &str) {
        self.span.record("otel.status_code", "ERROR");
        self.span.record("error.type", how);
        tracing::debug!(
            error.type = how,
            gen_ai.client.operation.duration = self.seconds(),
            "model call interrupted"
        );
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Error => "error",
        Finish::Other => "other",
    }
}

/// A stream polled inside a span.
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
