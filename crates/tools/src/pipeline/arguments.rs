//! From what a model wrote to arguments that fit the tool's schema.

use std::sync::OnceLock;

use pintle_llm::{CallArguments, ToolCall, ToolCallKind};
use serde_json::{Map, Value};

use crate::error::{ToolError, ToolErrorKind};
use crate::registry::RegisteredTool;
use crate::repair::{self, ArgumentRepair, RepairKind};
use crate::schema;

/// Arguments that fit.
pub(super) struct Arguments {
    pub(super) value: CallArguments,
    /// The same, as a call keeps them.
    pub(super) given: Given,
    /// What was mended in them.
    pub(super) repairs: Vec<ArgumentRepair>,
}

/// Arguments that a call keeps.
///
/// Free text is shared with the history. The object that it is an argument of has a copy of it, which may be megabytes
/// long, and is made where somebody looks at it.
#[derive(Clone, Debug)]
pub(super) enum Given {
    Object(CallArguments),
    Text { name: String, text: CallArguments, object: OnceLock<Value> },
}

impl Given {
    pub(super) fn object(&self) -> &Value {
        match self {
            Self::Object(arguments) => arguments,
            Self::Text { name, text, object } => object.get_or_init(|| object_with(name, text)),
        }
    }

    /// A copy of the object.
    pub(super) fn to_object(&self) -> Value {
        match self {
            Self::Object(arguments) => Value::clone(arguments),
            Self::Text { name, text, .. } => object_with(name, text),
        }
    }
}

fn object_with(name: &str, text: &Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), text.clone())]))
}

/// Takes a call's arguments, and mends them if that is wanted.
///
/// # Errors
///
/// Each mistake that is left, in words for the model; and a schema that is none.
pub(super) fn fit(tool: &RegisteredTool, call: &ToolCall, mend: bool) -> Result<Arguments, ToolError> {
    let validator = tool.validator()?;
    let mut repairs = Vec::new();
    let mut value = object_of(tool, call, mend, &mut repairs)?;
    if mend {
        let schema = &tool.definition().parameters;
        repairs.extend(repair::repair(validator, schema, tool.aliases(), &mut value));
    }
    let mistakes = schema::mistakes(validator, &value);
    if !mistakes.is_empty() {
        let list: Vec<String> = mistakes.iter().map(|mistake| format!("- {mistake}")).collect();
        return Err(invalid(&call.name, &list.join("\n")));
    }
    for repair in &repairs {
        tracing::info!(tool = call.name, %repair, "an argument was mended");
    }
    let given = match text_field(tool, call) {
        Some(name) if repairs.is_empty() => {
            Given::Text { name: name.to_owned(), text: call.arguments.clone(), object: OnceLock::new() }
        }
        Some(_) | None => Given::Object(value.clone()),
    };
    Ok(Arguments { value, given, repairs })
}

/// The arguments as an object: free text goes into the only required field. An object in a text is a mistake that
/// can be mended.
fn object_of(
    tool: &RegisteredTool,
    call: &ToolCall,
    mend: bool,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<CallArguments, ToolError> {
    match (&*call.arguments, call.kind) {
        (text @ Value::String(_), ToolCallKind::Custom) => match text_field(tool, call) {
            Some(name) => Ok(object_with(name, text).into()),
            None => Err(invalid(&call.name, "- expected a JSON object with named arguments, got free text")),
        },
        (Value::String(raw), ToolCallKind::Function) => match serde_json::from_str::<Value>(raw) {
            Ok(Value::Object(map)) => Ok(Value::Object(map).into()),
            Ok(Value::String(text)) if mend && let Some(map) = repair::object_in(&text) => {
                repairs.push(ArgumentRepair::new("", RepairKind::JsonFromText));
                Ok(Value::Object(map).into())
            }
            Ok(value) => {
                let reason = format!("- expected a JSON object, got {}", json_kind(&value));
                Err(invalid(&call.name, &reason))
            }
            Err(error) => Err(invalid(&call.name, &format!("- not valid JSON: {error}"))),
        },
        _ => Ok(call.arguments.clone()),
    }
}

/// The only required field of the tool, if the call is one with free text.
fn text_field<'t>(tool: &'t RegisteredTool, call: &ToolCall) -> Option<&'t str> {
    if call.kind != ToolCallKind::Custom || !call.arguments.is_string() {
        return None;
    }
    match tool.definition().parameters.get("required")?.as_array()?.as_slice() {
        [Value::String(only)] => Some(only),
        _ => None,
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn invalid(name: &str, reasons: &str) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidArguments, format!("Invalid arguments for tool: {name}\n{reasons}"))
}
