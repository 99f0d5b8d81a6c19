//! Size of the next request: a lower bound, and an estimate.
//!
//! The exact size of a request is unknown until the provider has counted it. The check whether it can fit the context
//! window uses a lower bound: the size of the last request as its provider counted it, plus the fewest tokens that newer
//! text can have. A request whose lower bound exceeds the window is not sent: a hosted model would refuse it, and some
//! local servers silently drop its beginning. Any other request is left to the provider.
//!
//! The warning, the report, compaction and the assumption that a refused request was too long use an estimate instead: the
//! system prompt, the tool definitions and the history at four characters per token, from the provider's count of the last
//! request on.

use serde::{Deserialize, Serialize};

use crate::protocol::{Turn, TurnContext};

/// Upper bound on the average number of characters per token in ordinary text and code, for all known tokenizers.
const MOST_CHARS_PER_TOKEN: u64 = 8;

/// Approximate characters per token (loop specification, section 5.5).
pub(super) const CHARS_PER_TOKEN: u64 = 4;

/// Share of the context window above which a warning is emitted.
const WARN_ABOVE: f64 = 0.8;

/// Size of a request, as counted by its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CountedPrompt {
    pub(super) tokens: u64,
    /// Size of the history and of the tools at that time, in characters.
    chars: u64,
    /// Number of entries of the history at that time.
    pub(super) turns: usize,
}

/// Size of the next request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RequestSize {
    /// Size of the history, in characters.
    chars: u64,
    /// Size of the system prompt, in characters.
    #[serde(skip)]
    system_chars: u64,
    /// Size of the tool definitions of the context, in bytes of JSON.
    #[serde(default)]
    tool_chars: u64,
    /// Size of the newest request, as counted by its provider.
    #[serde(default)]
    counted_prompt: Option<CountedPrompt>,
    context_warned: bool,
}

impl RequestSize {
    /// Returns the size of the history, in characters.
    pub(super) fn history_chars(&self) -> u64 {
        self.chars
    }

    /// Adds an entry of the history.
    pub(super) fn add(&mut self, turn: &Turn) {
        self.chars = self.chars.saturating_add(turn.chars());
    }

    /// Replaces the size of an entry of the history, in characters.
    pub(super) fn replace(&mut self, before: u64, after: u64) {
        self.chars = self.chars.saturating_sub(before).saturating_add(after);
    }

    /// Sets the size of another history, in characters. The provider has not counted it, and it may need another warning.
    pub(super) fn set_history(&mut self, chars: u64) {
        self.chars = chars;
        self.counted_prompt = None;
        self.context_warned = false;
    }

    /// Sets the size of the system prompt, in characters.
    pub(super) fn set_system(&mut self, chars: u64) {
        self.system_chars = chars;
    }

    /// Sets the size of the tool definitions of a new context, which may need another warning.
    pub(super) fn set_tools(&mut self, context: &TurnContext) {
        self.tool_chars = context.tools.json_bytes() as u64;
        self.context_warned = false;
    }

    /// Sets the provider's count of a request with `turns` entries of the history. Must be called before the response is
    /// added.
    pub(super) fn set_count(&mut self, input_tokens: u64, turns: usize) {
        // Servers that do not count report 0.
        let chars = self.sent_chars();
        self.counted_prompt =
            (input_tokens > 0).then_some(CountedPrompt { tokens: input_tokens, chars, turns });
    }

    /// Returns the provider's count of the newest request.
    pub(super) fn count(&self) -> Option<CountedPrompt> {
        self.counted_prompt
    }

    /// Takes the provider's count, which is not the size of the next request.
    pub(super) fn take_count(&mut self) -> Option<CountedPrompt> {
        self.counted_prompt.take()
    }

    /// Restores a count that was taken for a request outside the conversation.
    pub(super) fn restore_count(&mut self, count: CountedPrompt) {
        self.counted_prompt = Some(count);
    }

    /// Returns the size of the history and of the tools, in characters.
    fn sent_chars(&self) -> u64 {
        self.chars.saturating_add(self.tool_chars)
    }

    /// Returns the provider's count of the last request, and the number of characters that the next one adds. `None`
    /// without a valid count: a repair, or fewer tools, can make the request smaller than it was.
    fn counted(&self) -> Option<(u64, u64)> {
        let counted = self.counted_prompt?;
        Some((counted.tokens, self.sent_chars().checked_sub(counted.chars)?))
    }

    /// Returns a lower bound on the size of the next request, in tokens.
    pub(super) fn least_tokens(&self) -> u64 {
        match self.counted() {
            Some((tokens, added)) => tokens.saturating_add(added / MOST_CHARS_PER_TOKEN),
            None => self.chars.saturating_add(self.system_chars) / MOST_CHARS_PER_TOKEN,
        }
    }

    /// Returns the approximate size of the next request, in tokens.
    pub(super) fn estimated_tokens(&self) -> u64 {
        match self.counted() {
            Some((tokens, added)) => tokens.saturating_add(added / CHARS_PER_TOKEN),
            None => self.tokens_with(self.chars),
        }
    }

    /// Returns the approximate size, in tokens, of a request with a history of this many characters.
    pub(super) fn tokens_with(&self, history_chars: u64) -> u64 {
        let fixed = self.system_chars.saturating_add(self.tool_chars);
        history_chars.saturating_add(fixed) / CHARS_PER_TOKEN
    }

    /// Returns the approximate size of the system prompt, in tokens.
    pub(super) fn system_tokens(&self) -> u64 {
        self.system_chars / CHARS_PER_TOKEN
    }

    /// Returns the approximate size of the tool definitions, in tokens.
    pub(super) fn tool_tokens(&self) -> u64 {
        self.tool_chars / CHARS_PER_TOKEN
    }

    /// Returns the share of the context window when the request grows beyond [`WARN_ABOVE`], and again only after it was
    /// smaller.
    pub(super) fn share_to_warn_of(&mut self, context_window: u64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a percentage for display")]
        let share = self.estimated_tokens() as f64 / context_window.max(1) as f64;
        let was_warned = std::mem::replace(&mut self.context_warned, share > WARN_ABOVE);
        (self.context_warned && !was_warned).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_replaces_the_estimate_until_the_request_shrinks() {
        let mut size = RequestSize::default();
        size.set_system(80);
        size.set_history(320);
        assert_eq!((size.least_tokens(), size.estimated_tokens()), (50, 100));
        size.set_count(1_000, 3);
        size.replace(0, 80);
        assert_eq!((size.least_tokens(), size.estimated_tokens()), (1_010, 1_020));
        size.replace(160, 0);
        assert_eq!((size.least_tokens(), size.estimated_tokens()), (40, 80));
    }

    #[test]
    fn a_server_that_does_not_count_changes_nothing() {
        let mut size = RequestSize::default();
        size.set_history(400);
        size.set_count(0, 1);
        assert_eq!((size.count(), size.estimated_tokens()), (None, 100));
    }

    #[test]
    fn another_history_has_no_count() {
        let mut size = RequestSize::default();
        size.set_count(9, 1);
        size.set_history(40);
        assert_eq!((size.count(), size.estimated_tokens()), (None, 10));
        size.set_count(9, 1);
        let count = size.take_count().unwrap();
        assert_eq!((count.tokens, count.turns, size.count()), (9, 1, None));
        size.restore_count(count);
        assert_eq!(size.estimated_tokens(), 9);
    }

    #[test]
    fn the_warning_repeats_only_after_the_request_was_smaller() {
        let mut size = RequestSize::default();
        let warned: Vec<bool> = [316, 320, 324, 400, 80, 400]
            .into_iter()
            .map(|chars| {
                size.replace(u64::MAX, chars);
                size.share_to_warn_of(100).is_some()
            })
            .collect();
        assert_eq!(warned, [false, false, true, false, false, true]);
    }
}
