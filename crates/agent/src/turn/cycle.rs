//! From an input to its end: requests, answers and limits (loop specification, section 2.5).

use std::time::Duration;

use pintle_llm::{
    ContentPart, Error, ErrorInfo, ErrorKind, Finish, HistoryItem, Message, MessageList, PrefixChain,
    ReadableDuration, Request, Response, Segment, ToolCall, ToolChoice, Usage, Warning,
};
use serde::{Deserialize, Serialize};

use super::action::{Action, OutcomeStatus};
use super::ending::Ending;
use super::input::{SegmentKind, TurnContext};
use super::round::{NotRun, Round};
use super::{Machine, Phase, Spent, Turn};
use crate::event::EventKind;
use crate::id::{LoadId, ModelCallId, RunId};
use crate::timestamp::Timestamp;

/// A share of the window above which the host is warned.
const WARN_ABOVE: f64 = 0.8;

/// Characters per token, roughly (loop specification, section 5.5).
const CHARS_PER_TOKEN: u64 = 4;

/// The provider's word for "call again and I go on" (Anthropic, `stop_reason`).
const PAUSED: &str = "pause_turn";

/// What a run has come to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) run: RunId,
    /// When it began.
    pub(super) since: Timestamp,
    /// The limit on its time that a timer runs for.
    pub(super) timed: Option<Duration>,
    /// Rounds of tool calls for the input that is being handled.
    pub(super) rounds: u64,
    pub(super) text: String,
    pub(super) usage: Usage,
    pub(super) model_calls: u64,
    pub(super) tool_calls: u64,
}

impl Progress {
    pub(super) fn new(run: RunId, since: Timestamp) -> Self {
        Self {
            run,
            since,
            timed: None,
            rounds: 0,
            text: String::new(),
            usage: Usage::default(),
            model_calls: 0,
            tool_calls: 0,
        }
    }
}

impl Machine {
    pub(super) fn begin_input(&mut self, text: String, out: &mut Vec<Action>) {
        if let Some(progress) = &mut self.progress {
            progress.rounds = 0;
        }
        self.record(Turn::user(text.clone(), self.now));
        out.push(Action::emit(EventKind::UserInput { content: text }));
        self.drain_steering(out);
        self.proceed(out);
    }

    /// Goes on with the next request, unless a limit is met or the prompt's facts are missing.
    pub(super) fn proceed(&mut self, out: &mut Vec<Action>) {
        if self.stopped_by_limit(out) {
            return;
        }
        // One that is not current any more is kept, since the next is compared with it.
        let current = if self.context_is_current { self.context.take() } else { None };
        let Some(context) = current else {
            self.load_context(out);
            return;
        };
        if let Some(error) = self.unpriced(&context) {
            self.context = Some(context);
            self.fail(error, out);
            return;
        }
        let request = self.request(&context);
        self.warn_of_context(&context, out);
        let is_full = self.stopped_by_window(&context, out);
        self.context = Some(context);
        if is_full {
            return;
        }
        self.announce(&request, out);
        self.model_calls += 1;
        let model_call = ModelCallId(self.model_calls);
        if let Some(progress) = &mut self.progress {
            progress.model_calls += 1;
        }
        self.phase = Phase::AwaitingModel(model_call);
        out.push(Action::CallModel { model_call, request: Box::new(request) });
    }

    fn stopped_by_limit(&mut self, out: &mut Vec<Action>) -> bool {
        let over_budget = self.over_budget.take().or_else(|| self.met_before_model());
        let rounds = self.progress.as_ref().map_or(0, |progress| progress.rounds);
        let max_rounds = self.limits.max_tool_rounds_per_input;
        let max_turns = self.limits.max_turns;
        if max_rounds > 0 && rounds >= max_rounds {
            out.push(Action::emit(EventKind::TurnLimit { round: Some(rounds), total_turns: None }));
            self.finish_input(OutcomeStatus::RoundLimit, out);
            true
        } else if max_turns > 0 && self.turns >= max_turns {
            out.push(Action::emit(EventKind::TurnLimit { round: None, total_turns: Some(self.turns) }));
            self.finish_input(OutcomeStatus::TurnLimit, out);
            true
        } else if let Some(met) = over_budget {
            self.stop_children(out);
            out.push(met.event());
            self.finish_input(OutcomeStatus::Budget, out);
            true
        } else {
            false
        }
    }

    fn load_context(&mut self, out: &mut Vec<Action>) {
        self.loads += 1;
        let load = LoadId(self.loads);
        self.phase = Phase::LoadingContext { load, stale: false };
        out.push(Action::LoadContext { load });
    }

    pub(super) fn context_loaded(&mut self, loaded: LoadId, mut context: TurnContext, out: &mut Vec<Action>) {
        let Phase::LoadingContext { load, stale } = self.phase else { return };
        if load != loaded {
            return;
        }
        if stale {
            self.load_context(out);
            return;
        }
        self.chain_goes_on = false;
        // An unchanged prompt keeps its item, and with it what adapters made of it.
        let prompt = system_message(&mut context);
        if self.system.as_ref().is_none_or(|item| item.text() != prompt.text()) {
            self.system = Some(prompt.into());
            self.messages = MessageList::default();
            self.counted_prompt = None;
        }
        let of_model = |context: &TurnContext| (context.provider.clone(), context.model.clone());
        if self.context.as_ref().map(of_model) != Some(of_model(&context)) {
            // Another model may refuse what this one has accepted, and counts in its own way.
            self.accepted = 0;
            self.counted_prompt = None;
        }
        let before = self.context.as_ref().map(|context| &context.project);
        if before.map_or(!context.project.is_empty(), |before| *before != context.project) {
            out.push(Action::emit(EventKind::ProjectLoaded(context.project.clone())));
        }
        self.context = Some(context);
        self.context_is_current = true;
        self.context_warned = false;
        self.proceed(out);
    }

    pub(super) fn context_failed(&mut self, failed: LoadId, error: ErrorInfo, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::LoadingContext { load, .. } if load == failed) {
            self.fail(error, out);
        }
    }

    fn request(&mut self, context: &TurnContext) -> Request {
        let none: [HistoryItem; 0] = [];
        let mut request = Request::new(context.model.clone(), none).with_provider(context.provider.clone());
        request.messages = self.messages();
        request.tools.clone_from(&context.tools);
        request.tool_choice = (!context.tools.is_empty()).then_some(ToolChoice::Auto);
        request.reasoning_effort.clone_from(&self.reasoning_effort);
        request.max_tokens = context.max_tokens;
        request.provider_options.clone_from(&context.provider_options);
        request
    }

    /// The system prompt and the history. The list grows with the history, so that what was made of its beginning for
    /// earlier requests stays with it.
    fn messages(&mut self) -> MessageList {
        if self.messages.is_empty() {
            self.messages.extend(self.system.clone());
            let parts = self.system.iter().flat_map(|item| &item.content).filter_map(ContentPart::as_text);
            self.system_chars = parts.map(|text| text.chars().count() as u64).sum();
        }
        let known = self.messages.len() - usize::from(self.system.is_some());
        let new = self.history.get(known..).unwrap_or_default();
        self.messages.extend(new.iter().map(|turn| turn.item.clone()));
        self.messages.clone()
    }

    fn announce(&mut self, request: &Request, out: &mut Vec<Action>) {
        let moved = self.chain(request);
        if let Some(fingerprint) = self.last_chain.as_ref().and_then(PrefixChain::last) {
            let messages = request.messages.len();
            out.push(Action::emit(EventKind::RequestPrepared { fingerprint, messages, moved }));
        }
    }

    /// Makes the chain that of this request, and gives what moved since the one before. Only what is new is chained
    /// where nothing else can have changed.
    fn chain(&mut self, request: &Request) -> Option<Segment> {
        if self.chain_goes_on
            && let Some(last) = &mut self.last_chain
            && let Some(new) = request.messages.get(last.messages()..)
            && last.extend(new)
        {
            return None;
        }
        let chain = request.prefix_chain();
        let moved = self.last_chain.as_ref().and_then(|last| last.first_moved(&chain));
        self.last_chain = Some(chain);
        self.chain_goes_on = true;
        moved
    }

    /// Warns once when the history has grown beyond the share, and again only after it was smaller.
    fn warn_of_context(&mut self, context: &TurnContext, out: &mut Vec<Action>) {
        let tokens = self.chars.saturating_add(self.system_chars) / CHARS_PER_TOKEN;
        #[expect(clippy::cast_precision_loss, reason = "a percentage for a person")]
        let share = tokens as f64 / context.context_window.max(1) as f64;
        if share <= WARN_ABOVE {
            self.context_warned = false;
        } else if !self.context_warned {
            self.context_warned = true;
            let message = format!("Context usage at ~{:.0}% of context window", share * 100.0);
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    fn awaits(&self, model_call: ModelCallId) -> bool {
        matches!(self.phase, Phase::AwaitingModel(current) if current == model_call)
    }

    pub(super) fn segment_opened(&self, kind: SegmentKind, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::AwaitingModel(_)) {
            out.push(Action::emit(match kind {
                SegmentKind::Text => EventKind::AssistantTextStart {},
                SegmentKind::Reasoning => EventKind::ReasoningStart {},
            }));
        }
    }

    pub(super) fn segment_closed(
        &self,
        kind: SegmentKind,
        text: String,
        interrupted: bool,
        out: &mut Vec<Action>,
    ) {
        if matches!(self.phase, Phase::AwaitingModel(_)) {
            out.push(Action::emit(match kind {
                SegmentKind::Text => EventKind::AssistantTextEnd { text, interrupted },
                SegmentKind::Reasoning => EventKind::ReasoningEnd { text, interrupted },
            }));
        }
    }

    pub(super) fn model_retrying(
        &self,
        model_call: ModelCallId,
        attempt: u32,
        delay: Duration,
        error: &ErrorInfo,
        out: &mut Vec<Action>,
    ) {
        if self.awaits(model_call) {
            let delay = ReadableDuration(delay);
            let message = format!("model call failed, retry {attempt} in {delay}: {error}");
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    pub(super) fn replied(&mut self, model_call: ModelCallId, mut response: Response, out: &mut Vec<Action>) {
        if !self.awaits(model_call) {
            return;
        }
        self.accepted = self.history.len();
        self.make_call_ids_unique(&mut response.message, out);
        let calls: Vec<ToolCall> = response.tool_calls().cloned().collect();
        self.record_answer(&response, out);
        if self.ending.is_some() {
            self.settle_unrun(calls, NotRun::Stopped, out);
            self.conclude(out);
            return;
        }
        match response.finish_reason.reason {
            Finish::Length if !calls.is_empty() => {
                self.look_for_loops(&calls);
                self.settle_unrun(calls, NotRun::CutOff, out);
                self.next_round(out);
            }
            Finish::ContentFilter => {
                self.settle_unrun(calls, NotRun::Blocked, out);
                self.finish_input(OutcomeStatus::Refused, out);
            }
            Finish::Error => {
                self.settle_unrun(calls, NotRun::CutOff, out);
                let error = Error::new(ErrorKind::Stream, "the model stopped in the middle of its answer");
                self.fail(error.info().clone(), out);
            }
            // Where nothing has come, the request would only be made again as it was.
            Finish::Other if is_pause(&response) && calls.is_empty() && !response.message.is_empty() => {
                self.proceed(out);
            }
            Finish::Stop | Finish::Length | Finish::ToolCalls | Finish::Other => {
                if calls.is_empty() {
                    self.answered(&response, out)
                } else {
                    self.begin_round(model_call, calls, out)
                }
            }
        }
    }

    fn record_answer(&mut self, response: &Response, out: &mut Vec<Action>) {
        self.turns += 1;
        let pricing = self.context.as_ref().and_then(|context| context.pricing.as_deref());
        self.spent += Spent::of_answer(&response.usage, pricing);
        self.note_prompt_size(response.usage.input_tokens);
        if let Some(progress) = &mut self.progress {
            progress.text = response.text();
            progress.usage += &response.usage;
        }
        // An answer without anything in it cannot be sent back; no provider accepts it.
        if !response.message.is_empty() {
            let mut turn = Turn::assistant(response.message.clone(), self.now);
            turn.usage = Some(Box::new(response.usage.clone()));
            turn.response_id = (!response.id.is_empty()).then(|| response.id.clone());
            self.record(turn);
        }
        out.push(Action::emit(EventKind::ModelResponse {
            response_id: response.id.clone(),
            model: response.model.clone(),
            finish_reason: response.finish_reason.clone(),
            usage: response.usage.clone(),
        }));
        // Other warnings are about what the request asked for, and would come with every answer.
        let replaced = |warning: &&Warning| warning.code.as_deref() == Some(Warning::REPLACED_CHARACTERS);
        for warning in response.warnings.iter().filter(replaced) {
            out.push(Action::emit(EventKind::Warning { message: warning.message.clone() }));
        }
    }

    /// The model answered without calling tools: the input is handled, unless someone steered meanwhile.
    fn answered(&mut self, response: &Response, out: &mut Vec<Action>) {
        if response.finish_reason.reason == Finish::Length {
            let message = "the answer was cut off by the output limit".to_owned();
            out.push(Action::emit(EventKind::Warning { message }));
        }
        if !self.steering.is_empty() {
            self.drain_steering(out);
            self.proceed(out);
            return;
        }
        let asks = response.text().trim_end().ends_with('?');
        let status = if asks { OutcomeStatus::AwaitingInput } else { OutcomeStatus::Completed };
        self.finish_input(status, out);
    }

    /// A tool has put a question to the user: the next input answers it.
    pub(super) fn asked(&mut self, question: String, out: &mut Vec<Action>) {
        if let Some(progress) = &mut self.progress {
            progress.text = question;
        }
        self.finish_input(OutcomeStatus::AwaitingInput, out);
    }

    fn begin_round(&mut self, model_call: ModelCallId, calls: Vec<ToolCall>, out: &mut Vec<Action>) {
        let parallel = self.context.as_ref().is_some_and(|context| context.parallel_tool_calls);
        let at_once = if parallel { self.limits.max_parallel_tools.max(1) } else { 1 };
        if let Some(progress) = &mut self.progress {
            progress.tool_calls += u64::try_from(calls.len()).unwrap_or(u64::MAX);
        }
        self.look_for_loops(&calls);
        let round = Round::new(model_call, calls, at_once);
        if self.met_before_tool().is_none() {
            round.prepare_all(out);
            self.phase = Phase::RunningTools(round);
        } else {
            self.phase = Phase::RunningTools(round);
            self.hold_calls(out);
            self.settle_round(out);
        }
    }

    fn look_for_loops(&mut self, calls: &[ToolCall]) {
        for call in calls {
            self.calls.push(call, self.limits.loop_detection_window);
        }
    }

    /// The results are in the history: steering, loop detection, and on to the next request.
    pub(super) fn next_round(&mut self, out: &mut Vec<Action>) {
        if let Some(progress) = &mut self.progress {
            progress.rounds += 1;
        }
        self.drain_steering(out);
        let window = self.limits.loop_detection_window;
        if self.limits.enable_loop_detection && self.calls.repeats(window) {
            self.calls.clear();
            let message = format!(
                "Loop detected: the last {window} tool calls follow a repeating pattern. Try a different approach."
            );
            self.record(Turn::steering(message.clone(), self.now));
            out.push(Action::emit(EventKind::LoopDetection { message }));
        }
        self.proceed(out);
    }

    pub(super) fn model_failed(
        &mut self,
        model_call: ModelCallId,
        error: ErrorInfo,
        partial: String,
        out: &mut Vec<Action>,
    ) {
        if !self.awaits(model_call) {
            return;
        }
        if self.ending.is_some() {
            // The user has read this much, so the model should know that it said it.
            if !partial.trim().is_empty() {
                self.record(Turn::interrupted(partial, self.now));
            }
            self.conclude(out);
            return;
        }
        if self.repair_after(&error, out) {
            self.proceed(out);
            return;
        }
        if error.kind == ErrorKind::ContextLength {
            let message = "the conversation exceeds the model's context window".to_owned();
            out.push(Action::emit(EventKind::Warning { message }));
        }
        self.fail(error, out);
    }

    /// Ends the run with an error; the session goes on unless no later input could fare better.
    pub(super) fn fail(&mut self, error: ErrorInfo, out: &mut Vec<Action>) {
        let hopeless = matches!(
            error.kind,
            ErrorKind::Authentication | ErrorKind::AccessDenied | ErrorKind::Configuration
        );
        out.push(Action::emit(EventKind::Error { error: error.clone() }));
        if hopeless {
            self.ending = Some(Ending::Failure(error));
            self.clean_up(out);
        } else {
            self.rest(OutcomeStatus::Failed, Some(error), out);
        }
    }
}

fn is_pause(response: &Response) -> bool {
    response.finish_reason.raw.as_deref() == Some(PAUSED)
}

/// The prompt in one part, or in two with the point between them where a provider's cache may end. It is taken out of
/// the context, so that a machine holds it once.
pub(super) fn system_message(context: &mut TurnContext) -> Message {
    let prompt = std::mem::take(&mut context.system_prompt);
    let prompt = prompt.as_str();
    match context.stable_prompt.and_then(|end| prompt.split_at_checked(end)) {
        Some((stable, rest)) if !stable.is_empty() && !rest.is_empty() => {
            Message::system(stable).with_part(ContentPart::text(rest))
        }
        Some(_) | None => Message::system(prompt),
    }
}
