//! Token counts of the Gemini API.

use pintle_llm::Usage;
use serde_json::{Map, Value};

/// The unified counts of a `usageMetadata` object.
///
/// Thoughts are counted apart from the candidates here, and are part of the output there.
pub(super) fn usage(raw: Map<String, Value>) -> Usage {
    let count = |name: &str| raw.get(name).and_then(Value::as_u64);
    let thoughts = count("thoughtsTokenCount");
    let output = count("candidatesTokenCount").unwrap_or(0).saturating_add(thoughts.unwrap_or(0));
    let mut usage = Usage::new(count("promptTokenCount").unwrap_or(0), output);
    usage.total_tokens = count("totalTokenCount").unwrap_or(usage.total_tokens);
    usage.reasoning_tokens = thoughts;
    usage.cache_read_tokens = count("cachedContentTokenCount");
    usage.raw = (!raw.is_empty()).then_some(Value::Object(raw));
    usage
}
