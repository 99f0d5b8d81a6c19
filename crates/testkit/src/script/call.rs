//! A tool call of the scripted model.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A tool call: the tool's name and what it is given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawCall")]
#[non_exhaustive]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// What the tool is given.
    pub input: CallInput,
}

/// What a tool is given.
#[derive(Debug, Clone, PartialEq)]
pub enum CallInput {
    /// A JSON object, key `arguments`.
    Arguments(Map<String, Value>),
    /// Text in the place of the JSON object, key `arguments_raw`: for arguments that do not parse.
    ///
    /// Gemini has no text form: text that is not an object becomes the finish reason `MALFORMED_FUNCTION_CALL`.
    /// A whole (not streamed) Anthropic answer carries such text as a JSON string.
    Raw(String),
    /// The text of a custom tool, key `input`: OpenAI Responses only.
    Freeform(String),
}

impl Call {
    /// A call with a JSON object; anything else than an object is sent as raw text.
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

    /// A call whose arguments are the given text, valid JSON or not.
    #[must_use]
    pub fn raw(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { tool: tool.into(), input: CallInput::Raw(arguments.into()) }
    }

    /// A call of a custom tool with free text.
    #[must_use]
    pub fn freeform(tool: impl Into<String>, input: impl Into<String>) -> Self {
        Self { tool: tool.into(), input: CallInput::Freeform(input.into()) }
    }

    pub(crate) fn is_freeform(&self) -> bool {
        matches!(self.input, CallInput::Freeform(_))
    }

    /// The text that travels in dialects where arguments are text.
    pub(crate) fn input_text(&self) -> String {
        match &self.input {
            CallInput::Arguments(arguments) => Value::Object(arguments.clone()).to_string(),
            CallInput::Raw(text) | CallInput::Freeform(text) => text.clone(),
        }
    }

    /// The arguments as an object, where they are one.
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
