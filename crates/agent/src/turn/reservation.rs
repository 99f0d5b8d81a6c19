//! Reservation of model calls under [`Limits`] (design of the layers above, section 2).
//!
//! An attempt makes a reservation before it starts. It reserves the provider's last count of the input, an upper
//! estimate of the new content, and the output limit, which is lowered to the remaining budget. The reservation is
//! released when the attempt reports its usage. An attempt without a usage report counts in full.

use pintle_llm::{ContentPart, Error, ErrorInfo, ErrorKind, HistoryItem, ModelInfo, Money, Request, Usage};
use serde::{Deserialize, Serialize};

use super::budget::{ReachedLimit, cost};
use super::ending::Ending;
use super::{Machine, Phase};
use crate::protocol::{
    Action, BudgetKind, BudgetUsage, EventKind, Limits, ReachedBudget, TokenBounds, Turn, TurnContext,
};

/// Upper bound on the tokens that a provider adds to a message for its role and its delimiters.
const MESSAGE: u64 = 8;

/// Output limit below which a subagent asks for more of the budget, in tokens.
const COMFORTABLE_OUTPUT: u64 = 8_192;

/// Amounts held for calls whose cost is not known yet, and the request for more of the budget.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Reservations {
    /// Reservation of the running attempt.
    attempt: Option<BudgetUsage>,
    /// Reservations of attempts that ended without a usage report.
    unsettled: BudgetUsage,
    /// Number of requests for more of the budget.
    asks: u64,
    asking: RequestState,
    /// Limit of a wider scope that kept the last grant below the requested amounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    short: Option<ReachedBudget>,
}

/// State of a request for more of the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum RequestState {
    /// No request was made for the current need.
    #[default]
    No,
    /// The request waits for its answer.
    Waiting,
    /// The request was answered, and is not repeated for the same need.
    Answered,
}

/// Part of a wider budget, granted to a session.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Slice {
    /// Amounts that the wider budget limits: each that is not `None`.
    limited: Limits,
    /// Amounts granted to the session, counted from its first call.
    has: Limits,
}

/// Reason why a call is not made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortage {
    pub(super) limit: ReachedLimit,
    /// Budget that is missing.
    wants: Limits,
}

impl Reservations {
    /// Returns the reservations of attempts that ended without a usage report.
    pub(super) fn unsettled(&self) -> BudgetUsage {
        self.unsettled
    }

    pub(super) fn short(&self) -> Option<ReachedBudget> {
        self.short
    }
}

impl Machine {
    /// Returns the amounts spent or held by this session's attempts and by its subagents.
    pub(super) fn committed(&self) -> BudgetUsage {
        self.charged().and(self.reservations.attempt.unwrap_or_default()).and(self.children.held())
    }

    /// Returns the reservation of the running attempt.
    pub(super) fn reserved(&self) -> Option<BudgetUsage> {
        self.reservations.attempt
    }

    /// Restores the recorded reservation of an attempt.
    pub(super) fn take_reservation(&mut self, reserved: Option<BudgetUsage>) {
        self.reservations.attempt = reserved;
    }

    /// Restores the recorded answer to a request.
    pub(super) fn take_grant(&mut self, ask: u64, slice: Limits) {
        self.reservations.asks = ask;
        self.set_slice(slice);
    }

    /// Applies a recorded retry: the failed attempt counts, and the next one has the same reservation.
    pub(super) fn take_retry(&mut self, error: &ErrorInfo) {
        self.reservations.attempt = self.settle_failed(error);
    }

    /// Returns the amounts spent, including attempts without a usage report.
    pub(super) fn charged(&self) -> BudgetUsage {
        self.spent.and(self.reservations.unsettled)
    }

    /// Counts an amount whose actual spending is unknown.
    pub(super) fn charge_unsettled(&mut self, amount: BudgetUsage) {
        self.reservations.unsettled += amount;
    }

    /// Makes the reservation for the first attempt of a request, and lowers its output limit to the remaining budget.
    ///
    /// # Errors
    ///
    /// The limit that forbids the call.
    pub(super) fn reserve(&mut self, context: &TurnContext, request: &mut Request) -> Result<(), Shortage> {
        if !self.budget().limits_model_calls() {
            return Ok(());
        }
        let left = self.budget_left();
        let input = self.most_input_tokens(context, &request.messages);
        let pricing = context.pricing.as_deref();
        // Input and output share the window.
        let window = context.context_window.saturating_sub(input).max(1);
        let wanted = request.max_tokens.unwrap_or(window);
        let least = self.least_output(&context.bounds).min(wanted);
        let by_tokens = left.tokens.map_or(u64::MAX, |left| left.saturating_sub(input));
        let by_cost = left.cost_micros().map_or(u64::MAX, |left| affordable_output(pricing, input, left));
        let output = wanted.min(by_tokens).min(by_cost);
        let comfortable = if self.may_ask() { COMFORTABLE_OUTPUT.min(wanted) } else { least };
        if output < comfortable.max(1) {
            return Err(self.shortage(&left, input, least.max(1), comfortable.max(1), pricing));
        }
        if output < wanted {
            request.max_tokens = Some(output);
        }
        self.reservations.attempt = Some(most_spent(pricing, input, output));
        self.reservations.asking = RequestState::No;
        Ok(())
    }

    fn shortage(
        &self,
        left: &Limits,
        input: u64,
        least: u64,
        comfortable: u64,
        pricing: Option<&ModelInfo>,
    ) -> Shortage {
        let (needed, wanted) = (most_spent(pricing, input, least), most_spent(pricing, input, comfortable));
        let short_of_tokens = left.tokens.is_some_and(|left| left < needed.tokens());
        let kind =
            if short_of_tokens || left.cost.is_none() { BudgetKind::Tokens } else { BudgetKind::CostMicros };
        let wants = left.exactly(&wanted).with_each(left, u64::saturating_sub);
        Shortage { limit: ReachedLimit::before(kind, &self.budget(), &self.committed(), &needed), wants }
    }

    /// Returns the fewest output tokens of a useful response.
    fn least_output(&self, bounds: &TokenBounds) -> u64 {
        let reasons = self.next_effort().as_ref().is_some_and(|effort| effort.as_str() != "none");
        if reasons { bounds.least_output_reasoning } else { bounds.least_output }
    }

    /// Returns an upper estimate of the tokens of a request with these messages.
    fn most_input_tokens<'a>(
        &self,
        context: &TurnContext,
        messages: impl IntoIterator<Item = &'a HistoryItem>,
    ) -> u64 {
        let bounds = &context.bounds;
        let Some(counted) = self.size.count() else {
            let tools =
                context.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len());
            let tools = text_tokens(tools.sum(), bounds);
            let messages = messages.into_iter().map(|message| item_tokens(message, bounds));
            return messages.fold(tools, u64::saturating_add);
        };
        let new = self.history.get(counted.turns..).unwrap_or_default();
        let new = new.iter().map(|turn| turn_tokens(turn, bounds));
        // A request for a summary continues after the history.
        let more = messages.into_iter().skip(self.prefix.len()).map(|message| item_tokens(message, bounds));
        let new = new.chain(more).fold(0, u64::saturating_add);
        counted.tokens.saturating_add(new)
    }

    /// Counts the usage of an attempt, and releases its reservation.
    pub(super) fn settle(&mut self, usage: &Usage, out: &mut Vec<Action>) {
        let attempt = self.reservations.attempt.take();
        let spent = self.spend(usage);
        let Some(reserved) = attempt else { return };
        if spent.tokens() == 0 {
            // The server does not count tokens.
            self.reservations.unsettled += reserved;
        } else if let Some(message) = self.overrun(&reserved, &spent) {
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    /// Describes by how much a limit is exceeded because an attempt used more than its reservation.
    fn overrun(&self, reserved: &BudgetUsage, spent: &BudgetUsage) -> Option<String> {
        let (budget, charged) = (self.budget(), self.charged());
        let over = |limit: Option<u64>, now: Option<u64>, reserved: Option<u64>, spent: Option<u64>| {
            let over = now?.saturating_sub(limit?);
            (over > 0 && spent? > reserved?).then_some(over)
        };
        let tokens =
            over(budget.tokens, Some(charged.tokens()), Some(reserved.tokens()), Some(spent.tokens()));
        let cost =
            over(budget.cost_micros(), charged.cost_micros(), reserved.cost_micros(), spent.cost_micros());
        let amount = match (tokens, cost) {
            (Some(tokens), _) => format!("{tokens} tokens"),
            (None, Some(micros)) => Money::from_micros(micros).to_string(),
            (None, None) => return None,
        };
        Some(format!(
            "the budget is exceeded by {amount}: the provider counted {} tokens for a call for which {} were reserved",
            spent.tokens(),
            reserved.tokens(),
        ))
    }

    /// Counts a failed attempt: the usage in its error, nothing if the provider refused it, and otherwise its whole
    /// reservation. Returns the reservation.
    fn settle_failed(&mut self, error: &ErrorInfo) -> Option<BudgetUsage> {
        let reserved = self.reservations.attempt.take();
        if let Some(usage) = &error.usage {
            self.spend(usage);
        } else if !was_refused(error) {
            self.reservations.unsettled += reserved.unwrap_or_default();
        }
        reserved
    }

    /// Counts the last attempt of a failed call.
    pub(super) fn release_failed(&mut self, error: &ErrorInfo) {
        self.settle_failed(error);
    }

    /// Makes the same reservation for another attempt, or stops the turn.
    pub(super) fn reserve_retry(&mut self, error: &ErrorInfo, out: &mut Vec<Action>) {
        let Some(reserved) = self.settle_failed(error) else { return };
        if self.ending.is_some() {
            return;
        }
        let left = self.budget_left();
        let is_short = |left: Option<u64>, needed: Option<u64>| {
            left.is_some_and(|left| needed.is_none_or(|needed| left < needed))
        };
        let kind = if is_short(left.tokens, Some(reserved.tokens())) {
            BudgetKind::Tokens
        } else if is_short(left.cost_micros(), reserved.cost_micros()) {
            BudgetKind::CostMicros
        } else {
            self.reservations.attempt = Some(reserved);
            return;
        };
        let reached = ReachedLimit::before(kind, &self.budget(), &self.committed(), &reserved);
        self.stop(Ending::Budget(reached), out);
    }

    /// Counts an attempt whose end was lost with its process.
    pub(super) fn lose_attempt(&mut self) {
        let lost = self.reservations.attempt.take();
        self.reservations.unsettled += lost.unwrap_or_default();
        self.reservations.asking = RequestState::No;
    }

    /// Returns whether a request for more of the budget waits for its answer.
    pub(crate) fn awaits_budget(&self) -> bool {
        self.reservations.asking == RequestState::Waiting
    }

    /// Returns whether the parent session or the application can still be asked for the current need.
    pub(super) fn may_ask(&self) -> bool {
        self.slice.is_some() && self.reservations.asking != RequestState::Answered
    }

    /// Asks for more of the budget, once for each need. Returns whether the caller has to wait for the answer.
    pub(super) fn ask_for_budget(
        &mut self,
        wants: Limits,
        unpriced: Option<String>,
        out: &mut Vec<Action>,
    ) -> bool {
        if !self.may_ask() {
            return false;
        }
        if self.reservations.asking == RequestState::No {
            self.reservations.asking = RequestState::Waiting;
            self.reservations.asks += 1;
            let (ask, has) = (self.reservations.asks, Limits { wall_time: None, ..self.budget() });
            out.push(Action::AskBudget { ask, has: Box::new(has), wants: Box::new(wants), unpriced });
        }
        true
    }

    /// Asks for the budget that a model call lacks, and waits. Returns whether it waits.
    pub(super) fn ask_for_model_call(&mut self, shortage: &Shortage, out: &mut Vec<Action>) -> bool {
        let asks = self.ask_for_budget(shortage.wants, None, out);
        if asks {
            self.phase = Phase::AwaitingBudget;
        }
        asks
    }

    /// Asks whether a model without a known price may be called, and waits. Returns whether it waits.
    pub(super) fn ask_for_price(&mut self, model: &str, out: &mut Vec<Action>) -> bool {
        let asks = self.ask_for_budget(Limits::default(), Some(model.to_owned()), out);
        if asks {
            self.phase = Phase::AwaitingBudget;
        }
        asks
    }

    /// Asks for the budget of the calls that may not start yet. Returns whether they wait for the answer.
    pub(super) fn ask_for_tool_calls(&mut self, out: &mut Vec<Action>) -> bool {
        if !self.may_ask() || self.budget_left().tool_calls != Some(0) {
            return false;
        }
        let Phase::RunningTools(round) = &self.phase else { return false };
        let waiting = round.waiting() as u64;
        if waiting == 0 {
            return false;
        }
        let wants = Limits { tool_calls: Some(waiting), ..Limits::default() };
        self.ask_for_budget(wants, None, out)
    }

    /// Notes that tool calls have started.
    pub(super) fn note_started(&mut self, started: u64) {
        if started > 0 && self.reservations.asking == RequestState::Answered {
            self.reservations.asking = RequestState::No;
        }
    }

    /// Applies the answer to a request for more of the budget, and continues.
    pub(super) fn budget_granted(
        &mut self,
        ask: u64,
        slice: Limits,
        short: Option<ReachedBudget>,
        failure: Option<String>,
        out: &mut Vec<Action>,
    ) {
        if self.reservations.asking != RequestState::Waiting || ask != self.reservations.asks {
            return;
        }
        // If the answer lifts the limit on cost, the need for a price is met. A need for an amount is separate.
        let is_met = self.budget().cost.is_some() && slice.cost.is_none();
        self.reservations.asking = if is_met { RequestState::No } else { RequestState::Answered };
        self.reservations.short = short;
        self.set_slice(slice);
        self.answer_asks(out);
        if let Some(failure) = failure
            && matches!(self.phase, Phase::AwaitingBudget)
        {
            self.fail(Error::new(ErrorKind::InvalidRequest, failure).info().clone(), out);
            return;
        }
        match self.phase {
            Phase::AwaitingBudget => match self.context.as_ref().and_then(|context| self.unpriced(context)) {
                Some(error) => self.fail(error, out),
                None => self.proceed(out),
            },
            Phase::RunningTools(_) => self.advance_round(out),
            Phase::Resting
            | Phase::LoadingContext { .. }
            | Phase::AwaitingModel(_)
            | Phase::Compacting { .. }
            | Phase::CleaningUp => self.stop_asking(),
        }
    }

    /// Forgets a request for more of the budget, unless a subagent waits for it.
    pub(super) fn stop_asking(&mut self) {
        if !self.children.have_asked() {
            self.reservations.asking = RequestState::No;
        }
    }

    /// Gives up the rest of the slice when the session rests.
    pub(super) fn return_slice(&mut self) {
        self.stop_asking();
        if self.reservations.asking == RequestState::No {
            self.empty_slice();
        }
    }

    /// Returns the amounts spent or held since the current run started; zero between runs.
    pub(crate) fn committed_in_run(&self) -> BudgetUsage {
        let before = self.progress.as_ref().map(|progress| progress.spent_before);
        before.map_or_else(BudgetUsage::default, |before| self.committed().since(&before))
    }

    /// Returns the limits of the session itself.
    pub(crate) fn own_budget(&self) -> Limits {
        self.limits.budget
    }

    fn empty_slice(&mut self) {
        let committed = self.committed();
        if let Some(slice) = &mut self.slice {
            slice.has = slice.has.exactly(&committed);
        }
    }

    /// Returns the current limits: the session's own, or its slice of a wider budget.
    pub(super) fn budget(&self) -> Limits {
        let own = self.limits.budget;
        self.slice.map_or(own, |slice| Limits { wall_time: own.wall_time, ..slice.has })
    }

    fn set_slice(&mut self, has: Limits) {
        if let Some(slice) = &mut self.slice {
            slice.has = has;
        }
    }

    /// Sets the source of additional budget. The session's slice is then empty until it asks.
    pub(super) fn take_source(&mut self, asks: Option<Limits>) {
        let Some(limited) = asks else { return };
        let has = self.limits.budget.or(&limited);
        self.slice = Some(Slice { limited, has });
        self.empty_slice();
    }

    /// Restricts the slice to new limits of the session itself.
    pub(super) fn limit_slice(&mut self) {
        let (own, committed) = (self.limits.budget, self.committed());
        if let Some(slice) = &mut self.slice {
            let limited = own.or(&slice.limited).exactly(&committed);
            slice.has = limited.with_each(&slice.has, u64::max).lower(&own);
        }
    }
}

/// Returns an upper estimate of the spending of a call.
fn most_spent(pricing: Option<&ModelInfo>, input: u64, output: u64) -> BudgetUsage {
    BudgetUsage {
        input_tokens: input,
        output_tokens: output,
        cost: pricing.and_then(|model| most_cost(model, input, output)).map(Money::from_micros),
        tool_calls: 0,
    }
}

/// Returns the highest price of a call of this size, whatever part of the input is written to a cache, in millionths of a
/// US dollar.
fn most_cost(model: &ModelInfo, input: u64, output: u64) -> Option<u64> {
    let plain = Usage::new(input, output);
    let mut written = plain.clone();
    written.cache_write_tokens = Some(input);
    let plain = cost(&plain, model)?;
    let most = cost(&written, model).map_or(plain, |written| written.max(plain));
    Some(most.micros().saturating_add(1))
}

/// Returns the most output tokens that a call with this input may have for this many millionths of a US dollar.
fn affordable_output(pricing: Option<&ModelInfo>, input: u64, micros: u64) -> u64 {
    let Some(model) = pricing else { return 0 };
    let fits = |output: u64| most_cost(model, input, output).is_some_and(|cost| cost <= micros);
    if !fits(0) {
        return 0;
    }
    // The price grows with the output, and its tier depends only on the input.
    let (mut least, mut most) = (0, 1_u64 << 40);
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        if fits(middle) { least = middle } else { most = middle - 1 }
    }
    least
}

/// Returns whether the provider refused a request before it generated anything.
fn was_refused(error: &ErrorInfo) -> bool {
    match error.kind {
        ErrorKind::Authentication
        | ErrorKind::AccessDenied
        | ErrorKind::NotFound
        | ErrorKind::InvalidRequest
        | ErrorKind::RateLimit
        | ErrorKind::ContextLength
        | ErrorKind::QuotaExceeded
        | ErrorKind::UnsupportedToolChoice
        | ErrorKind::Configuration => true,
        ErrorKind::Server
        | ErrorKind::ContentFilter
        | ErrorKind::RequestTimeout
        | ErrorKind::Abort
        | ErrorKind::Network
        | ErrorKind::Stream
        | ErrorKind::InvalidToolCall
        | ErrorKind::NoObjectGenerated
        | _ => false,
    }
}

fn text_tokens(bytes: usize, bounds: &TokenBounds) -> u64 {
    (bytes as u64).div_ceil(bounds.bytes_per_token.max(1))
}

/// Returns an upper estimate of the tokens that an entry of the history adds to a request.
fn turn_tokens(turn: &Turn, bounds: &TokenBounds) -> u64 {
    // A response is sent back as the provider counted it.
    let counted = turn.usage.as_ref().map(|usage| usage.output_tokens).filter(|tokens| *tokens > 0);
    counted.map_or_else(|| item_tokens(&turn.item, bounds), |tokens| tokens.saturating_add(MESSAGE))
}

fn images_in(part: &ContentPart) -> usize {
    match part {
        ContentPart::Image(_) => 1,
        ContentPart::ToolResult(result) => result.images.len(),
        ContentPart::Text(_)
        | ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolCall(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => 0,
    }
}

fn item_tokens(item: &HistoryItem, bounds: &TokenBounds) -> u64 {
    let calls: usize = item.tool_calls().map(|call| call.name.len() + call.arguments_text().len()).sum();
    let results: usize = item.results().map(|result| result.text().len()).sum();
    let images = item.content.iter().map(images_in).sum::<usize>();
    let reasoning = item.reasoning().map_or(0, |text| text.len());
    let text = text_tokens(item.text().len() + calls + results + reasoning, bounds);
    text.saturating_add(MESSAGE).saturating_add((images as u64).saturating_mul(bounds.image))
}
