//! Token counts of the Gemini API.

use pintle_llm::Usage;
use serde_json::{Map, Value};

use crate::input_tokens;

/// Returns the unified counts of a `usageMetadata` object.
///
/// The API counts thoughts apart from the candidates, and the input of built-in tools (such as the output of executed
/// code) apart from the prompt. The unified output and input include them: `docs/project/decisions/0018` and `0016`.
pub(super) fn usage(raw: Map<String, Value>) -> Usage {
    let count = |name: &str| raw.get(name).and_then(Value::as_u64);
    let thoughts = count("thoughtsTokenCount");
    let output = count("candidatesTokenCount").unwrap_or(0).saturating_add(thoughts.unwrap_or(0));
    let tool_input = count("toolUsePromptTokenCount").unwrap_or(0);
    let mut usage = Usage::new(count("promptTokenCount").unwrap_or(0).saturating_add(tool_input), output);
    usage.total_tokens = count("totalTokenCount").unwrap_or(usage.total_tokens);
    usage.reasoning_tokens = thoughts;
    usage.cache_read_tokens = count("cachedContentTokenCount");
    input_tokens::include_cached_if_separate(&mut usage);
    usage.raw = (!raw.is_empty()).then(|| Value::Object(raw).into());
    usage
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_input_and_thoughts_are_counted() {
        let raw = json!({"promptTokenCount": 147, "candidatesTokenCount": 108, "thoughtsTokenCount": 168,
            "toolUsePromptTokenCount": 360, "totalTokenCount": 783});
        let usage = usage(raw.as_object().unwrap().clone());
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (507, 276, 783));
        assert_eq!(usage.reasoning_tokens, Some(168));
    }
}
