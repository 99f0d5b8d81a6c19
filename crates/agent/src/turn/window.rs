//! Whether a request can fit the model's context window.
//!
//! Nobody knows the size of a request before the provider has counted it, so this is a lower bound: what the provider
//! counted for the last request, and for the text since then the fewest tokens that it can have. A request that is
//! larger than the window all the same is not sent: a hosted model would refuse it, and some local servers silently
//! drop its beginning. Whatever is below the bound is left to the provider.

use serde::{Deserialize, Serialize};

use super::Machine;
use super::action::{Action, OutcomeStatus};
use super::input::TurnContext;
use crate::event::EventKind;

/// More characters than the tokens of ordinary text and code have on average, with any known tokenizer.
const CHARS_PER_TOKEN: u64 = 8;

/// The size of a request as its provider counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CountedPrompt {
    tokens: u64,
    /// The size of the history then, in characters.
    chars: u64,
}

impl Machine {
    /// Notes the size of the prompt that was just answered; to be called before the answer is recorded.
    pub(super) fn note_prompt_size(&mut self, input_tokens: u64) {
        // Servers that count nothing report 0.
        self.counted_prompt =
            (input_tokens > 0).then_some(CountedPrompt { tokens: input_tokens, chars: self.chars });
    }

    /// The fewest tokens that the next request can have.
    fn least_tokens(&self) -> u64 {
        match self.counted_prompt {
            // After a repair the history may be smaller than what was counted.
            Some(counted) if self.chars >= counted.chars => {
                counted.tokens.saturating_add((self.chars - counted.chars) / CHARS_PER_TOKEN)
            }
            Some(_) | None => self.chars.saturating_add(self.system_chars) / CHARS_PER_TOKEN,
        }
    }

    /// Ends the input if the next request cannot fit the window.
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
