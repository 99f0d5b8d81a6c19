//! What a request tells of the conversation so far, read the same way from every dialect.
//!
//! It is read after the checker has passed the request, so the readers are lenient: what they do not know they skip.

mod anthropic;
mod chat;
mod gemini;
mod openai;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::fingerprint;

/// The conversation that a request carries.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct History {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether the dialect's usage is wanted at the end of a stream; only Chat Completions makes it optional.
    pub(crate) stream_usage: bool,
    /// Whether the model must think before it speaks (Anthropic's `thinking.type = "enabled"`).
    pub(crate) must_think: bool,
    system: String,
    user_messages: Vec<String>,
    /// The model turns: consecutive items of the assistant's side are one.
    pub(crate) steps: Vec<Step>,
    /// The first step after the last user message: the steps of the turn that is still open.
    pub(crate) open_from: usize,
    /// Whether the next item of the assistant's side belongs to the last step.
    in_step: bool,
}

/// One model turn of the history.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) calls: Vec<SeenCall>,
    pub(crate) reasoning: Vec<SealedReasoning>,
}

/// A tool call of the history, with its result once the request has one.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SeenCall {
    pub(crate) id: Option<String>,
    pub(crate) outcome: Option<ToolOutcome>,
}

/// The result of a tool call as the model would read it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolOutcome {
    pub(crate) text: String,
    /// Nothing in dialects that cannot say it.
    pub(crate) is_error: Option<bool>,
}

/// An opaque value that the server had attached to reasoning.
#[derive(Debug, PartialEq)]
pub(crate) struct SealedReasoning {
    /// Where it stands in the body.
    pub(crate) field: String,
    /// The text that it seals, where the dialect binds the two.
    pub(crate) text: Option<String>,
    pub(crate) seal: String,
}

impl History {
    /// Reads the history of a request that the checker has passed.
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

    /// The index of the turn that the request asks for.
    pub(crate) fn turn(&self) -> usize {
        self.steps.len()
    }

    /// What tells one conversation from another: the text of its first user message.
    pub(crate) fn conversation(&self) -> u64 {
        fingerprint::of(&[self.user_messages.first().map_or("", String::as_str)])
    }

    /// The system prompt and the user messages.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.system.as_str()).chain(self.user_messages.iter().map(String::as_str))
    }

    /// The result of a call of the last model turn.
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

    /// The step that items of the assistant's side belong to now.
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
        self.step(|step| step.calls.push(SeenCall { id, outcome: None }));
    }

    fn reasoning(&mut self, field: String, text: Option<String>, seal: String) {
        self.step(|step| step.reasoning.push(SealedReasoning { field, text, seal }));
    }

    /// Files a result under its call: by id where the call has one, else by order.
    fn result(&mut self, id: Option<&str>, outcome: ToolOutcome) {
        self.in_step = false;
        let matches = |call: &&mut SeenCall| match (call.id.as_deref(), id) {
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

/// A member that is text, or nothing.
fn text_at(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The text of a content that is a string or a list of parts with a `text` each.
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

/// The elements of a member that is a list, or none.
fn list_at<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
