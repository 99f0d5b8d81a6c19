//! The line that ends a run.

use std::collections::BTreeMap;

use pintle_agent::{Money, Outcome, OutcomeStatus};
use pintle_llm::Usage;
use serde_json::{Map, Value, json};

use super::usage::usage;
use crate::outcome::failure_message;

/// End of a run, for its `result` line.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// Outcome of the run.
    pub outcome: &'a Outcome,
    /// Cost of the run in US dollars; `None` if a price is unknown. The line then contains 0 and
    /// `"pintle_cost_is_known": false`.
    pub cost: Option<Money>,
    /// Context window of the model, in tokens; `None` if it is unknown, which is 0 in the line.
    pub context_window: Option<u64>,
    /// Limit on output tokens of the model; `None` if it is unknown, which is 0 in the line.
    pub max_output_tokens: Option<u64>,
    /// Answer that was checked against a schema, if a schema was given.
    pub structured_output: Option<&'a Value>,
    /// Reason why no answer matched the schema within the limit of repairs, if none did.
    pub structured_output_failure: Option<&'a str>,
}

impl<'a> RunEnd<'a> {
    /// Creates the end of a run without a known cost, known limits of the model and a checked answer.
    #[must_use]
    pub fn new(outcome: &'a Outcome) -> Self {
        Self {
            outcome,
            cost: None,
            context_window: None,
            max_output_tokens: None,
            structured_output: None,
            structured_output_failure: None,
        }
    }
}

/// Counts of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct RunCounts {
    /// Tokens of each model.
    pub(super) models: BTreeMap<String, Usage>,
    pub(super) duration_ms: u64,
    pub(super) api_duration_ms: u64,
    pub(super) stop_reason: Option<&'static str>,
    pub(super) denials: Vec<Value>,
}

/// Subtype and terminal reason of a result.
fn subtype(end: &RunEnd<'_>) -> (&'static str, &'static str) {
    if end.structured_output_failure.is_some() {
        return ("error_max_structured_output_retries", "structured_output_retry_exhausted");
    }
    match end.outcome.status {
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput | OutcomeStatus::Refused => {
            ("success", "completed")
        }
        OutcomeStatus::RoundLimit | OutcomeStatus::TurnLimit => ("error_max_turns", "max_turns"),
        OutcomeStatus::Budget => ("error_max_budget_usd", "budget_exhausted"),
        OutcomeStatus::ContextFull => ("error_during_execution", "prompt_too_long"),
        OutcomeStatus::OutputLimit => ("error_during_execution", "max_output_tokens"),
        OutcomeStatus::Interrupted | OutcomeStatus::Aborted => {
            ("error_during_execution", "aborted_streaming")
        }
        OutcomeStatus::Failed | _ => ("error_during_execution", "api_error"),
    }
}

/// Returns the fields of the line.
pub(super) fn result(end: &RunEnd<'_>, counts: &RunCounts) -> Value {
    let (subtype, terminal_reason) = subtype(end);
    let is_error = subtype != "success" || end.outcome.status == OutcomeStatus::Refused;
    let mut line = json!({
        "type": "result",
        "subtype": subtype,
        "is_error": is_error,
        "terminal_reason": terminal_reason,
        "duration_ms": counts.duration_ms,
        "duration_api_ms": counts.api_duration_ms,
        "num_turns": end.outcome.model_calls,
        "stop_reason": counts.stop_reason,
        "total_cost_usd": end.cost.unwrap_or_default().dollars(),
        "pintle_cost_is_known": end.cost.is_some(),
        "usage": usage(&end.outcome.usage),
        "modelUsage": model_usage(end, counts),
        "permission_denials": counts.denials,
    });
    if let Some(line) = line.as_object_mut() {
        add_answer(line, subtype, end);
    }
    line
}

fn add_answer(line: &mut Map<String, Value>, subtype: &str, end: &RunEnd<'_>) {
    if subtype == "success" {
        let text = end.structured_output.map_or_else(|| end.outcome.text.clone(), Value::to_string);
        line.insert("result".to_owned(), text.into());
        if let Some(value) = end.structured_output {
            line.insert("structured_output".to_owned(), value.clone());
        }
    } else {
        let message =
            end.structured_output_failure.map_or_else(|| failure_message(end.outcome), str::to_owned);
        line.insert("errors".to_owned(), json!([message]));
    }
}

/// Returns the tokens of each model. If there was one model, its cost is the cost of the run. Otherwise it is unknown.
fn model_usage(end: &RunEnd<'_>, counts: &RunCounts) -> Value {
    let is_only = counts.models.len() == 1;
    let cost = end.cost.filter(|_| is_only);
    let entry = |usage: &Usage| {
        json!({
            "inputTokens": usage.uncached_input_tokens(),
            "outputTokens": usage.output_tokens,
            "thinkingTokens": usage.reasoning_tokens.unwrap_or(0),
            "cacheReadInputTokens": usage.cache_read_tokens.unwrap_or(0),
            "cacheCreationInputTokens": usage.cache_write_tokens.unwrap_or(0),
            "webSearchRequests": 0,
            "costUSD": cost.unwrap_or_default().dollars(),
            "costBasis": if cost.is_some() { "list" } else { "unknown" },
            "contextWindow": end.context_window.unwrap_or(0),
            "maxOutputTokens": end.max_output_tokens.unwrap_or(0),
        })
    };
    counts.models.iter().map(|(model, usage)| (model.clone(), entry(usage))).collect::<Map<_, _>>().into()
}
