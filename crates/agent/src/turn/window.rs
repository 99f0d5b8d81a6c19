//! Size of the next request, and the check that it can fit the model's context window.
//!
//! The exact size of a request is unknown until the provider has counted it. The check uses a lower bound: the size of
//! the last request as its provider counted it, plus the fewest tokens that newer text can have. A request whose lower
//! bound exceeds the window is not sent: a hosted model would refuse it, and some local servers silently drop its
//! beginning. Any other request is left to the provider.
//!
//! The warning, the report, compaction and the assumption that a refused request was too long use an estimate instead: the
//! system prompt, the tool definitions and the history at four characters per token, from the provider's count of the last
//! request on.

use serde::{Deserialize, Serialize};

use super::Machine;
use crate::protocol::{Action, EventKind, OutcomeStatus, TurnContext};

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
    pub(super) chars: u64,
    /// Number of entries of the history at that time.
    pub(super) turns: usize,
}

impl Machine {
    /// Stores the size of the prompt of a response. Must be called before the response is recorded.
    pub(super) fn set_prompt_size(&mut self, input_tokens: u64) {
        // Servers that do not count report 0.
        self.counted_prompt = (input_tokens > 0).then_some(CountedPrompt {
            tokens: input_tokens,
            chars: self.sent_chars(),
            turns: self.history.len(),
        });
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
    fn least_tokens(&self) -> u64 {
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

    /// Emits a warning when the request grows beyond [`WARN_ABOVE`], and again only after it was smaller.
    pub(super) fn warn_of_context(&mut self, context: &TurnContext, out: &mut Vec<Action>) {
        #[expect(clippy::cast_precision_loss, reason = "a percentage for display")]
        let share = self.estimated_tokens() as f64 / context.context_window.max(1) as f64;
        if share <= WARN_ABOVE {
            self.context_warned = false;
        } else if !self.context_warned {
            self.context_warned = true;
            let message = format!("Context usage at ~{:.0}% of context window", share * 100.0);
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    /// Ends the input if the next request cannot fit the window. Returns whether it did.
    pub(super) fn stopped_by_window(&mut self, context: &TurnContext, out: &mut Vec<Action>) -> bool {
        let (least_tokens, context_window) = (self.least_tokens(), context.context_window);
        if least_tokens <= context_window {
            return false;
        }
        self.stop_children(out);
        out.push(Action::emit(EventKind::ContextFull { least_tokens, context_window }));
        self.finish_input(OutcomeStatus::ContextFull, out);
        true
    }
}

/// Returns the size of the tool definitions, in bytes of JSON.
pub(super) fn tool_chars(context: &TurnContext) -> u64 {
    context.tools.json_bytes() as u64
}
