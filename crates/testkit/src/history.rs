//! The conversation history in a request, independent of the dialect.
//!
//! It is read after the checker has accepted the request, so the readers are lenient and skip unknown content.

mod anthropic;
mod chat;
mod gemini;
mod openai;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::fingerprint;

/// The conversation in a request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct History {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether a stream ends with usage, which is optional in Chat Completions only.
    pub(crate) stream_usage: bool,
    /// Whether the response must begin with thinking (Anthropic's `thinking.type = "enabled"`).
    pub(crate) requires_thinking: bool,
    /// Whether the response may begin with thinking (Anthropic's `enabled` or `adaptive`).
    pub(crate) allows_thinking: bool,
    system: String,
    user_messages: Vec<String>,
    /// Model turns. Consecutive assistant items are one turn.
    pub(crate) steps: Vec<Step>,
    /// Index of the first step after the last user message, where the open turn starts.
    pub(crate) open_from: usize,
    /// Whether the next assistant item belongs to the last step.
    in_step: bool,
}

/// One model turn of the history.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) calls: Vec<HistoryCall>,
    pub(crate) reasoning: Vec<SealedReasoning>,
}

/// A tool call with its result, if the request has one.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HistoryCall {
    pub(crate) id: Option<String>,
    pub(crate) outcome: Option<ToolOutcome>,
}

/// The result of a tool call, as the model reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolOutcome {
    pub(crate) text: String,
    /// `None` in dialects that cannot express it.
    pub(crate) is_error: Option<bool>,
}

/// An opaque value that the server has attached to reasoning.
#[derive(Debug, PartialEq)]
pub(crate) struct SealedReasoning {
    /// Path in the body.
    pub(crate) field: String,
    /// The sealed text, if the dialect sends both.
    pub(crate) text: Option<String>,
    pub(crate) seal: String,
}

impl History {
    /// Reads the history of a request that the checker has accepted.
    pub(crate) fn read(dialect: Dialect, path: &str, body: &Value) -> Self {
        let mut history = Self { model: text_at(body, "model"), ..Self::default() };
        history.stream = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
        match dialect {
            Dialect::OpenAiResponses => openai::read(body, &mut history),
            Dialect::AnthropicMessages => anthropic::read(body, &mut history),
            Dialect::Gemini => gemini::read(path, body, &mut history),
            Dialect::ChatCompletions => chat::read(body, &mut history),
        }
        history
    }

    /// Returns the index of the requested turn.
    pub(crate) fn turn(&self) -> usize {
        self.steps.len()
    }

    /// Returns the hash of the first user message, which identifies the conversation.
    pub(crate) fn conversation(&self) -> u64 {
        fingerprint::hash(&[self.user_messages.first().map_or("", String::as_str)])
    }

    /// Returns the system prompt and the user messages.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.system.as_str()).chain(self.user_messages.iter().map(String::as_str))
    }

    /// Returns the result of a call of the last model turn.
    pub(crate) fn last_outcome(&self, call: usize) -> Option<&ToolOutcome> {
        self.steps.last()?.calls.get(call)?.outcome.as_ref()
    }

    fn system(&mut self, text: &str) {
        if !self.system.is_empty() {
            self.system.push('\n');
        }
        self.system.push_str(text);
    }

    fn user(&mut self, text: String) {
        self.user_messages.push(text);
        self.open_from = self.steps.len();
        self.in_step = false;
    }

    /// Updates the current step of the assistant.
    fn step(&mut self, write: impl FnOnce(&mut Step)) {
        if !self.in_step {
            self.steps.push(Step::default());
            self.in_step = true;
        }
        if let Some(step) = self.steps.last_mut() {
            write(step);
        }
    }

    fn call(&mut self, id: Option<String>) {
        self.step(|step| step.calls.push(HistoryCall { id, outcome: None }));
    }

    fn reasoning(&mut self, field: String, text: Option<String>, seal: String) {
        self.step(|step| step.reasoning.push(SealedReasoning { field, text, seal }));
    }

    /// Adds a result to its call, found by id, or by order if the call has no id.
    fn result(&mut self, id: Option<&str>, outcome: ToolOutcome) {
        self.in_step = false;
        let matches = |call: &&mut HistoryCall| match (call.id.as_deref(), id) {
            (Some(of_call), Some(of_result)) => of_call == of_result,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let steps = self.steps.iter_mut().rev();
        let mut open = steps.flat_map(|step| step.calls.iter_mut()).filter(|call| call.outcome.is_none());
        if let Some(call) = open.find(matches) {
            call.outcome = Some(outcome);
        }
    }
}

/// Returns a string member, or an empty string.
fn text_at(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the text of a content: a string, or a list of parts with `text`.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Returns the elements of a list member, or none.
fn list_at<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
