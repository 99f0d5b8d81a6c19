//! From a reasoning effort to `thinkingConfig`.

use pintle_llm::{Error, ErrorKind, ReasoningEffort, Request, get_model_info};
use serde_json::{Value, json};

use super::{NAME, is_third_generation};

/// The configuration that the request's effort asks for.
pub(super) fn thinking_config(request: &Request) -> Result<Option<Value>, Error> {
    let Some(effort) = &request.reasoning_effort else { return Ok(None) };
    if get_model_info(&request.model).is_some_and(|info| !info.supports_reasoning) {
        return Ok(None);
    }
    if is_third_generation(&request.model) {
        // There is no way to turn thinking off; the least is what comes nearest.
        let level = if effort.as_str() == "none" { "minimal" } else { effort.as_str() };
        return Ok(Some(json!({"includeThoughts": true, "thinkingLevel": level.to_uppercase()})));
    }
    let budget = budget(effort)?;
    Ok(Some(json!({"includeThoughts": budget > 0, "thinkingBudget": budget})))
}

fn budget(effort: &ReasoningEffort) -> Result<u64, Error> {
    Ok(match effort {
        ReasoningEffort::Low => 1_024,
        ReasoningEffort::Medium => 8_192,
        ReasoningEffort::High => 24_576,
        ReasoningEffort::Other(word) => match word.as_str() {
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
