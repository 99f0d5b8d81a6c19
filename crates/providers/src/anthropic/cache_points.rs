//! Cache points: where a request says that its prefix is to be cached.
//!
//! A request may have four. Automatic ones are set on the last system block, on the last tool, and on the last content
//! block of the last two user messages. A system prompt in several parts, as in a git work tree,
//! gets a point after the last part but one instead of the point on the tools. The API reads tools before the system
//! prompt, so that point covers them (decision 0010, which says where this departs from the specification).

use bytes::Bytes;
use pintle_llm::Error;
use serde_json::{Map, Value, json};

use super::NAME;
use crate::options::invalid_option;

/// Required by old models for caching, and ignored by others.
pub(super) const BETA: &str = "prompt-caching-2024-07-31";

/// The last field of an object with a cache point.
pub(super) const LAST_FIELD: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Start of an object with a cache point.
const START: &[u8] = br#"{"cache_control":{"type":"ephemeral"},"#;

/// Inserts a cache point into a serialised object that has fields and no cache point.
pub(super) fn mark(object: &mut Bytes) {
    *object = [START, object.get(1..).unwrap_or_default()].concat().into();
}

/// Inserts a cache point into an object that has none.
pub(super) fn mark_value(block: &mut Value) {
    if let Some(block) = block.as_object_mut() {
        block.entry("cache_control").or_insert_with(|| json!({"type": "ephemeral"}));
    }
}

/// Reads the option that turns automatic cache points off.
pub(super) fn auto_cache(options: &Map<String, Value>) -> Result<bool, Error> {
    match options.get("auto_cache") {
        None => Ok(true),
        Some(Value::Bool(wanted)) => Ok(*wanted),
        Some(found) => Err(invalid_option(NAME, "auto_cache", "true or false", found)),
    }
}

/// Returns whether there is a cache point anywhere: the caller may have set some.
pub(super) fn has_cache_point(object: &Map<String, Value>) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Object(object) => has_cache_point(object),
            Value::Array(list) => list.iter().any(within),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    object.contains_key("cache_control") || object.values().any(within)
}
