//! Compaction: a summary in place of the beginning of the conversation (design of the layers above, section 2).
//!
//! The machine requests the summary with the request that it would have sent and one more message, so that the
//! provider's cache serves the beginning. A conversation that is too long for that is summarised as text, in pieces.
//! Each piece is sent with the summary so far. The summary replaces all entries up to a cut, at which no call is open.
//! The user's own messages among them are kept beside it. Requests continue with the rest, and the history keeps
//! everything.

mod overflow;
mod pieces;
mod requests;
mod user_messages;

use pintle_llm::{ErrorInfo, Finish, HistoryItem, Message, Response};
use serde::{Deserialize, Serialize};

use super::ending::Ending;
use super::request_size::CHARS_PER_TOKEN;
use super::{Machine, Phase};
use crate::protocol::{
    Action, Compaction, CompactionTrigger, EventKind, ModelCallId, SessionState, Turn, TurnContext, TurnKind,
};

/// Largest part of the compaction threshold that the kept tail may take: one quarter.
const TAIL_SHARE: u64 = 4;

/// A compaction that gains less than this part of the window is not tried again until the history has grown by as much.
const LEAST_GAIN: u64 = 10;

/// Percent by which the use of the context has to change before it is reported again.
const USAGE_STEP: u64 = 10;

/// Maximum number of requests of one compaction.
const MAX_REQUESTS: u32 = 10;

/// Size below which a request for the summary of a piece is not made smaller again, in tokens.
const LEAST_ROOM: u64 = 250;

pub(super) const INTRODUCTION: &str = concat!(include_str!("../../prompts/compaction/introduction.md"), "\n");

pub(super) const USER_MESSAGES: &str =
    concat!(include_str!("../../prompts/compaction/user_messages.md"), "\n");

pub(super) const PIECE: &str = concat!(include_str!("../../prompts/compaction/piece.md"), "\n");

/// State of compaction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Compactions {
    /// All compactions of this session, the newest last.
    made: Vec<Compaction>,
    /// Whether the embedding application has requested one.
    requested: bool,
    /// The compaction in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<CurrentCompaction>,
    /// Size of the history, in characters, below which no compaction is tried again.
    not_before: u64,
    /// Whether the provider refused the next request as too long, and the conversation was compacted for that.
    after_refusal: bool,
    /// Share of the context in use that was reported last, in steps.
    reported: u64,
    /// Events about the results of compactions, for callers that wait for the end of a compaction.
    #[serde(skip)]
    results: Vec<EventKind>,
}

/// Compaction in progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct CurrentCompaction {
    /// Number of entries that it replaces when it is complete.
    through: usize,
    /// Whether the embedding application asked for it.
    is_manual: bool,
    /// Whether the provider refused the request as too long.
    #[serde(default)]
    is_after_overflow: bool,
    /// Whether it was interrupted.
    is_cancelled: bool,
    /// Whether the summary of a piece has replaced a part of the conversation.
    #[serde(default)]
    is_partial: bool,
    /// Whether a summary was requested again because the output limit had cut it off.
    #[serde(default)]
    is_cut_off: bool,
    /// Requests so far.
    requests: u32,
    /// Size of the history at its start, in characters.
    before: u64,
    /// Context window in tokens: the window of the model, reduced by refusals.
    window: u64,
    /// Maximum number of tokens of a request for the summary of a piece. `None` while the conversation is sent
    /// unchanged.
    room: Option<u64>,
}

impl Compactions {
    pub(super) fn new(made: Vec<Compaction>) -> Self {
        Self { made, ..Self::default() }
    }

    pub(super) fn newest(&self) -> Option<&Compaction> {
        self.made.last()
    }

    /// Returns the number of entries that the newest compaction replaces.
    pub(super) fn entries(&self) -> usize {
        self.newest().map_or(0, |compaction| compaction.through)
    }

    /// Returns the compactions of a history of this length.
    pub(super) fn of_history(&self, turns: usize) -> Vec<Compaction> {
        self.made.iter().filter(|compaction| compaction.made_at <= turns).cloned().collect()
    }
}

/// Returns the message that replaces the beginning of the conversation.
pub(super) fn summary_item(compaction: &Compaction) -> HistoryItem {
    Message::user(summary_text(compaction)).into()
}

fn summary_text(Compaction { user_messages, summary, .. }: &Compaction) -> String {
    if user_messages.is_empty() {
        format!("{INTRODUCTION}{summary}")
    } else {
        format!("{INTRODUCTION}{USER_MESSAGES}{user_messages}\n\n{summary}")
    }
}

/// Returns whether no call is open before this entry. A result follows its call.
fn is_border(turn: &Turn) -> bool {
    matches!(turn.kind, TurnKind::User | TurnKind::Assistant | TurnKind::Steering)
}

impl Machine {
    /// Starts with the view that a forked session had.
    pub(super) fn start_compacted(&mut self, mut made: Vec<Compaction>) {
        let newest = made.pop();
        self.compactions = Compactions::new(made);
        if let Some(newest) = newest {
            self.set_view(newest);
        }
    }

    /// Handles a compaction request of the embedding application. Compacts at once if nothing runs, else before the
    /// next model call or after the turn, which a warning reports.
    pub(super) fn compact(&mut self, out: &mut Vec<Action>) {
        if self.state == SessionState::Closed {
            return;
        }
        let is_free = matches!(self.phase, Phase::Resting) && self.ending.is_none();
        // The context of a session without an input is not loaded.
        if is_free && self.cut(0).is_none() {
            self.warn_of_failure(false, "there is nothing to summarize yet", out);
            return;
        }
        self.compactions.requested = true;
        if is_free && self.context_is_current && self.may_call_model() {
            let context = self.context.take();
            if let Some(context) = &context {
                self.compact_before_request(context, out);
            }
            self.context = context;
        } else if !matches!(self.phase, Phase::Compacting { .. }) {
            let when = if is_free { "" } else { ", or after this turn" };
            let message = format!("the conversation is compacted before the next request{when}");
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    /// Returns whether a compaction that was requested during a turn can start now, after the turn.
    pub(crate) fn can_start_requested_compaction(&self) -> bool {
        self.compactions.requested
            && self.state == SessionState::Idle
            && matches!(self.phase, Phase::Resting)
            && self.ending.is_none()
            && self.context_is_current
            && self.context.is_some()
            && self.may_call_model()
            && self.cut(0).is_some()
    }

    /// Takes the events about the result of compactions that were emitted since the last call.
    pub(crate) fn take_compaction_results(&mut self) -> Vec<EventKind> {
        std::mem::take(&mut self.compactions.results)
    }

    /// Emits an event about the result of a compaction.
    fn report_result(&mut self, event: EventKind, out: &mut Vec<Action>) {
        self.compactions.results.push(event.clone());
        out.push(Action::emit(event));
    }

    /// Warns that a compaction failed. `is_partial` if the summaries of some pieces were made before.
    fn warn_of_failure(&mut self, is_partial: bool, problem: &str, out: &mut Vec<Action>) {
        let result = if is_partial { "was compacted in part" } else { "was not compacted" };
        let message = format!("the conversation {result}: {problem}");
        self.report_result(EventKind::Warning { message }, out);
    }

    /// Starts a compaction if one is due before the next request. Returns whether it did.
    pub(super) fn compact_before_request(&mut self, context: &TurnContext, out: &mut Vec<Action>) -> bool {
        let is_requested = std::mem::take(&mut self.compactions.requested);
        self.measure_system();
        let percent = self.limits.compaction.at_percent.map_or(100, u64::from);
        let threshold = usable_window(context).saturating_mul(percent) / 100;
        let is_due = self.limits.compaction.at_percent.is_some()
            && self.size.estimated_tokens() >= threshold
            && self.size.history_chars() >= self.compactions.not_before;
        if !is_requested && !is_due {
            return false;
        }
        // A requested compaction replaces as much as possible; an automatic one keeps the newest part.
        let tail = if is_requested { 0 } else { threshold * CHARS_PER_TOKEN / TAIL_SHARE };
        let Some(through) = self.cut(tail) else {
            if is_requested {
                self.warn_of_failure(false, "there is nothing to summarize yet", out);
            }
            return false;
        };
        let usable = usable_window(context);
        let current = CurrentCompaction {
            through,
            is_manual: is_requested,
            is_after_overflow: false,
            is_cancelled: false,
            is_partial: false,
            is_cut_off: false,
            requests: 0,
            before: self.size.history_chars(),
            window: context.context_window,
            room: (self.size.estimated_tokens() > usable).then_some(usable / 2),
        };
        let started = self.request_summary(current, context, out);
        if is_requested && !started {
            self.warn_of_failure(false, "too little of the budget is left for the request", out);
        }
        started
    }

    /// Returns the compaction in progress, unless it is being stopped.
    fn running_compaction(&self) -> Option<CurrentCompaction> {
        self.compactions.current.filter(|current| !current.is_cancelled && self.ending.is_none())
    }

    /// Prevents further requests of the compaction in progress.
    pub(super) fn cancel_compaction(&mut self) {
        if let Some(current) = &mut self.compactions.current {
            current.is_cancelled = true;
        }
    }

    /// Returns a compaction of the first `through` entries.
    pub(super) fn compaction_of(&self, through: usize, summary: String) -> Compaction {
        let of_model = || self.context.as_ref().map_or(0, |context| context.context_window);
        let window = self.compactions.current.map_or_else(of_model, |current| current.window);
        let replaced = self.history.get(..through).unwrap_or_default();
        Compaction {
            through,
            made_at: self.history.len(),
            summary,
            user_messages: user_messages::user_messages(replaced, window),
        }
    }

    /// Applies the summary. Returns whether the response belongs to a compaction.
    pub(super) fn compacted(
        &mut self,
        model_call: ModelCallId,
        response: &Response,
        out: &mut Vec<Action>,
    ) -> bool {
        let Phase::Compacting { model_call: awaited, through } = self.phase else { return false };
        if awaited != model_call {
            return false;
        }
        self.settle(&response.usage, out);
        if let Some(progress) = &mut self.progress {
            progress.usage += &response.usage;
        }
        let is_cut_off = response.finish_reason.reason == Finish::Length;
        if is_cut_off && self.retry_cut_off(out) {
            return true;
        }
        if let Some(problem) = summary_problem(response) {
            self.end_compaction(Some(problem), out);
            return true;
        }
        self.replace_with_summary(through, response, out);
        if is_cut_off {
            let message = "the output limit cut off the summary: its end is missing".to_owned();
            self.report_result(EventKind::Warning { message }, out);
        }
        if let Some(current) = self.running_compaction().filter(|current| through < current.through) {
            if !self.request_next_piece(current, out) {
                self.end_compaction(Some("a limit forbids the request for the rest"), out);
            }
            return true;
        }
        self.note_gain(out);
        let is_too_long = |current: CurrentCompaction| {
            current.is_after_overflow && self.size.history_chars() >= current.before
        };
        if self.progress.is_some() && self.running_compaction().is_some_and(is_too_long) {
            self.end_without_room(out);
        } else {
            self.end_compaction(None, out);
        }
        true
    }

    /// Replaces the first `through` entries with the summary in this response.
    fn replace_with_summary(&mut self, through: usize, response: &Response, out: &mut Vec<Action>) {
        self.measure_system();
        let (before, from) = (self.size.history_chars(), self.compactions.entries());
        let compaction = self.compaction_of(through, response.text());
        self.set_view(compaction);
        let end = EventKind::CompactionEnd {
            through: through as u64,
            from: from as u64,
            tokens_before: self.size.tokens_with(before),
            tokens_after: self.size.tokens_with(self.size.history_chars()),
            usage: response.usage.clone(),
        };
        self.report_result(end, out);
        if let Some(current) = &mut self.compactions.current {
            current.is_partial = true;
        }
    }

    /// Requests a summary that the output limit cut off again, once, for half as much of the conversation, as text.
    /// Returns whether it did.
    fn retry_cut_off(&mut self, out: &mut Vec<Action>) -> bool {
        self.measure_system();
        let Some(mut current) = self.running_compaction().filter(|current| !current.is_cut_off) else {
            return false;
        };
        let size = current.room.unwrap_or_else(|| self.size.estimated_tokens().min(current.window));
        if size / 2 < LEAST_ROOM {
            return false;
        }
        current.is_cut_off = true;
        current.room = Some(size / 2);
        let mut request = Vec::new();
        if !self.request_next_piece(current, &mut request) {
            return false;
        }
        let message = "the output limit cut off the summary; it is requested again, for a smaller part of the conversation";
        self.report_result(EventKind::Warning { message: message.to_owned() }, out);
        out.append(&mut request);
        true
    }

    /// Records the size that a compaction saved.
    fn note_gain(&mut self, out: &mut Vec<Action>) {
        let Some(current) = self.compactions.current else { return };
        let gained = current.before.saturating_sub(self.size.history_chars());
        let window = self.context.as_ref().map_or(0, |context| context.context_window);
        let least = window.saturating_mul(CHARS_PER_TOKEN) / LEAST_GAIN;
        self.compactions.not_before =
            if gained < least { self.size.history_chars().saturating_add(least) } else { 0 };
        if current.is_manual && gained == 0 {
            let message = "the compaction gained nothing: the summary and the user's messages are as long as the text that they replace";
            self.report_result(EventKind::Warning { message: message.to_owned() }, out);
        }
    }

    /// Returns why the current model call writes a summary, if it does.
    pub(crate) fn compaction_trigger(&self) -> Option<CompactionTrigger> {
        let is_manual = self.compactions.current.is_some_and(|current| current.is_manual);
        let trigger = if is_manual { CompactionTrigger::Manual } else { CompactionTrigger::Automatic };
        matches!(self.phase, Phase::Compacting { .. }).then_some(trigger)
    }

    /// Returns whether a compaction precedes the next model call.
    pub(crate) fn is_compaction_requested(&self) -> bool {
        self.compactions.requested
    }

    /// Returns whether the current model call continues a compaction.
    pub(crate) fn continues_compaction(&self) -> bool {
        self.compactions.current.is_some_and(|current| current.requests > 1)
    }

    /// Continues without a summary after a failed call. Returns whether the call belongs to a compaction.
    pub(super) fn compaction_failed(
        &mut self,
        model_call: ModelCallId,
        error: &ErrorInfo,
        out: &mut Vec<Action>,
    ) -> bool {
        if !matches!(self.phase, Phase::Compacting { model_call: awaited, .. } if awaited == model_call) {
            return false;
        }
        self.release_failed(error);
        if !self.retry_in_pieces(error, out) {
            self.end_compaction(Some(&error.to_string()), out);
        }
        true
    }

    /// Continues after the process that waited for a summary is gone.
    pub(super) fn compaction_lost(&mut self, out: &mut Vec<Action>) {
        // The provider refuses the request again, and the compaction follows then.
        self.compactions.after_refusal = false;
        self.end_compaction(None, out);
    }

    /// Continues after a compaction that succeeded, failed with this `problem`, or was lost with its process.
    pub(super) fn end_compaction(&mut self, problem: Option<&str>, out: &mut Vec<Action>) {
        let is_partial = self.compactions.current.take().is_some_and(|current| current.is_partial);
        // Between runs, the limit ends only the compaction.
        let lacks_budget = self.progress.is_none() && matches!(self.ending, Some(Ending::Budget(_)));
        if lacks_budget {
            self.ending = None;
        }
        if let Some(problem) = problem.filter(|_| self.ending.is_none()) {
            let shortage = "too little of the budget is left for another attempt";
            let problem = if lacks_budget { shortage } else { problem };
            self.warn_of_failure(is_partial, problem, out);
            // The same attempt would fail again at once.
            let window = self.context.as_ref().map_or(0, |context| context.context_window);
            self.compactions.not_before =
                self.size.history_chars().saturating_add(window * CHARS_PER_TOKEN / LEAST_GAIN);
        }
        self.phase = Phase::Resting;
        if self.progress.is_none() {
            self.state = SessionState::Idle;
        }
        if self.ending.is_some() {
            self.conclude(out);
        } else if self.progress.is_some() {
            self.proceed(out);
        }
    }

    /// Replaces the beginning of the conversation with a compaction from now on.
    pub(super) fn set_view(&mut self, compaction: Compaction) {
        let tail = self.history.get(compaction.through..).unwrap_or_default();
        let tail: u64 = tail.iter().map(Turn::chars).sum();
        self.size.set_history(tail.saturating_add(compaction.chars()));
        // In every fork and rewind, it replaces an earlier compaction of the same history.
        self.compactions.made.retain(|made| made.made_at < compaction.made_at);
        self.compactions.made.push(compaction);
        self.prefix.reset();
        self.compactions.reported = 0;
    }

    /// Returns the first entry of the kept tail: the earliest entry from which the history has at most this many
    /// characters, else the last possible entry. `None` if nothing would be gained.
    fn cut(&self, tail_chars: u64) -> Option<usize> {
        let already = self.compactions.entries();
        let mut size = 0_u64;
        let mut cut = None;
        for (index, turn) in self.history.iter().enumerate().skip(already + 1).rev() {
            size = size.saturating_add(turn.chars());
            if !is_border(turn) {
                continue;
            }
            if cut.is_some() && size > tail_chars {
                break;
            }
            cut = Some(index);
        }
        cut
    }

    /// Returns whether no limit forbids another call.
    fn may_call_model(&self) -> bool {
        let is_below = |limit: u64, count: u64| limit == 0 || count < limit;
        let rounds = self.progress.as_ref().map_or(0, |progress| progress.rounds);
        self.limit_on_model_call().is_none()
            && is_below(self.limits.max_turns, self.turns)
            && is_below(self.limits.max_tool_rounds_per_input, rounds)
    }

    /// Measures the system prompt, whose size a stored machine does not contain.
    fn measure_system(&mut self) {
        if self.prefix.is_empty() {
            self.messages();
        }
    }

    /// Reports the share of the context window that the next request uses, if it has changed by a tenth.
    pub(super) fn report_context_use(&mut self, context: &TurnContext, out: &mut Vec<Action>) {
        let (window, used) = (context.context_window, self.size.estimated_tokens());
        let step = used.saturating_mul(100) / window.max(1) / USAGE_STEP;
        if step == self.compactions.reported {
            return;
        }
        self.compactions.reported = step;
        let (tools, system) = (self.size.tool_tokens(), self.size.system_tokens());
        let history = used.saturating_sub(system).saturating_sub(tools);
        out.push(Action::emit(EventKind::ContextUsage { window, used, system, tools, history }));
    }
}

/// Returns why a response cannot be used as a summary, if it cannot.
fn summary_problem(response: &Response) -> Option<&'static str> {
    let is_blank = response.text().trim().is_empty();
    match response.finish_reason.reason {
        Finish::ContentFilter => Some("the model or a content filter refused to write a summary"),
        Finish::Error => Some("the model stopped in the middle of the summary"),
        Finish::Length if is_blank => Some("the output limit cut off the summary before its text"),
        Finish::Stop | Finish::Length | Finish::ToolCalls | Finish::Other => {
            is_blank.then_some("the model wrote no summary")
        }
    }
}

/// Returns the part of the context window that a request may take, in tokens.
fn usable_window(context: &TurnContext) -> u64 {
    context.context_window.saturating_sub(context.max_tokens.unwrap_or(0)).max(1)
}
