//! Tool calls of the scripted model.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawCall")]
#[non_exhaustive]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: CallInput,
}

/// Input of a tool.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub enum CallInput {
    /// A JSON object, under the key `arguments`.
    Arguments(Map<String, Value>),
    /// Text instead of a JSON object, under the key `arguments_raw`, for malformed arguments.
    ///
    /// Gemini has no text form: text that is not an object becomes the finish reason `MALFORMED_FUNCTION_CALL`.
    /// In a complete (not streamed) Anthropic response the text is a JSON string.
    Raw(String),
    /// Text of a custom tool, under the key `input`. OpenAI Responses only.
    Freeform(String),
}

impl Call {
    /// Creates a call with a JSON object. Any other value is sent as raw text.
    #[must_use]
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        let input = match arguments {
            Value::Object(arguments) => CallInput::Arguments(arguments),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                CallInput::Raw(other.to_string())
            }
        };
        Self { tool: tool.into(), input }
    }

    /// Creates a call with this text as its arguments, valid JSON or not.
    #[must_use]
    pub fn raw(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { tool: tool.into(), input: CallInput::Raw(arguments.into()) }
    }

    /// Creates a call of a custom tool with free text.
    #[must_use]
    pub fn freeform(tool: impl Into<String>, input: impl Into<String>) -> Self {
        Self { tool: tool.into(), input: CallInput::Freeform(input.into()) }
    }

    pub(crate) fn is_freeform(&self) -> bool {
        matches!(self.input, CallInput::Freeform(_))
    }

    /// Returns the input as text, for dialects in which arguments are text.
    pub(crate) fn input_text(&self) -> String {
        match &self.input {
            CallInput::Arguments(arguments) => Value::Object(arguments.clone()).to_string(),
            CallInput::Raw(text) | CallInput::Freeform(text) => text.clone(),
        }
    }

    /// Returns the arguments if they are an object.
    pub(crate) fn input_object(&self) -> Option<Map<String, Value>> {
        match &self.input {
            CallInput::Arguments(arguments) => Some(arguments.clone()),
            CallInput::Raw(text) | CallInput::Freeform(text) => serde_json::from_str(text).ok(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    tool: String,
    arguments: Option<Map<String, Value>>,
    arguments_raw: Option<String>,
    input: Option<String>,
}

impl TryFrom<RawCall> for Call {
    type Error = String;

    fn try_from(raw: RawCall) -> Result<Self, String> {
        let input = match (raw.arguments, raw.arguments_raw, raw.input) {
            (Some(arguments), None, None) => CallInput::Arguments(arguments),
            (None, Some(text), None) => CallInput::Raw(text),
            (None, None, Some(text)) => CallInput::Freeform(text),
            (None, None, None) => CallInput::Arguments(Map::new()),
            _ => {
                return Err(format!(
                    "call of `{}` has several inputs; expected one of arguments, arguments_raw, input",
                    raw.tool
                ));
            }
        };
        Ok(Self { tool: raw.tool, input })
    }
}
