//! Token counts of the Messages API.

use pintle_llm::Usage;
use serde_json::{Map, Value};

use crate::input_tokens;

/// Characters of readable thinking per token, for the estimate required by the specification (section 3.9).
const CHARACTERS_PER_TOKEN: u64 = 4;

/// Counts of one response, accumulated from events: later events restate earlier counts.
#[derive(Debug, Default)]
pub(super) struct Counts {
    raw: Map<String, Value>,
    thinking_characters: u64,
}

impl Counts {
    /// Applies a `usage` object, whose counts replace earlier ones.
    pub(super) fn restate(&mut self, usage: Map<String, Value>) {
        self.raw.extend(usage.into_iter().filter(|(_, value)| !value.is_null()));
    }

    /// Counts the characters of readable thinking.
    pub(super) fn add_thinking(&mut self, text: &str) {
        let characters = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        self.thinking_characters = self.thinking_characters.saturating_add(characters);
    }

    /// Returns the unified counts. The API excludes cached tokens from its `input_tokens`.
    pub(super) fn usage(self) -> Usage {
        let count = |name: &str| self.raw.get(name).and_then(Value::as_u64);
        let mut usage = Usage::new(count("input_tokens").unwrap_or(0), count("output_tokens").unwrap_or(0));
        usage.cache_read_tokens = count("cache_read_input_tokens");
        usage.cache_write_tokens = count("cache_creation_input_tokens");
        input_tokens::include_cached(&mut usage);
        let stated = self.raw.get("output_tokens_details").and_then(|details| details.get("thinking_tokens"));
        usage.reasoning_tokens =
            stated.and_then(Value::as_u64).or_else(|| self.estimate(usage.output_tokens));
        usage.raw = (!self.raw.is_empty()).then(|| Value::Object(self.raw).into());
        usage
    }

    fn estimate(&self, output_tokens: u64) -> Option<u64> {
        let tokens = self.thinking_characters.div_ceil(CHARACTERS_PER_TOKEN);
        (tokens > 0).then_some(tokens.min(output_tokens))
    }
}
