//! The meaning of the input count in all dialects: the complete input, including cached tokens (decision 0016).

use pintle_llm::Usage;

/// Adds the cached tokens to an input count that excludes them.
pub(crate) fn include_cached(usage: &mut Usage) {
    usage.input_tokens = usage.input_tokens.saturating_add(cached(usage));
    usage.total_tokens = usage.total_tokens.max(usage.input_tokens.saturating_add(usage.output_tokens));
}

/// Adds the cached tokens if they exceed the input count. Some servers behind an OpenAI-compatible API count them
/// separately, and nothing but the counts shows it.
pub(crate) fn include_cached_if_separate(usage: &mut Usage) {
    if cached(usage) > usage.input_tokens {
        include_cached(usage);
    }
}

fn cached(usage: &Usage) -> u64 {
    let [read, written] = [usage.cache_read_tokens, usage.cache_write_tokens].map(Option::unwrap_or_default);
    read.saturating_add(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_added_only_if_missing() {
        // Input, total, cache reads and writes as counted by the server; then input and total.
        let cases = [
            ((10, 15, Some(4), Some(2)), (10, 15)),
            ((10, 15, Some(10), None), (10, 15)),
            ((7, 12, Some(161), Some(0)), (168, 173)),
            ((7, 200, Some(161), None), (168, 200)),
            ((7, 12, None, None), (7, 12)),
        ];
        for (counted @ (input, total, read, written), expected) in cases {
            let mut usage = Usage::new(input, 5);
            usage.total_tokens = total;
            (usage.cache_read_tokens, usage.cache_write_tokens) = (read, written);
            include_cached_if_separate(&mut usage);
            assert_eq!((usage.input_tokens, usage.total_tokens), expected, "{counted:?}");
        }
    }
}
