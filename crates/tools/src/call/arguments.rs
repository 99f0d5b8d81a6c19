//! Converts arguments from the model's text to values that fit the tool's schema.

use std::sync::OnceLock;

use pintle_llm::{CallArguments, ToolCall, ToolCallKind};
use serde_json::{Map, Value};

use crate::error::ToolError;
use crate::registry::RegisteredTool;
use crate::repair::{self, ArgumentRepair, RepairKind};
use crate::schema;

/// The outcome of [`fit`].
pub(super) struct FittedArguments {
    /// The arguments as an object that fits the schema.
    pub(super) object: CallArguments,
    /// The same arguments, as a prepared call keeps them.
    pub(super) arguments: Arguments,
    /// The repairs that were made.
    pub(super) repairs: Vec<ArgumentRepair>,
}

/// The arguments that a prepared call keeps.
///
/// Free text is shared with the history. An object with the text as a property contains a copy, which may be megabytes
/// long, so it is built only on demand.
#[derive(Clone, Debug)]
pub(super) enum Arguments {
    Object(CallArguments),
    Text { name: String, text: CallArguments, object: OnceLock<Value> },
}

impl Arguments {
    pub(super) fn object(&self) -> &Value {
        match self {
            Self::Object(arguments) => arguments,
            Self::Text { name, text, object } => object.get_or_init(|| object_with(name, text)),
        }
    }
}

fn object_with(name: &str, text: &Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), text.clone())]))
}

/// Parses a call's arguments, repairs them if `repair` is set, and checks them against the schema.
///
/// # Errors
///
/// The remaining mistakes as text for the model, or a schema that cannot be compiled.
pub(super) fn fit(
    tool: &RegisteredTool,
    call: &ToolCall,
    repair: bool,
) -> Result<FittedArguments, ToolError> {
    let validator = tool.validator()?;
    let mut repairs = Vec::new();
    let mut object = object_of(tool, call, repair, &mut repairs)?;
    if repair {
        let schema = &tool.definition().parameters;
        repairs.extend(repair::repair(validator, schema, tool.aliases(), &mut object));
    }
    let mistakes = schema::mistakes(validator, &object);
    if !mistakes.is_empty() {
        let list: Vec<String> = mistakes.iter().map(|mistake| format!("- {mistake}")).collect();
        return Err(invalid(&call.name, &list.join("\n")));
    }
    for repair in &repairs {
        tracing::info!(tool = call.name, %repair, "repaired an argument");
    }
    let arguments = match text_parameter(tool, call) {
        Some(name) if repairs.is_empty() => {
            Arguments::Text { name: name.to_owned(), text: call.arguments.clone(), object: OnceLock::new() }
        }
        Some(_) | None => Arguments::Object(object.clone()),
    };
    Ok(FittedArguments { object, arguments, repairs })
}

/// Returns the arguments as an object. Free text becomes the only required property. A string that contains an object
/// is a mistake that can be repaired.
fn object_of(
    tool: &RegisteredTool,
    call: &ToolCall,
    repair: bool,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<CallArguments, ToolError> {
    match (&*call.arguments, call.kind) {
        (text @ Value::String(_), ToolCallKind::Custom) => match text_parameter(tool, call) {
            Some(name) => Ok(object_with(name, text).into()),
            None => Err(invalid(&call.name, "- expected a JSON object with named arguments, got free text")),
        },
        (Value::String(raw), ToolCallKind::Function) => object_in_json(call, raw, repair, repairs),
        _ => Ok(call.arguments.clone()),
    }
}

/// Parses JSON into an object.
fn object_in_json(
    call: &ToolCall,
    json: &str,
    repair: bool,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<CallArguments, ToolError> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| invalid(&call.name, &format!("- not valid JSON: {error}")))?;
    if value.is_object() {
        return Ok(value.into());
    }
    let Some(map) = value.as_str().filter(|_| repair).and_then(repair::object_in) else {
        let reason = format!("- expected a JSON object, got {}", json_kind(&value));
        return Err(invalid(&call.name, &reason));
    };
    repairs.push(ArgumentRepair::new("", RepairKind::JsonFromText));
    Ok(Value::Object(map).into())
}

/// Returns the only required parameter of the tool, if the call's input is free text.
fn text_parameter<'t>(tool: &'t RegisteredTool, call: &ToolCall) -> Option<&'t str> {
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
    ToolError::invalid_arguments(format!("Invalid arguments for tool: {name}\n{reasons}"))
}
