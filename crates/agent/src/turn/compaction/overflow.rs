//! Compaction after a provider refused a request as too long.

use pintle_llm::{ErrorInfo, ErrorKind};

use super::{CurrentCompaction, LEAST_ROOM, MAX_REQUESTS};
use crate::protocol::{Action, EventKind, OutcomeStatus};
use crate::turn::Machine;

/// Share of the context window, in percent, above which a refusal without a known reason counts as a prompt that is too
/// long.
const ASSUMED_ABOVE: u64 = 90;

impl Machine {
    /// Starts a compaction with the shortest tail, once, after a provider refused a request as too long. Returns whether it
    /// did.
    pub(in crate::turn) fn compact_after_refusal(
        &mut self,
        error: &ErrorInfo,
        out: &mut Vec<Action>,
    ) -> bool {
        self.measure_system();
        let assumed = self.assumed_overflow(error);
        let may = (error.kind == ErrorKind::ContextLength || assumed.is_some())
            && self.limits.compaction.at_percent.is_some()
            && !self.compactions.after_refusal
            && self.may_call_model();
        let Some(through) = may.then(|| self.cut(0)).flatten() else { return false };
        let Some(context) = self.context.take() else { return false };
        self.compactions.after_refusal = true;
        if let Some(percent) = assumed {
            self.note_assumed_overflow();
            let message = format!(
                "the provider refused a request that takes ~{percent}% of the context window ({error}); it may be too long, so the conversation is compacted once"
            );
            out.push(Action::emit(EventKind::Warning { message }));
        }
        let window = context.context_window.min(self.size.estimated_tokens());
        let current = CurrentCompaction {
            through,
            is_manual: false,
            is_after_overflow: error.kind == ErrorKind::ContextLength,
            is_cancelled: false,
            is_partial: false,
            is_cut_off: false,
            requests: 0,
            before: self.size.history_chars(),
            window,
            room: Some(window / 2),
        };
        let started = self.request_summary(current, &context, out);
        self.context = Some(context);
        started
    }

    /// Returns the share of the context window, in percent, of a request that was refused without a known reason, if
    /// its size is probably the reason. Once per run.
    fn assumed_overflow(&self, error: &ErrorInfo) -> Option<u64> {
        let is_unknown = error.kind == ErrorKind::InvalidRequest
            && !error.refused_reasoning
            && matches!(error.status, Some(400 | 422));
        let is_first = self.progress.as_ref().is_some_and(|progress| !progress.assumed_overflow);
        let window = self.context.as_ref().map_or(0, |context| context.context_window);
        let used = self.size.estimated_tokens().saturating_mul(100);
        let is_nearly_full = used > window.saturating_mul(ASSUMED_ABOVE);
        (is_unknown && is_first && is_nearly_full).then(|| used / window.max(1))
    }

    fn note_assumed_overflow(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress.assumed_overflow = true;
        }
    }

    /// Allows a compaction after the next refusal: a request was answered, or an input begins.
    pub(in crate::turn) fn allow_compaction_after_refusal(&mut self) {
        self.compactions.after_refusal = false;
    }

    /// Requests a summary again after the provider refused the request as too long: with half of it, as text. Returns
    /// whether it did.
    pub(super) fn retry_in_pieces(&mut self, error: &ErrorInfo, out: &mut Vec<Action>) -> bool {
        let Some(mut current) = self.running_compaction() else { return false };
        self.measure_system();
        let is_assumed = current.room.is_none() && self.assumed_overflow(error).is_some();
        let is_last = current.requests >= MAX_REQUESTS || !self.may_call_model();
        if is_last || (error.kind != ErrorKind::ContextLength && !is_assumed) {
            return false;
        }
        let refused = current.room.unwrap_or_else(|| self.size.estimated_tokens());
        if current.room.is_some_and(|room| room / 2 < LEAST_ROOM) {
            return false;
        }
        if is_assumed {
            self.note_assumed_overflow();
        }
        current.window = current.window.min(refused);
        current.room = Some(current.window / 2);
        let message = format!(
            "the provider refused the request for a summary as too long ({error}); it is made shorter"
        );
        self.report_result(EventKind::Warning { message }, out);
        self.request_next_piece(current, out)
    }

    /// Ends the input after a compaction that did not make a refused request smaller: the provider would refuse it again.
    pub(super) fn end_without_room(&mut self, out: &mut Vec<Action>) {
        self.compactions.current = None;
        let message = "the provider refused the request as too long, and the compaction did not make it smaller: \
                       the system prompt, the tools and the newest message leave no room";
        self.report_result(EventKind::Warning { message: message.to_owned() }, out);
        self.stop_children(out);
        self.finish_input(OutcomeStatus::ContextFull, out);
    }
}
