//! From what a model wrote to arguments that fit the tool's schema.

use pintle_llm::{CallArguments, ToolCall, ToolCallKind};
use serde_json::{Map, Value};

use crate::error::{ToolError, ToolErrorKind};
use crate::registry::RegisteredTool;
use crate::repair::{self, ArgumentRepair, RepairKind};
use crate::schema;

/// Arguments that fit.
pub(super) struct Arguments {
    pub(super) value: CallArguments,
    /// What was mended in them.
    pub(super) repairs: Vec<ArgumentRepair>,
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
    Ok(Arguments { value, repairs })
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
        (Value::String(text), ToolCallKind::Custom) => {
            let parameters = &tool.definition().parameters;
            let required = parameters.get("required").and_then(Value::as_array).map(Vec::as_slice);
            match required {
                Some([Value::String(only)]) => {
                    Ok(Value::Object(Map::from_iter([(only.clone(), Value::String(text.clone()))])).into())
                }
                _ => Err(invalid(&call.name, "- expected a JSON object with named arguments, got free text")),
            }
        }
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
