//! Tracing spans of a session, with field names of the OpenTelemetry conventions for generative AI.
//!
//! A session has a span, each of its runs has one within it, and each model call and tool call has one within its run.
//! They contain names, ids, counts and kinds of failures, but no text of a user, a model or a tool.

use pintle_llm::{Request, Response, Usage};
use pintle_tools::pipeline::PreparedCall;
use serde::Serialize;
use tracing::Span;
use tracing::field::{self, Empty};

use crate::event_log::Identity;
use crate::profile::ProviderProfile;
use crate::protocol::{InputKind, Outcome, OutcomeStatus, RunId, SessionId};

/// Open spans of a session.
#[derive(Debug)]
pub(super) struct Trace {
    id: SessionId,
    session: Span,
    /// Unfinished runs: one, or briefly two.
    runs: Vec<RunSpan>,
}

#[derive(Debug)]
struct RunSpan {
    run: RunId,
    span: Span,
    tokens: Tokens,
}

/// Token counts of the convention.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_creation: u64,
}

impl Trace {
    /// Creates the span of the session, within the span that is current while it is built.
    pub(super) fn new(identity: &Identity) -> Self {
        let session = tracing::info_span!(
            "session",
            otel.kind = "internal",
            gen_ai.conversation.id = %identity.session_id,
            pintle.session.parent = identity.parent.as_ref().map(field::display),
            pintle.session.depth = identity.depth,
        );
        Self { id: identity.session_id.clone(), session, runs: Vec::new() }
    }

    pub(super) fn session(&self) -> Span {
        self.session.clone()
    }

    /// Creates the span of the current run, if it has no span yet.
    pub(super) fn start_run(&mut self, run: Option<RunId>, profile: &ProviderProfile) {
        let Some(run) = run.filter(|run| !self.runs.iter().any(|known| known.run == *run)) else { return };
        let span = tracing::info_span!(
            parent: &self.session,
            "gen_ai.invoke_agent",
            otel.name = "invoke_agent",
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.provider.name = provider_name(&profile.provider),
            gen_ai.request.model = profile.model,
            gen_ai.conversation.id = %self.id,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            pintle.run.id = run.0,
            pintle.run.outcome = Empty,
            pintle.run.model_calls = Empty,
            pintle.run.tool_calls = Empty,
            error.type = Empty,
        );
        self.runs.push(RunSpan { run, span, tokens: Tokens::default() });
    }

    /// Returns the span of the current run; between runs, the span of the session.
    pub(super) fn run(&self) -> Span {
        self.runs.last().map_or(&self.session, |run| &run.span).clone()
    }

    /// Ends the span of a run. A rejected run has no span.
    pub(super) fn finish(&mut self, run: RunId, outcome: &Outcome) {
        let Some(index) = self.runs.iter().position(|known| known.run == run) else { return };
        let RunSpan { span, tokens, .. } = self.runs.remove(index);
        tokens.record(&span);
        span.record("pintle.run.outcome", name_of(&outcome.status));
        span.record("pintle.run.model_calls", outcome.model_calls);
        span.record("pintle.run.tool_calls", outcome.tool_calls);
        let error = outcome.error.as_ref().map(|error| name_of(&error.kind));
        if let Some(error) = error {
            fail(&span, &error);
        } else if outcome.status == OutcomeStatus::Failed {
            fail(&span, "_OTHER");
        }
    }

    /// Creates the span of a model call, which covers all attempts.
    pub(super) fn model_call(&self, request: &Request) -> Span {
        tracing::info_span!(
            parent: &self.run(),
            "gen_ai.chat",
            otel.name = format_args!("chat {}", request.model),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = request.provider.as_deref().map(provider_name),
            gen_ai.request.model = request.model,
            gen_ai.request.max_tokens = request.max_tokens,
            gen_ai.conversation.id = %self.id,
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            http.response.status_code = Empty,
            error.type = Empty,
        )
    }

    /// Creates the span of a running tool call.
    pub(super) fn tool_call(&self, call: &PreparedCall) -> Span {
        tracing::info_span!(
            parent: &self.run(),
            "gen_ai.execute_tool",
            otel.name = format_args!("execute_tool {}", call.name()),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = call.name(),
            gen_ai.tool.call.id = call.call_id(),
            gen_ai.tool.type = "function",
            gen_ai.conversation.id = %self.id,
            error.type = Empty,
        )
    }

    /// Adds the usage of a response to its run.
    pub(super) fn count(&mut self, kind: &InputKind) {
        if let (InputKind::ModelReplied { response, .. }, Some(run)) = (kind, self.runs.last_mut()) {
            run.tokens.add(response);
        }
    }
}

/// Records the result of a call in its span.
pub(super) fn record_end(span: &Span, kind: &InputKind) {
    if let InputKind::ModelReplied { response, .. } = kind {
        record_response(span, response);
    } else if let InputKind::ModelFailed { error, .. } = kind {
        fail(span, &name_of(&error.kind));
        span.record("http.response.status_code", error.status);
    } else if let InputKind::ToolFinished { finished, .. } = kind {
        if let Some(error) = finished.error {
            fail(span, &name_of(&error));
        }
    } else if let InputKind::ToolLost { .. } = kind {
        fail(span, "cancelled");
    }
}

fn record_response(span: &Span, response: &Response) {
    let mut tokens = Tokens::default();
    tokens.add(response);
    tokens.record(span);
    let id = Some(response.id.as_str()).filter(|id| !id.is_empty());
    span.record("gen_ai.response.id", id);
    span.record("gen_ai.response.model", response.model.as_str());
    span.record("gen_ai.response.finish_reasons", field::debug([name_of(&response.finish_reason.reason)]));
    span.record("gen_ai.usage.reasoning.output_tokens", response.usage.reasoning_tokens);
}

fn fail(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

impl Tokens {
    /// Adds the tokens of a response. As in the convention, input includes cached tokens.
    fn add(&mut self, response: &Response) {
        let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = response.usage;
        let (read, written) = (cache_read_tokens.unwrap_or(0), cache_write_tokens.unwrap_or(0));
        self.input = self.input.saturating_add(input_tokens);
        self.output = self.output.saturating_add(output_tokens);
        self.cache_read = self.cache_read.saturating_add(read);
        self.cache_creation = self.cache_creation.saturating_add(written);
    }

    fn record(self, span: &Span) {
        span.record("gen_ai.usage.input_tokens", self.input);
        span.record("gen_ai.usage.output_tokens", self.output);
        let some = |tokens: u64| (tokens > 0).then_some(tokens);
        span.record("gen_ai.usage.cache_read.input_tokens", some(self.cache_read));
        span.record("gen_ai.usage.cache_creation.input_tokens", some(self.cache_creation));
    }
}

/// Returns the convention's name of a provider, which differs for Gemini.
fn provider_name(provider: &str) -> &str {
    if provider == "gemini" { "gcp.gemini" } else { provider }
}

/// Returns the serialised name of a kind. Unlike the message of an error, it cannot quote a prompt.
fn name_of(kind: &impl Serialize) -> String {
    let value = serde_json::to_value(kind).unwrap_or_default();
    value.as_str().unwrap_or("_OTHER").to_owned()
}

#[cfg(test)]
mod tests {
    use pintle_llm::Message;

    use super::*;

    #[test]
    fn cached_tokens_are_counted_once() {
        for provider in ["anthropic", "gemini"] {
            let mut response = Response::new(provider, "m", Message::assistant("hi"));
            response.usage = Usage::new(1_110, 5);
            response.usage.cache_read_tokens = Some(100);
            response.usage.cache_write_tokens = Some(1_000);
            let mut tokens = Tokens::default();
            tokens.add(&response);
            let counted = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_creation);
            assert_eq!(counted, (1_110, 5, 100, 1_000), "{provider}");
        }
    }
}
