//! Handling of one input: requests, responses and limits (loop specification, section 2.5).

use std::time::Duration;

use pintle_llm::{
    ContentPart, Error, ErrorInfo, ErrorKind, Finish, HistoryItem, Message, MessageList, ReadableDuration,
    Request, Response, Retry, ToolCall, ToolChoice, Warning,
};

use super::budget::ReachedLimit;
use super::compaction::summary_item;
use super::ending::Ending;
use super::final_question::status_after;
use super::round::{NotRunReason, Round};
use super::{Machine, Phase};
use crate::protocol::{
    Action, EventKind, LoadId, ModelCallId, OutcomeStatus, SegmentKind, Turn, TurnContext, UserMessage,
};

/// Finish reasons after which the provider expects another request to continue (Anthropic, `stop_reason`).
const PAUSED: [&str; 2] = ["pause_turn", "compaction"];

impl Machine {
    pub(super) fn start_input(&mut self, message: UserMessage, out: &mut Vec<Action>) {
        self.denials.clear();
        self.begin_input(message, out);
        self.drain_steering(out);
        // An input that arrives during a compaction is sent after it.
        if !matches!(self.phase, Phase::Compacting { .. }) {
            self.proceed(out);
        }
    }

    /// Sends the next request, unless a limit is reached or the context has to be loaded first.
    pub(super) fn proceed(&mut self, out: &mut Vec<Action>) {
        if self.stopped_by_limit(out) {
            return;
        }
        // An outdated context is kept, since the next one is compared with it.
        let current = if self.context_is_current { self.context.take() } else { None };
        let Some(context) = current else {
            self.load_context(out);
            return;
        };
        if let Some(error) = self.unpriced(&context) {
            let asks = self.ask_for_price(&context.model, out);
            self.context = Some(context);
            if !asks {
                self.fail(error, out);
            }
            return;
        }
        if self.compact_before_request(&context, out) {
            self.context = Some(context);
            return;
        }
        let mut request = self.request(&context);
        self.report_context_use(&context, out);
        self.warn_of_context(&context, out);
        let is_full = self.stopped_by_window(&context, out);
        let reserved = if is_full { Ok(()) } else { self.reserve(&context, &mut request) };
        self.context = Some(context);
        if let Err(shortage) = reserved {
            if !self.ask_for_model_call(&shortage, out) {
                self.end_at_limit(shortage.limit, out);
            }
            return;
        }
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
        let reserved = self.reserved().map(Box::new);
        out.push(Action::CallModel { model_call, request: Box::new(request), reserved });
    }

    fn stopped_by_limit(&mut self, out: &mut Vec<Action>) -> bool {
        let over_budget = self.end_reasons.take_limit().or_else(|| self.limit_on_model_call());
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
        } else if let Some(reached) = over_budget {
            self.end_at_limit(reached, out);
            true
        } else {
            false
        }
    }

    /// Ends the input at a limit of the budget.
    fn end_at_limit(&mut self, reached: ReachedLimit, out: &mut Vec<Action>) {
        self.stop_children(out);
        out.push(self.reached(reached));
        self.finish_input(OutcomeStatus::Budget, out);
    }

    fn load_context(&mut self, out: &mut Vec<Action>) {
        self.loads += 1;
        let load = LoadId(self.loads);
        self.phase = Phase::LoadingContext { load, stale: false };
        out.push(Action::LoadContext { load });
    }

    pub(super) fn context_loaded(&mut self, loaded: LoadId, context: TurnContext, out: &mut Vec<Action>) {
        let Phase::LoadingContext { load, stale } = self.phase else { return };
        if load != loaded {
            return;
        }
        if stale {
            self.load_context(out);
            return;
        }
        self.take_context(context, out);
        self.proceed(out);
    }

    /// Sets the context of the next request.
    pub(super) fn take_context(&mut self, mut context: TurnContext, out: &mut Vec<Action>) {
        self.prefix.break_chain();
        // An unchanged prompt keeps its item, and with it the cached encodings.
        let prompt = system_message(&mut context);
        if self.system.as_ref().is_none_or(|item| item.text() != prompt.text()) {
            self.system = Some(prompt.into());
            self.prefix.reset();
            self.size.take_count();
        }
        let model_of = |context: &TurnContext| (context.provider.clone(), context.model.clone());
        if self.context.as_ref().map(model_of) != Some(model_of(&context)) {
            // Another model may refuse content that the previous one accepted, and counts tokens differently.
            self.accepted = 0;
            self.size.take_count();
        }
        let before = self.context.as_ref().map(|context| &context.project);
        if before.map_or(!context.project.is_empty(), |before| *before != context.project) {
            out.push(Action::emit(EventKind::ProjectLoaded(context.project.clone())));
        }
        self.size.set_tools(&context);
        self.context = Some(context);
        self.context_is_current = true;
    }

    pub(super) fn context_failed(&mut self, failed: LoadId, error: ErrorInfo, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::LoadingContext { load, .. } if load == failed) {
            self.fail(error, out);
        }
    }

    pub(super) fn request(&mut self, context: &TurnContext) -> Request {
        let none: [HistoryItem; 0] = [];
        let mut request = Request::new(context.model.clone(), none).with_provider(context.provider.clone());
        request.messages = self.messages();
        request.tools.clone_from(&context.tools);
        request.tool_choice = (!context.tools.is_empty()).then_some(ToolChoice::Auto);
        request.response_format = self.response_format(context);
        request.reasoning_effort.clone_from(self.next_effort());
        request.max_tokens = context.max_tokens;
        request.provider_options.clone_from(&context.provider_options);
        request
    }

    /// Returns the system prompt and the history.
    pub(super) fn messages(&mut self) -> MessageList {
        if self.prefix.is_empty() {
            let parts = self.system.iter().flat_map(|item| &item.content).filter_map(ContentPart::as_text);
            self.size.set_system(parts.map(|text| text.chars().count() as u64).sum());
        }
        let compaction = self.compactions.newest();
        let through = compaction.map_or(0, |compaction| compaction.through);
        let summary = compaction.map(|compaction| move || summary_item(compaction));
        self.prefix.extend(self.system.as_ref(), through, summary, &self.history)
    }

    fn announce(&mut self, request: &Request, out: &mut Vec<Action>) {
        let moved = self.prefix.update_chain(request);
        if let Some(fingerprint) = self.prefix.fingerprint() {
            let messages = request.messages.len();
            out.push(Action::emit(EventKind::RequestPrepared { fingerprint, messages, moved }));
        }
    }

    pub(super) fn awaits(&self, model_call: ModelCallId) -> bool {
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

    pub(super) fn arguments_opened(&self, call_id: String, tool_name: String, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::AwaitingModel(_)) {
            let call_kind = self.call_kind(&tool_name);
            out.push(Action::emit(EventKind::ToolCallArgumentsStart { call_id, tool_name, call_kind }));
        }
    }

    pub(super) fn arguments_closed(&self, call_id: String, interrupted: bool, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::AwaitingModel(_)) {
            out.push(Action::emit(EventKind::ToolCallArgumentsEnd { call_id, interrupted }));
        }
    }

    pub(super) fn model_retrying(
        &mut self,
        model_call: ModelCallId,
        attempt: u32,
        delay: Duration,
        error: &ErrorInfo,
        out: &mut Vec<Action>,
    ) {
        let compacts =
            matches!(self.phase, Phase::Compacting { model_call: current, .. } if current == model_call);
        if self.awaits(model_call) {
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            let delay = ReadableDuration(delay);
            let message = format!("model call failed, retry {attempt} in {delay}: {error}");
            out.push(Action::emit(EventKind::Warning { message }));
            out.push(Action::emit(EventKind::ModelRetrying { attempt, delay_ms, error: error.clone() }));
        } else if !compacts {
            return;
        }
        self.reserve_retry(error, out);
    }

    pub(super) fn replied(&mut self, model_call: ModelCallId, mut response: Response, out: &mut Vec<Action>) {
        if self.compacted(model_call, &response, out) || !self.awaits(model_call) {
            return;
        }
        self.allow_compaction_after_refusal();
        self.accepted = self.history.len();
        self.make_call_ids_unique(&mut response.message, out);
        let calls: Vec<ToolCall> = response.tool_calls().cloned().collect();
        self.record_response(&response, out);
        if self.ending.is_some() {
            self.settle_unrun(calls, NotRunReason::Stopped, out);
            self.conclude(out);
            return;
        }
        match response.finish_reason.reason {
            Finish::Length if !calls.is_empty() => {
                self.reset_response();
                self.track_unrun_for_loops(&calls);
                self.settle_unrun(calls, NotRunReason::CutOff, out);
                self.next_round(out);
            }
            Finish::ContentFilter => {
                self.settle_unrun(calls, NotRunReason::Blocked, out);
                self.finish_input(OutcomeStatus::Refused, out);
            }
            Finish::Error => {
                self.settle_unrun(calls, NotRunReason::CutOff, out);
                let error = Error::new(ErrorKind::Stream, "the model stopped in the middle of its response");
                self.fail(error.info().clone(), out);
            }
            // An empty response would only lead to the same request again.
            Finish::Other if is_pause(&response) && calls.is_empty() && !response.message.is_empty() => {
                self.proceed(out);
            }
            Finish::Stop | Finish::Length | Finish::ToolCalls | Finish::Other => {
                if calls.is_empty() {
                    self.finish_response(&response, out)
                } else {
                    self.reset_response();
                    self.start_round(model_call, calls, out)
                }
            }
        }
    }

    pub(super) fn record_response(&mut self, response: &Response, out: &mut Vec<Action>) {
        self.turns += 1;
        self.settle(&response.usage, out);
        self.size.set_count(response.usage.input_tokens, self.history.len());
        if let Some(progress) = &mut self.progress {
            progress.text = progress.response.with_beginning(response.text());
            progress.usage += &response.usage;
        }
        // Without text or calls, a message cannot be sent back: no provider accepts an empty message, or reasoning
        // alone.
        let message = &response.message;
        if !message.is_empty() && !message.content.iter().all(ContentPart::is_reasoning) {
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
        // Other warnings are about the request and would be repeated with each response.
        let replaced = |warning: &&Warning| warning.code.as_deref() == Some(Warning::REPLACED_CHARACTERS);
        for warning in response.warnings.iter().filter(replaced) {
            out.push(Action::emit(EventKind::Warning { message: warning.message.clone() }));
        }
    }

    /// Ends the input after a response without tool calls, unless steering messages are waiting.
    fn finish_response(&mut self, response: &Response, out: &mut Vec<Action>) {
        if let Some(reason) = self.end_reasons.take_stop() {
            self.fail_stopped(reason, out);
            return;
        }
        if self.queued.has_steering() {
            self.reset_response();
            self.drain_steering(out);
            self.proceed(out);
            return;
        }
        if self.asks_again(response, out) {
            return;
        }
        self.warn_of_unknown_end(response, out);
        let status = status_after(&response.text());
        self.finish_input(status, out);
    }

    /// Makes the model continue with the text of a hook before the run may end, up to the limit on such continuations.
    pub(super) fn sent_on(&mut self, model_call: ModelCallId, text: String, out: &mut Vec<Action>) {
        if !self.awaits(model_call) || self.ending.is_some() {
            return;
        }
        let max = self.limits.max_hook_continuations;
        let Some(progress) = &mut self.progress else { return };
        if progress.sent_on < max {
            progress.sent_on += 1;
            self.queued.steer(UserMessage::notice(text));
        } else {
            let message =
                format!("a hook wanted to send the model on again, which is possible {max} times a run");
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    /// Records the reason with which the run fails at the next reply.
    pub(super) fn end_stopped(&mut self, model_call: ModelCallId, reason: String) {
        if self.awaits(model_call) && self.ending.is_none() {
            self.end_reasons.stop(Some(reason));
        }
    }

    /// Ends the run for a reason that a gate or a hook has given.
    pub(super) fn fail_stopped(&mut self, reason: String, out: &mut Vec<Action>) {
        let error = Error::new(ErrorKind::InvalidToolCall, reason).with_retry(Retry::Never);
        self.fail(error.info().clone(), out);
    }

    /// Returns how often hooks made the model continue in this run.
    pub(crate) fn hook_continuations(&self) -> u32 {
        self.progress.as_ref().map_or(0, |progress| progress.sent_on)
    }

    /// Ends the input with a question that a tool asked the user; the next input answers it.
    pub(super) fn await_answer(&mut self, question: String, out: &mut Vec<Action>) {
        if let Some(progress) = &mut self.progress {
            progress.text = question;
        }
        self.finish_input(OutcomeStatus::AwaitingInput, out);
    }

    fn start_round(&mut self, model_call: ModelCallId, calls: Vec<ToolCall>, out: &mut Vec<Action>) {
        let round = self.new_round(model_call, calls);
        if self.limit_on_tool_call().is_none() {
            round.prepare_all(out);
            self.phase = Phase::RunningTools(round);
        } else {
            self.phase = Phase::RunningTools(round);
            self.hold_calls(out);
            self.settle_round(out);
        }
    }

    /// Returns the round of these calls.
    pub(super) fn new_round(&mut self, model_call: ModelCallId, calls: Vec<ToolCall>) -> Round {
        let parallel = self.context.as_ref().is_some_and(|context| context.parallel_tool_calls);
        let at_once = if parallel { self.limits.max_parallel_tools.max(1) } else { 1 };
        if let Some(progress) = &mut self.progress {
            progress.tool_calls += u64::try_from(calls.len()).unwrap_or(u64::MAX);
        }
        let kinds = calls.iter().map(|call| self.call_kind(&call.name)).collect();
        Round::new(model_call, calls, kinds, at_once)
    }

    /// Adds calls that do not run to the calls that loop detection compares.
    pub(super) fn track_unrun_for_loops(&mut self, calls: &[ToolCall]) {
        let window = self.limits.loop_window();
        for call in calls {
            self.calls.push(call, None, window);
        }
    }

    /// Continues after a round whose results are in the history: steering, loop detection, next request.
    pub(super) fn next_round(&mut self, out: &mut Vec<Action>) {
        if let Some(progress) = &mut self.progress {
            progress.rounds += 1;
        }
        self.drain_steering(out);
        let window = self.limits.loop_window();
        if self.calls.repeats(window) {
            self.calls.clear();
            let message = format!(include_str!("../../prompts/loop_detected.md"), window = window)
                .trim_ascii_end()
                .to_owned();
            self.record(Turn::steering(UserMessage::notice(message.clone()), self.now));
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
        let compacts =
            matches!(self.phase, Phase::Compacting { model_call: current, .. } if current == model_call);
        if compacts && error.refused_reasoning {
            // The conversation contains the content for which the request was refused.
            self.repair_after(&error, out);
        }
        if self.compaction_failed(model_call, &error, out) || !self.awaits(model_call) {
            return;
        }
        self.release_failed(&error);
        if self.ending.is_some() {
            // The user has read this text, so it belongs in the history.
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
        if self.compact_after_refusal(&error, out) {
            return;
        }
        if error.kind == ErrorKind::ContextLength {
            let message = "the conversation exceeds the model's context window".to_owned();
            out.push(Action::emit(EventKind::Warning { message }));
            out.push(Action::emit(EventKind::Error { error: error.clone() }));
            self.rest(OutcomeStatus::ContextFull, Some(error), out);
            return;
        }
        self.fail(error, out);
    }

    /// Ends the run with an error. The session stays usable unless any later input would fail, too.
    pub(super) fn fail(&mut self, error: ErrorInfo, out: &mut Vec<Action>) {
        out.push(Action::emit(EventKind::Error { error: error.clone() }));
        if is_fatal(&error) {
            self.ending = Some(Ending::Failure(error));
            self.clean_up(out);
        } else {
            self.rest(OutcomeStatus::Failed, Some(error), out);
        }
    }
}

/// Returns whether any later input would fail with this error, too.
pub(super) fn is_fatal(error: &ErrorInfo) -> bool {
    matches!(error.kind, ErrorKind::Authentication | ErrorKind::AccessDenied | ErrorKind::Configuration)
}

pub(super) fn is_pause(response: &Response) -> bool {
    response.finish_reason.raw.as_deref().is_some_and(|raw| PAUSED.contains(&raw))
}

/// Moves the prompt out of the context, so that the machine holds it once, and returns it as a message: in one part, or
/// in two parts that meet where a provider's cache may end.
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
