//! Checks of the next request against the context window of the model.

use super::Machine;
use crate::protocol::{Action, EventKind, OutcomeStatus, TurnContext};

impl Machine {
    /// Emits a warning when the request grows beyond a share of the context window, and again only after it was smaller.
    pub(super) fn warn_of_context(&mut self, context: &TurnContext, out: &mut Vec<Action>) {
        if let Some(share) = self.size.share_to_warn_of(context.context_window) {
            let message = format!("Context usage at ~{:.0}% of context window", share * 100.0);
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    /// Ends the input if the next request cannot fit the window. Returns whether it did.
    pub(super) fn stopped_by_window(&mut self, context: &TurnContext, out: &mut Vec<Action>) -> bool {
        let (least_tokens, context_window) = (self.size.least_tokens(), context.context_window);
        if least_tokens <= context_window {
            return false;
        }
        self.stop_children(out);
        out.push(Action::emit(EventKind::ContextFull { least_tokens, context_window }));
        self.finish_input(OutcomeStatus::ContextFull, out);
        true
    }
}
