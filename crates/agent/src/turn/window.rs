//! Check that a request can fit the model's context window.
//!
//! The exact size of a request is unknown until the provider has counted it. The check uses a lower bound: the size of
//! the last request as its provider counted it, plus the fewest tokens that newer text can have. A request whose lower
//! bound exceeds the window is not sent: a hosted model would refuse it, and some local servers silently drop its
//! beginning. Any other request is left to the provider.

use serde::{Deserialize, Serialize};

use super::Machine;
use crate::protocol::{Action, EventKind, OutcomeStatus, TurnContext};

/// Upper bound on the average number of characters per token in ordinary text and code, for all known tokenizers.
const CHARS_PER_TOKEN: u64 = 8;

/// Size of a request, as counted by its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CountedPrompt {
    pub(super) tokens: u64,
    /// Size of the history at that time, in characters.
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
            chars: self.chars,
            turns: self.history.len(),
        });
    }

    /// Returns a lower bound on the size of the next request, in tokens.
    fn least_tokens(&self) -> u64 {
        match self.counted_prompt {
            // A repair can make the history smaller than it was when it was counted.
            Some(counted) if self.chars >= counted.chars => {
                counted.tokens.saturating_add((self.chars - counted.chars) / CHARS_PER_TOKEN)
            }
            Some(_) | None => self.chars.saturating_add(self.system_chars) / CHARS_PER_TOKEN,
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
