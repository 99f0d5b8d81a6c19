//! Token counts (client specification, section 3.9).

use std::ops::{Add, AddAssign};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Token counts of a call, or the sum of several.
///
/// The counts have the same meaning for every provider: `input_tokens` is the complete input, including tokens read from
/// or written to a cache. Adapters convert different counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Usage {
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The provider's total, or the sum of input and output.
    pub total_tokens: u64,
    /// Reasoning tokens; part of the output. An estimate for Anthropic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Input tokens read from a cache; part of the input. `None` if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Input tokens written to a cache; part of the input. `None` if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The provider's record; dropped when counts are added. Copies share it: a history keeps the counts of every response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Arc<Value>>,
}

impl Usage {
    /// Creates counts with the sum of input and output as the total.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            ..Self::default()
        }
    }

    /// Returns the difference to an earlier sum of the same counts.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let optional =
            |now: Option<u64>, earlier: Option<u64>| now.map(|now| now.saturating_sub(earlier.unwrap_or(0)));
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            total_tokens: self.total_tokens.saturating_sub(earlier.total_tokens),
            reasoning_tokens: optional(self.reasoning_tokens, earlier.reasoning_tokens),
            cache_read_tokens: optional(self.cache_read_tokens, earlier.cache_read_tokens),
            cache_write_tokens: optional(self.cache_write_tokens, earlier.cache_write_tokens),
            raw: None,
        }
    }

    /// Returns the input tokens neither read from nor written to a cache.
    #[must_use]
    pub fn uncached_input_tokens(&self) -> u64 {
        let read = self.cache_read_tokens.unwrap_or(0);
        let written = self.cache_write_tokens.unwrap_or(0);
        self.input_tokens.saturating_sub(read.saturating_add(written))
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            }
        }
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.cache_read_tokens = sum(self.cache_read_tokens, other.cache_read_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
        self.raw = None;
    }
}

impl Add<&Usage> for Usage {
    type Output = Usage;

    fn add(mut self, other: &Usage) -> Usage {
        self += other;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_unknown_counts_is_unknown() {
        let mut a = Usage::new(10, 5);
        a.reasoning_tokens = Some(2);
        let b = Usage::new(1, 1);
        let sum = a + &b;
        assert_eq!((sum.input_tokens, sum.output_tokens, sum.total_tokens), (11, 6, 17));
        assert_eq!((sum.reasoning_tokens, sum.cache_read_tokens), (Some(2), None));
    }

    #[test]
    fn cached_tokens_are_part_of_the_input() {
        let cases =
            [(None, None, 100), (Some(60), None, 40), (Some(60), Some(30), 10), (Some(60), Some(50), 0)];
        for (read, written, uncached) in cases {
            let mut usage = Usage::new(100, 5);
            (usage.cache_read_tokens, usage.cache_write_tokens) = (read, written);
            assert_eq!(usage.uncached_input_tokens(), uncached, "{usage:?}");
        }
    }
}
