//! Final responses that are cut off by the output limit, or empty.

use pintle_llm::{
    ContentPart, Error, ErrorKind, Finish, FinishReason, ReasoningEffort, Response, ResponseFormat, Retry,
};
use serde::{Deserialize, Serialize};

use super::Machine;
use super::cycle::is_pause;
use crate::protocol::{Action, EventKind, OutcomeStatus, Turn, TurnContext, TurnKind, UserMessage};

/// Message that asks the model to continue a response that was cut off.
const CONTINUE: &str = include_str!("../../prompts/continue.md");

/// Maximum number of continuations of one response.
const MAX_CONTINUATIONS: u32 = 2;

/// Efforts of reasoning, the lowest first.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// The final response of a run, as far as it has arrived.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FinalResponse {
    /// Text of the parts that the output limit cut off.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    beginning: String,
    #[serde(default)]
    continuations: u32,
    /// Whether the model was asked again after an empty response.
    #[serde(default)]
    is_repeated: bool,
    /// Effort of the next request, after reasoning that the output limit cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<ReasoningEffort>,
    /// See [`Outcome::warning`](crate::Outcome::warning).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<String>,
    /// Format that the input asks for. The only part that is kept over the steps of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<ResponseFormat>,
}

/// Providers that can enforce the format of the final answer of a conversation with tools. Others only get the schema in the
/// message, since Gemini and some compatible servers refuse a format beside tools.
const ENFORCING: [&str; 2] = ["anthropic", "openai"];

impl FinalResponse {
    /// Returns the text of the parts so far, with this one.
    pub(super) fn with_beginning(&self, text: String) -> String {
        if self.beginning.is_empty() { text } else { format!("{}{text}", self.beginning) }
    }
}

impl Machine {
    /// Returns the effort of the next request.
    pub(super) fn next_effort(&self) -> &Option<ReasoningEffort> {
        match &self.progress {
            Some(progress) if progress.response.effort.is_some() => &progress.response.effort,
            Some(_) | None => &self.reasoning_effort,
        }
    }

    /// Returns the effort with which to repeat a request whose reasoning was cut off: the next lower one. If no effort
    /// is set, it is `low`, provided that the model can reason.
    fn lower_effort(&self) -> Option<ReasoningEffort> {
        match &self.reasoning_effort {
            Some(effort) => lower(effort),
            None => {
                let reasons = self.context.as_ref().is_some_and(|context| context.supports_reasoning);
                reasons.then_some(ReasoningEffort::Low)
            }
        }
    }

    /// Warns of a response that ends the input for an unknown reason. It may be incomplete.
    pub(super) fn warn_of_unknown_end(&mut self, response: &Response, out: &mut Vec<Action>) {
        let FinishReason { reason: Finish::Other, raw: Some(raw) } = &response.finish_reason else { return };
        if is_pause(response) {
            return;
        }
        let message = format!("the response ended for an unknown reason, `{raw}`; it may be incomplete");
        warn(&message, out);
        if let Some(progress) = &mut self.progress {
            progress.response.warning = Some(message);
        }
    }

    /// Discards the stored parts of a response, because another step follows it.
    pub(super) fn reset_response(&mut self) {
        if let Some(progress) = &mut self.progress {
            let format = progress.response.format.take();
            progress.response = FinalResponse { format, ..FinalResponse::default() };
        }
    }

    /// Returns the response format of the next request.
    pub(super) fn response_format(&self, context: &TurnContext) -> Option<ResponseFormat> {
        let format = self.progress.as_ref()?.response.format.clone();
        format.filter(|_| ENFORCING.contains(&context.provider.as_str()))
    }

    /// Asks the model again after a response without calls that was cut off or is empty, or ends the run if that would
    /// not help. Returns `false` for a complete response.
    pub(super) fn asks_again(&mut self, response: &Response, out: &mut Vec<Action>) -> bool {
        let has_text = !response.text().trim().is_empty();
        // Some servers count reasoning tokens, and do not send the reasoning.
        let has_reasoning = response.usage.reasoning_tokens.is_some_and(|tokens| tokens > 0)
            || response.message.content.iter().any(ContentPart::is_reasoning);
        let lower_effort = self.lower_effort();
        let Some(progress) = &mut self.progress else { return false };
        let state = &mut progress.response;
        match (response.finish_reason.reason == Finish::Length, has_text) {
            (false, true) => false,
            // The continuation added nothing: the text was complete.
            (false, false) if !state.beginning.is_empty() => false,
            (false, false) => {
                self.repeat_empty(out);
                true
            }
            (true, true) if state.continuations < MAX_CONTINUATIONS => {
                state.continuations += 1;
                state.beginning.clone_from(&progress.text);
                warn("the response was cut off by the output limit; the model continues it", out);
                self.record_continuation();
                self.proceed(out);
                true
            }
            (true, false) if has_reasoning && state.effort.is_none() && state.beginning.is_empty() => {
                match lower_effort {
                    Some(effort) => self.repeat_with(effort, out),
                    None => self.end_cut_off(out),
                }
                true
            }
            (true, _) => {
                self.end_cut_off(out);
                true
            }
        }
    }

    /// Asks the model to continue its last response.
    pub(super) fn record_continuation(&mut self) {
        self.record(Turn::steering(UserMessage::notice(CONTINUE.trim_end()), self.now));
    }

    fn repeat_with(&mut self, effort: ReasoningEffort, out: &mut Vec<Action>) {
        let message = format!(
            "the output limit cut off the reasoning; the request is repeated with the effort {}",
            effort.as_str()
        );
        warn(&message, out);
        if let Some(progress) = &mut self.progress {
            progress.response.effort = Some(effort);
        }
        self.proceed(out);
    }

    fn end_cut_off(&mut self, out: &mut Vec<Action>) {
        warn("the response was cut off by the output limit", out);
        self.finish_input(OutcomeStatus::OutputLimit, out);
    }

    /// Repeats a request whose response is empty, once. A second empty response is a common end after calls that succeeded;
    /// otherwise the run has no result.
    fn repeat_empty(&mut self, out: &mut Vec<Action>) {
        let has_result = self.has_succeeded_call();
        let Some(progress) = &mut self.progress else { return };
        if !progress.response.is_repeated {
            progress.response.is_repeated = true;
            warn("the response is empty; the request is repeated", out);
            self.proceed(out);
            return;
        }
        if has_result {
            let message = "the final response is empty";
            progress.response.warning = Some(message.to_owned());
            warn(message, out);
            self.finish_input(OutcomeStatus::Completed, out);
        } else {
            let error = Error::new(ErrorKind::Server, "the model returned an empty response twice");
            self.fail(error.with_retry(Retry::Never).info().clone(), out);
        }
    }

    /// Returns whether a tool call since the last input of the user succeeded.
    fn has_succeeded_call(&self) -> bool {
        let since_input = self.history.iter().rev().take_while(|turn| turn.kind != TurnKind::User);
        since_input.flat_map(|turn| turn.item.results()).any(|result| !result.is_error)
    }
}

fn warn(message: &str, out: &mut Vec<Action>) {
    out.push(Action::emit(EventKind::Warning { message: message.to_owned() }));
}

/// Returns the next lower effort; `None` for the lowest and for an unknown one.
fn lower(effort: &ReasoningEffort) -> Option<ReasoningEffort> {
    let position = EFFORTS.iter().position(|known| *known == effort.as_str())?;
    EFFORTS.get(position.checked_sub(1)?).map(|lower| ReasoningEffort::from((*lower).to_owned()))
}
