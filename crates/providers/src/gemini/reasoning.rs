//! Mapping of a reasoning effort to `thinkingConfig`.

use pintle_llm::{Error, ErrorKind, ReasoningEffort, Request, get_model_info};
use serde_json::{Value, json};

use super::{NAME, is_third_generation};

/// Minimum thinking budget of a Pro model of the second generation, in tokens.
const MIN_PRO_BUDGET: u64 = 128;

/// Returns the configuration for the request's effort.
pub(super) fn thinking_config(request: &Request) -> Result<Option<Value>, Error> {
    let Some(effort) = &request.reasoning_effort else { return Ok(None) };
    if get_model_info(&request.model).is_some_and(|info| !info.supports_reasoning) {
        return Ok(None);
    }
    if is_third_generation(&request.model) {
        let level = level(&request.model, effort);
        return Ok(Some(json!({"includeThoughts": true, "thinkingLevel": level})));
    }
    let budget = budget(&request.model, effort)?;
    Ok(Some(json!({"includeThoughts": budget > 0, "thinkingBudget": budget})))
}

/// Returns the name of the level. No level disables thinking; the lowest level of the model is the closest.
fn level(model: &str, effort: &ReasoningEffort) -> String {
    match effort.as_str() {
        "none" | "minimal" if is_pro(model) => "LOW".to_owned(),
        "none" => "MINIMAL".to_owned(),
        "xhigh" | "max" => "HIGH".to_owned(),
        word => word.to_uppercase(),
    }
}

fn budget(model: &str, effort: &ReasoningEffort) -> Result<u64, Error> {
    Ok(match effort {
        ReasoningEffort::Low => 1_024,
        ReasoningEffort::Medium => 8_192,
        ReasoningEffort::High => 24_576,
        ReasoningEffort::Other(word) => match word.as_str() {
            "none" if is_pro(model) => MIN_PRO_BUDGET,
            "none" => 0,
            "minimal" => 1_024,
            "xhigh" | "max" => 24_576,
            word => {
                return Err(Error::new(
                    ErrorKind::InvalidRequest,
                    format!(
                        "reasoning effort `{word}` is unknown: expected none, minimal, low, medium, high, xhigh or max"
                    ),
                )
                .with_provider(NAME));
            }
        },
    })
}

/// Returns whether this is a Pro model, which always thinks and lacks the lowest level.
fn is_pro(model: &str) -> bool {
    model.contains("-pro")
}
