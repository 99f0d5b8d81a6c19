//! Compaction: a summary in place of the beginning of the conversation (design of the layers above, section 2).
//!
//! The machine asks the model for the summary with the request that it would have sent, and one more message, so that the
//! provider's cache serves the beginning. The summary then stands for all entries up to a cut, before which no call is
//! open; requests continue with the rest, and the history keeps everything.

use pintle_llm::{ErrorInfo, ErrorKind, HistoryItem, Message, MessageList, Response, ToolChoice};
use serde::{Deserialize, Serialize};

use super::ending::Ending;
use super::window::CHARS_PER_TOKEN;
use super::{Machine, Phase};
use crate::protocol::{
    Action, Compaction, CompactionTrigger, EventKind, ModelCallId, SessionState, TurnContext, TurnKind,
};

/// Share of the size that calls for a compaction that the kept tail takes at most: one quarter.
const TAIL_SHARE: u64 = 4;

/// A compaction that gains less than this part of the window is not tried again until the history has grown by as much.
const LEAST_GAIN: u64 = 10;

/// Share of the context window, in percent, above which a refusal without a known reason counts as a prompt that is too
/// long.
const ASSUMED_ABOVE: u64 = 90;

/// Percent by which the use of the context has to change before it is reported again.
const USAGE_STEP: u64 = 10;

const INSTRUCTION: &str = "\
This conversation will be shortened: your summary takes the place of everything above, except for the newest messages. \
Write it so that you can go on with the work from the summary alone. It has to contain:\n\
* the task, and every instruction of the user that still holds, in the user's words where the words matter;\n\
* the plan in its newest state: done, under way, still to do;\n\
* each file that was read or changed, by its path, with what matters of its content or of the change;\n\
* commands that were run, with those results that still matter;\n\
* decisions with their reasons, and what was tried without success;\n\
* the next step.\n\
Call no tools. Answer with the summary and nothing else.";

const INTRODUCTION: &str = "Summary of the conversation so far, which it replaces:\n\n";

/// State of compaction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Compactions {
    /// All of this session, the newest last.
    made: Vec<Compaction>,
    /// Whether the embedding application has asked for one.
    requested: bool,
    /// Trigger of the one in progress. Only hooks read it, so it is not part of the recorded state.
    #[serde(skip)]
    trigger: Option<CompactionTrigger>,
    /// Size of the history, in characters, below which none is tried again.
    not_before: u64,
    /// Whether the provider refused the request that is being prepared as too long, and it was compacted for that.
    after_refusal: bool,
    /// Share of the context in use that was reported last, in steps.
    reported: u64,
}

impl Compactions {
    pub(super) fn new(made: Vec<Compaction>) -> Self {
        Self { made, ..Self::default() }
    }

    pub(super) fn newest(&self) -> Option<&Compaction> {
        self.made.last()
    }

    /// Returns those that a history of this length has.
    pub(super) fn of_history(&self, turns: usize) -> Vec<Compaction> {
        self.made.iter().filter(|compaction| compaction.made_at <= turns).cloned().collect()
    }
}

/// Returns the message that stands for the beginning of the conversation.
pub(super) fn summary_item(compaction: &Compaction) -> HistoryItem {
    Message::user(format!("{INTRODUCTION}{}", compaction.summary)).into()
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

    /// Takes a request of the embedding application: at once if nothing runs, else before the next model call.
    pub(super) fn compact(&mut self, out: &mut Vec<Action>) {
        if self.state == SessionState::Closed {
            return;
        }
        self.compactions.requested = true;
        let is_free = matches!(self.phase, Phase::Resting) && self.ending.is_none();
        if is_free && self.context_is_current && self.may_call_model() {
            let context = self.context.take();
            if let Some(context) = &context {
                self.compact_before_request(context, out);
            }
            self.context = context;
        }
    }

    /// Starts a compaction if one is due before the next request. Returns whether it did.
    pub(super) fn compact_before_request(&mut self, context: &TurnContext, out: &mut Vec<Action>) -> bool {
        let is_requested = std::mem::take(&mut self.compactions.requested);
        self.measure_system();
        let percent = self.limits.compaction.at_percent.map_or(100, u64::from);
        let threshold = usable_window(context).saturating_mul(percent) / 100;
        let is_due = self.limits.compaction.at_percent.is_some()
            && self.estimated_tokens() >= threshold
            && self.chars >= self.compactions.not_before;
        if !is_requested && !is_due {
            return false;
        }
        // On request as much as possible goes; otherwise the newest part is worth its place.
        let tail = if is_requested { 0 } else { threshold * CHARS_PER_TOKEN / TAIL_SHARE };
        let Some(through) = self.cut(tail) else { return false };
        self.compactions.trigger = is_requested.then_some(CompactionTrigger::Manual);
        self.start_compaction(through, context, out)
    }

    /// Starts a compaction with the shortest tail, once, after a provider refused a request as too long. Returns whether it
    /// did.
    pub(super) fn compact_after_refusal(&mut self, error: &ErrorInfo, out: &mut Vec<Action>) -> bool {
        self.measure_system();
        let assumed = self.assumed_overflow(error);
        let may = (error.kind == ErrorKind::ContextLength || assumed.is_some())
            && self.limits.compaction.at_percent.is_some()
            && !self.compactions.after_refusal
            && self.may_call_model();
        let Some(through) = may.then(|| self.cut(0)).flatten() else { return false };
        let Some(context) = self.context.take() else { return false };
        self.compactions.after_refusal = true;
        self.compactions.trigger = None;
        if let Some(percent) = assumed {
            if let Some(progress) = &mut self.progress {
                progress.assumed_overflow = true;
            }
            let message = format!(
                "the provider refused a request that takes ~{percent}% of the context window ({error}); it may be too long, so the conversation is compacted once"
            );
            out.push(Action::emit(EventKind::Warning { message }));
        }
        let started = self.start_compaction(through, &context, out);
        self.context = Some(context);
        started
    }

    /// Returns the share of the context window, in percent, of a request that was refused without a known reason, if that
    /// is probably the reason. Once per run.
    fn assumed_overflow(&self, error: &ErrorInfo) -> Option<u64> {
        let is_unknown = error.kind == ErrorKind::InvalidRequest
            && !error.refused_reasoning
            && matches!(error.status, Some(400 | 422));
        let is_first = self.progress.as_ref().is_some_and(|progress| !progress.assumed_overflow);
        let window = self.context.as_ref().map_or(0, |context| context.context_window);
        let used = self.estimated_tokens().saturating_mul(100);
        let is_nearly_full = used > window.saturating_mul(ASSUMED_ABOVE);
        (is_unknown && is_first && is_nearly_full).then(|| used / window.max(1))
    }

    /// Notes that a request was answered.
    pub(super) fn compaction_held(&mut self) {
        self.compactions.after_refusal = false;
    }

    /// Asks for the summary, unless the budget has too little left for it. Returns whether it did.
    fn start_compaction(&mut self, through: usize, context: &TurnContext, out: &mut Vec<Action>) -> bool {
        let mut request = self.request(context);
        // Media of the part that is cut off need not be sent once more, but the beginning has to stay as it was.
        request.messages.extend([HistoryItem::from(Message::user(INSTRUCTION))]);
        request.tool_choice = (!context.tools.is_empty()).then_some(ToolChoice::None);
        if let Some(model) = &self.limits.compaction.model {
            request.model.clone_from(model);
        }
        if self.reserve(context, &mut request).is_err() {
            return false;
        }
        self.model_calls += 1;
        let model_call = ModelCallId(self.model_calls);
        if let Some(progress) = &mut self.progress {
            progress.model_calls += 1;
        }
        self.state = SessionState::Processing;
        self.phase = Phase::Compacting { model_call, through };
        out.push(Action::emit(EventKind::CompactionStart { through: through as u64 }));
        // It is no part of the conversation, so the next request is compared with the one before.
        let chain = request.prefix_chain();
        if let Some(fingerprint) = chain.last() {
            let moved = self.last_chain.as_ref().and_then(|last| last.first_moved(&chain));
            let messages = request.messages.len();
            out.push(Action::emit(EventKind::RequestPrepared { fingerprint, messages, moved }));
        }
        let reserved = self.reserved().map(Box::new);
        out.push(Action::CallModel { model_call, request: Box::new(request), reserved });
        true
    }

    /// Takes the summary. Returns whether the response belongs to a compaction.
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
        let summary = response.text();
        if summary.trim().is_empty() {
            self.end_compaction(Some("the model wrote no summary"), out);
            return true;
        }
        self.measure_system();
        let before = self.chars;
        let compaction = Compaction::new(through, self.history.len(), summary);
        self.set_view(compaction);
        let gained = before.saturating_sub(self.chars);
        let least =
            self.context.as_ref().map_or(0, |context| context.context_window * CHARS_PER_TOKEN / LEAST_GAIN);
        self.compactions.not_before = if gained < least { self.chars.saturating_add(least) } else { 0 };
        out.push(Action::emit(EventKind::CompactionEnd {
            through: through as u64,
            tokens_before: self.tokens_with(before),
            tokens_after: self.tokens_with(self.chars),
            usage: response.usage.clone(),
        }));
        self.end_compaction(None, out);
        true
    }

    /// Returns why the current model call writes a summary, if it does.
    pub(crate) fn compaction_trigger(&self) -> Option<CompactionTrigger> {
        let trigger = self.compactions.trigger.unwrap_or(CompactionTrigger::Automatic);
        matches!(self.phase, Phase::Compacting { .. }).then_some(trigger)
    }

    /// Goes on without a summary after a failed call. Returns whether the call belongs to a compaction.
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
        self.end_compaction(Some(&error.to_string()), out);
        true
    }

    /// Goes on after a compaction that was made, failed for this `problem`, or is gone with its process.
    pub(super) fn end_compaction(&mut self, problem: Option<&str>, out: &mut Vec<Action>) {
        // Between runs, there is none that ends at the limit.
        let lacks_budget = self.progress.is_none() && matches!(self.ending, Some(Ending::Budget(_)));
        if lacks_budget {
            self.ending = None;
        }
        if let Some(problem) = problem.filter(|_| self.ending.is_none()) {
            let shortage = "too little of the budget is left for another attempt";
            let problem = if lacks_budget { shortage } else { problem };
            let message = format!("the conversation was not compacted: {problem}");
            out.push(Action::emit(EventKind::Warning { message }));
            // The same would only fail again at once.
            let window = self.context.as_ref().map_or(0, |context| context.context_window);
            self.compactions.not_before = self.chars.saturating_add(window * CHARS_PER_TOKEN / LEAST_GAIN);
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

    /// Shows the conversation through a compaction from now on.
    pub(super) fn set_view(&mut self, compaction: Compaction) {
        let tail = self.history.get(compaction.through..).unwrap_or_default();
        let tail: u64 = tail.iter().map(super::Turn::chars).sum();
        self.chars = tail.saturating_add(compaction.summary.chars().count() as u64);
        self.compactions.made.push(compaction);
        self.messages = MessageList::default();
        self.chain_is_current = false;
        self.counted_prompt = None;
        self.context_warned = false;
        self.compactions.reported = 0;
    }

    /// Returns the first entry of the tail that is kept: the earliest one from which on the history has at most this many
    /// characters, else the last possible one. `None` if nothing would be gained.
    fn cut(&self, tail_chars: u64) -> Option<usize> {
        let already = self.compactions.newest().map_or(0, |compaction| compaction.through);
        let mut size = 0_u64;
        let mut cut = None;
        for (index, turn) in self.history.iter().enumerate().skip(already + 1).rev() {
            size = size.saturating_add(turn.chars());
            // A result follows its call, so these begin where no call is open.
            let is_border = matches!(turn.kind, TurnKind::User | TurnKind::Assistant | TurnKind::Steering);
            if !is_border {
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
        let max_turns = self.limits.max_turns;
        self.limit_on_model_call().is_none() && (max_turns == 0 || self.turns < max_turns)
    }

    /// Makes the size of the system prompt known, which a stored machine does not hold.
    fn measure_system(&mut self) {
        if self.messages.is_empty() {
            self.messages();
        }
    }

    /// Reports how much of the context window the next request uses, when that has changed by a tenth.
    pub(super) fn report_context_use(&mut self, context: &TurnContext, out: &mut Vec<Action>) {
        let (window, used) = (context.context_window, self.estimated_tokens());
        let step = used.saturating_mul(100) / window.max(1) / USAGE_STEP;
        if step == self.compactions.reported {
            return;
        }
        self.compactions.reported = step;
        let tools = self.tool_chars / CHARS_PER_TOKEN;
        let system = self.system_chars / CHARS_PER_TOKEN;
        let history = used.saturating_sub(system).saturating_sub(tools);
        out.push(Action::emit(EventKind::ContextUsage { window, used, system, tools, history }));
    }
}

/// Returns the part of the context window that a request may take, in tokens.
fn usable_window(context: &TurnContext) -> u64 {
    context.context_window.saturating_sub(context.max_tokens.unwrap_or(0)).max(1)
}
