//! What the operator sees of a session: spans in the field names of the OpenTelemetry conventions for generative AI.
//!
//! A session has a span, each run in it one, and each model call and tool call of a run one. They hold names, ids,
//! counts and kinds of failures, and nothing that a person, a model or a tool said.

use pintle_llm::{Request, Response, Usage};
use pintle_tools::pipeline::PreparedCall;
use serde::Serialize;
use tracing::Span;
use tracing::field::{self, Empty};

use crate::event_log::Identity;
use crate::id::{RunId, SessionId};
use crate::profile::ProviderProfile;
use crate::turn::{InputKind, Outcome, OutcomeStatus};

/// The open spans of a session.
#[derive(Debug)]
pub(super) struct Trace {
    id: SessionId,
    session: Span,
    /// Runs that have begun and not ended: one, or two for a moment.
    runs: Vec<RunSpan>,
}

#[derive(Debug)]
struct RunSpan {
    run: RunId,
    span: Span,
    tokens: Tokens,
}

/// What the convention counts.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_creation: u64,
}

impl Trace {
    /// Begins the session's span, inside of that in which the session is built.
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

    /// Begins the span of the run that is served now, unless it has begun.
    pub(super) fn serve(&mut self, run: Option<RunId>, profile: &ProviderProfile) {
        let Some(run) = run.filter(|run| !self.runs.iter().any(|begun| begun.run == *run)) else { return };
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

    /// The span of the run that is served; that of the session between two runs.
    pub(super) fn run(&self) -> Span {
        self.runs.last().map_or(&self.session, |run| &run.span).clone()
    }

    /// Ends the span of a run. One that was refused has none.
    pub(super) fn finish(&mut self, run: RunId, outcome: &Outcome) {
        let Some(place) = self.runs.iter().position(|begun| begun.run == run) else { return };
        let RunSpan { span, tokens, .. } = self.runs.remove(place);
        tokens.record(&span);
        span.record("pintle.run.outcome", word(&outcome.status));
        span.record("pintle.run.model_calls", outcome.model_calls);
        span.record("pintle.run.tool_calls", outcome.tool_calls);
        let error = outcome.error.as_ref().map(|error| word(&error.kind));
        if let Some(error) = error {
            fail(&span, &error);
        } else if outcome.status == OutcomeStatus::Failed {
            fail(&span, "_OTHER");
        }
    }

    /// Begins the span of a model call, which covers every attempt.
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

    /// Begins the span of a tool call that runs.
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

    /// Counts what an answer cost for the run that it belongs to.
    pub(super) fn count(&mut self, kind: &InputKind) {
        if let (InputKind::ModelReplied { response, .. }, Some(run)) = (kind, self.runs.last_mut()) {
            run.tokens.add(response);
        }
    }
}

/// Writes into the span of a call what became of it.
pub(super) fn ended(span: &Span, kind: &InputKind) {
    if let InputKind::ModelReplied { response, .. } = kind {
        answered(span, response);
    } else if let InputKind::ModelFailed { error, .. } = kind {
        fail(span, &word(&error.kind));
        span.record("http.response.status_code", error.status);
    } else if let InputKind::ToolFinished { finished, .. } = kind {
        if let Some(error) = finished.error {
            fail(span, &word(&error));
        }
    } else if let InputKind::ToolLost { .. } = kind {
        fail(span, "cancelled");
    }
}

fn answered(span: &Span, response: &Response) {
    let mut tokens = Tokens::default();
    tokens.add(response);
    tokens.record(span);
    let id = Some(response.id.as_str()).filter(|id| !id.is_empty());
    span.record("gen_ai.response.id", id);
    span.record("gen_ai.response.model", response.model.as_str());
    span.record("gen_ai.response.finish_reasons", field::debug([word(&response.finish_reason.reason)]));
    span.record("gen_ai.usage.reasoning.output_tokens", response.usage.reasoning_tokens);
}

fn fail(span: &Span, kind: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}

impl Tokens {
    /// Adds the tokens of a response. Cached tokens are part of the input here, as they are in the convention.
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

/// The convention has a name of its own for Gemini.
fn provider_name(provider: &str) -> &str {
    if provider == "gemini" { "gcp.gemini" } else { provider }
}

/// A kind as it is serialised. The words of an error may quote a prompt; its kind does not.
fn word(kind: &impl Serialize) -> String {
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
