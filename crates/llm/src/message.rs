//! Messages (client specification, sections 3.1 and 3.2).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::content::{ContentPart, ImageData, ThinkingData, ToolCall, ToolResult};

/// Role of a message (specification section 3.2). Serialised in the specification's spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Role {
    /// Instructions that shape the model's behaviour.
    System,
    /// Human input.
    User,
    /// Model output.
    Assistant,
    /// Results of tool calls.
    Tool,
    /// Instructions of the application.
    Developer,
}

/// Model that wrote a message. Opaque parts (signatures, encrypted reasoning) are valid only there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the provider, as in [`Request::provider`](crate::Request::provider).
    pub provider: String,
    /// Requested model, so that a response from a dated variant still matches.
    pub model: String,
}

impl Origin {
    /// Creates an origin.
    #[must_use]
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// Message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Role of the author.
    pub role: Role,
    /// Parts, in order.
    pub content: Vec<ContentPart>,
    /// Name of the author, or of the tool of a tool message. Only Chat Completions sends the author's name; the other
    /// dialects have no field for it and take the tool's name from the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id of the call whose result a tool message holds; a message with several results has the ids in its parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Model that wrote an assistant message; `None` for a message created by the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl Message {
    /// Creates a message.
    #[must_use]
    pub fn new(role: Role, content: Vec<ContentPart>) -> Self {
        Self { role, content, name: None, tool_call_id: None, origin: None }
    }

    /// Creates a system message.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![ContentPart::text(text)])
    }

    /// Creates a developer message.
    #[must_use]
    pub fn developer(text: impl Into<String>) -> Self {
        Self::new(Role::Developer, vec![ContentPart::text(text)])
    }

    /// Creates a user message.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![ContentPart::text(text)])
    }

    /// Creates an assistant message.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![ContentPart::text(text)])
    }

    /// Creates a tool message with one result.
    #[must_use]
    pub fn tool_result(tool_call_id: impl Into<String>, content: impl Into<String>, is_error: bool) -> Self {
        let id = tool_call_id.into();
        let result = ToolResult::new(id.clone(), content.into(), is_error);
        Self { tool_call_id: Some(id), ..Self::new(Role::Tool, vec![ContentPart::ToolResult(result)]) }
    }

    /// Creates a tool message with the results of all calls of an assistant message, in the order of the calls.
    #[must_use]
    pub fn tool_results(results: Vec<ToolResult>) -> Self {
        let tool_call_id = match results.as_slice() {
            [only] => Some(only.tool_call_id.clone()),
            _ => None,
        };
        let content = results.into_iter().map(ContentPart::ToolResult).collect();
        Self { tool_call_id, ..Self::new(Role::Tool, content) }
    }

    /// Sets the model that wrote the message.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Appends a part.
    #[must_use]
    pub fn with_part(mut self, part: ContentPart) -> Self {
        self.content.push(part);
        self
    }

    /// Returns the concatenation of all text parts.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentPart::as_text).collect()
    }

    /// Tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some(call),
            ContentPart::Text(_)
            | ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Thinking(_)
            | ContentPart::Opaque(_) => None,
        })
    }

    /// Tool results, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolResult(result) => Some(result),
            ContentPart::Text(_)
            | ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolCall(_)
            | ContentPart::Thinking(_)
            | ContentPart::Opaque(_) => None,
        })
    }

    /// Returns the readable reasoning, joined by blank lines; `None` without any.
    #[must_use]
    pub fn reasoning(&self) -> Option<String> {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(ContentPart::as_thinking)
            .filter(|thinking| !thinking.redacted && !thinking.text.is_empty())
            .map(|thinking| thinking.text.as_str())
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Returns `true` if the message has no parts or only empty text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.content.iter().all(|part| part.as_text().is_some_and(str::is_empty))
    }
}

impl From<ImageData> for ContentPart {
    fn from(image: ImageData) -> Self {
        Self::Image(image)
    }
}

impl From<ThinkingData> for ContentPart {
    fn from(thinking: ThinkingData) -> Self {
        Self::Thinking(thinking)
    }
}

impl From<ToolCall> for ContentPart {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(call)
    }
}

impl From<ToolResult> for ContentPart {
    fn from(result: ToolResult) -> Self {
        Self::ToolResult(result)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_concatenates_text_parts_only() {
        let message = Message::assistant("a")
            .with_part(ThinkingData::new("hidden").into())
            .with_part(ContentPart::text("b"));
        assert_eq!(message.text(), "ab");
        assert_eq!(message.reasoning().as_deref(), Some("hidden"));
        assert_eq!(Message::new(Role::User, Vec::new()).text(), "");
    }

    #[test]
    fn serialises_in_the_specifications_terms() {
        let message = Message::assistant("hi")
            .with_part(ToolCall::from_raw("c1", "grep", r#"{"pattern": "x"}"#).into());
        let value = serde_json::to_value(&message).unwrap();
        assert_eq!(
            value,
            json!({"role": "ASSISTANT", "content": [
                {"kind": "TEXT", "text": "hi"},
                {"kind": "TOOL_CALL", "tool_call": {
                    "id": "c1", "name": "grep", "arguments": {"pattern": "x"},
                    "raw_arguments": "{\"pattern\": \"x\"}", "type": "function"}},
            ]})
        );
        assert_eq!(serde_json::from_value::<Message>(value).unwrap(), message);
    }

    #[test]
    fn a_single_result_names_its_call() {
        assert_eq!(Message::tool_result("c1", "ok", false).tool_call_id.as_deref(), Some("c1"));
        let two = vec![ToolResult::new("a", "1", false), ToolResult::new("b", "2", true)];
        assert_eq!(Message::tool_results(two).tool_call_id, None);
    }
}
