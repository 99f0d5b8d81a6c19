//! Wire conventions that the Responses API and Chat Completions share.

pub(crate) mod calls;
pub(crate) mod error;
pub(crate) mod media;

use serde_json::Value;

/// Returns the title of a schema in characters that the provider accepts, else `response`.
pub(crate) fn schema_name(schema: &Value) -> String {
    let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
    let name: String =
        title.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(64).collect();
    if name.is_empty() { "response".to_owned() } else { name }
}
