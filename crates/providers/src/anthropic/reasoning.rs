//! Mapping of a reasoning effort to the parameters of each Claude model.

use pintle_llm::{Error, ErrorKind, ModelInfo, ReasoningEffort, Request, ToolChoice, get_model_info};
use serde_json::{Map, Value, json};

use super::NAME;

/// Minimum budget that the API accepts, in tokens.
const MIN_BUDGET: u64 = 1_024;
const MEDIUM_BUDGET: u64 = 8_192;
const MAX_BUDGET: u64 = 24_576;

/// The first model with an effort. It has it as a beta, together with a budget instead of adaptive thinking.
const FIRST_WITH_EFFORT: &str = "claude-opus-4-5";

const EFFORT_BETA: &str = "effort-2025-11-24";

/// Form of thinking that a model supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThinkingSupport {
    None,
    Budget,
    BudgetAndEffort,
    Adaptive,
}

/// Sets `thinking` and `output_config.effort` according to the request's effort.
///
/// If `open_without_thinking`, the open tool turn does not begin with a thinking block, and the API would reject a budget.
/// Adaptive thinking has no such rule, because such a model may begin a turn without thinking.
pub(super) fn apply(
    fields: &mut Map<String, Value>,
    request: &Request,
    max_tokens: u64,
    open_without_thinking: bool,
) -> Result<(), Error> {
    let Some(effort) = request.reasoning_effort.as_ref().filter(|effort| effort.as_str() != "none") else {
        return Ok(());
    };
    let support = thinking_support(&request.model);
    if matches!(support, ThinkingSupport::BudgetAndEffort | ThinkingSupport::Adaptive) {
        let effort = if effort.as_str() == "minimal" { "low" } else { effort.as_str() };
        fields.insert("output_config".into(), json!({"effort": effort}));
    }
    if matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_))) {
        return Ok(());
    }
    match support {
        ThinkingSupport::None => {}
        ThinkingSupport::Adaptive => {
            fields.insert("thinking".into(), json!({"type": "adaptive"}));
        }
        ThinkingSupport::Budget | ThinkingSupport::BudgetAndEffort => {
            if let (Some(budget), false) = (budget(effort, max_tokens)?, open_without_thinking) {
                fields.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget}));
            }
        }
    }
    Ok(())
}

/// Returns the beta header that the effort in these fields requires.
pub(super) fn beta(fields: &Map<String, Value>, model: &str) -> Option<&'static str> {
    let has_effort = fields.get("output_config").is_some_and(|config| config.get("effort").is_some());
    (has_effort && model.starts_with(FIRST_WITH_EFFORT)).then_some(EFFORT_BETA)
}

/// Parses the generation in a model name: `(4, 5)` of `claude-sonnet-4-5-20250929` and of `claude-4.5-sonnet`.
pub(super) fn generation(model: &str) -> Option<(u32, u32)> {
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let mut words =
        model.split(|c: char| !c.is_ascii_alphanumeric()).skip_while(|word| number(word).is_none());
    let major = words.next().and_then(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

/// Returns the form of thinking according to the catalog. An unknown model is classified by the generation in its name,
/// and counts as new without one.
fn thinking_support(model: &str) -> ThinkingSupport {
    let first_with_effort = model.starts_with(FIRST_WITH_EFFORT);
    let by_budget =
        if first_with_effort { ThinkingSupport::BudgetAndEffort } else { ThinkingSupport::Budget };
    match model_info(model) {
        Some(info) if !info.supports_reasoning => ThinkingSupport::None,
        Some(info) if info.supports_effort && !first_with_effort => ThinkingSupport::Adaptive,
        Some(_) => by_budget,
        None => match generation(model) {
            Some(generation) if generation < (3, 7) => ThinkingSupport::None,
            Some(generation) if generation < (4, 6) => by_budget,
            Some(_) | None => ThinkingSupport::Adaptive,
        },
    }
}

/// Returns the catalog entry. A dated name such as `claude-opus-4-5-20251101` finds the entry of its family.
fn model_info(model: &str) -> Option<&'static ModelInfo> {
    get_model_info(model).or_else(|| {
        let (family, date) = model.rsplit_once('-')?;
        let dated = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
        get_model_info(dated.then_some(family)?)
    })
}

/// Returns the budget of an effort, below `max_tokens`; `None` if no legal budget is below it.
fn budget(effort: &ReasoningEffort, max_tokens: u64) -> Result<Option<u64>, Error> {
    let wanted = match effort {
        ReasoningEffort::Low => MIN_BUDGET,
        ReasoningEffort::Medium => MEDIUM_BUDGET,
        ReasoningEffort::High => MAX_BUDGET,
        ReasoningEffort::Other(word) => match word.as_str() {
            "minimal" => MIN_BUDGET,
            "xhigh" | "max" => MAX_BUDGET,
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
    };
    if wanted < max_tokens {
        return Ok(Some(wanted));
    }
    // Half of the output is left for the response.
    Ok((MIN_BUDGET < max_tokens).then_some((max_tokens / 2).max(MIN_BUDGET)))
}

#[cfg(test)]
mod tests {
    use pintle_llm::Message;

    use super::*;

    fn applied(model: &str, effort: &str, max_tokens: u64, change: impl FnOnce(&mut Request)) -> Value {
        let mut request = Request::new(model, [Message::user("x")])
            .with_reasoning_effort(ReasoningEffort::from(effort.to_owned()));
        change(&mut request);
        let mut fields = Map::new();
        apply(&mut fields, &request, max_tokens, false).unwrap();
        Value::Object(fields)
    }

    #[test]
    fn budgets_stay_below_the_output_limit() {
        let cases = [
            ("low", 4_096, Some(1_024)),
            ("minimal", 4_096, Some(1_024)),
            ("medium", 32_000, Some(8_192)),
            ("high", 32_000, Some(24_576)),
            ("xhigh", 32_000, Some(24_576)),
            ("high", 4_096, Some(2_048)),
            ("low", 1_025, Some(1_024)),
            ("low", 1_024, None),
            ("none", 32_000, None),
        ];
        for (effort, max_tokens, expected) in cases {
            let fields = applied("claude-sonnet-4-5", effort, max_tokens, |_| {});
            let expected = expected.map_or(
                json!({}),
                |budget| json!({"thinking": {"type": "enabled", "budget_tokens": budget}}),
            );
            assert_eq!(fields, expected, "{effort} within {max_tokens}");
        }
    }

    #[test]
    fn models_with_effort_think_adaptively() {
        let effort = json!({"effort": "high"});
        assert_eq!(
            applied("claude-opus-4-6", "high", 4_096, |_| {}),
            json!({"output_config": effort, "thinking": {"type": "adaptive"}})
        );
        assert_eq!(
            applied("claude-opus-4-5-20251101", "high", 32_000, |_| {}),
            json!({"output_config": effort, "thinking": {"type": "enabled", "budget_tokens": 24_576}})
        );
        assert_eq!(
            applied("claude-opus-4-6", "minimal", 4_096, |_| {})["output_config"],
            json!({"effort": "low"})
        );
        for (model, beta_header) in [("claude-opus-4-6", None), ("claude-opus-4-5", Some(EFFORT_BETA))] {
            let fields = applied(model, "high", 32_000, |_| {});
            assert_eq!(beta(fields.as_object().unwrap(), model), beta_header);
        }
        assert_eq!(
            applied("claude-opus-4-6", "high", 4_096, |request| {
                request.tool_choice = Some(ToolChoice::Required);
            }),
            json!({"output_config": effort})
        );
    }

    #[test]
    fn unknown_models_are_classified_by_generation() {
        let cases = [
            ("claude-instant-1.2", Some((1, 2)), ThinkingSupport::None),
            ("claude-3-haiku-20240307", Some((3, 0)), ThinkingSupport::None),
            ("claude-3-5-sonnet-20241022", Some((3, 5)), ThinkingSupport::None),
            ("claude-3-7-sonnet-20250219", Some((3, 7)), ThinkingSupport::Budget),
            ("claude-sonnet-4-20250514", Some((4, 0)), ThinkingSupport::Budget),
            ("claude-opus-4-1", Some((4, 1)), ThinkingSupport::Budget),
            ("claude-opus-4-5-20251101", Some((4, 5)), ThinkingSupport::BudgetAndEffort),
            ("claude-opus-4-6", Some((4, 6)), ThinkingSupport::Adaptive),
            ("claude-opus-77-7", Some((77, 7)), ThinkingSupport::Adaptive),
            ("claude-fable-99", Some((99, 0)), ThinkingSupport::Adaptive),
            ("claude-of-tomorrow", None, ThinkingSupport::Adaptive),
        ];
        for (model, number, expected) in cases {
            assert_eq!((generation(model), thinking_support(model)), (number, expected), "{model}");
        }
        let fields = applied("claude-of-tomorrow", "high", 32_000, |_| {});
        assert_eq!(fields, json!({"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}));
        assert_eq!(applied("claude-3-5-haiku-20241022", "high", 32_000, |_| {}), json!({}));
    }

    #[test]
    fn unknown_efforts_are_refused_by_name() {
        let request = Request::new("claude-sonnet-4-5", [Message::user("x")])
            .with_reasoning_effort(ReasoningEffort::from("enormous".to_owned()));
        let error = apply(&mut Map::new(), &request, 4_096, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert!(error.message().contains("enormous"), "{error}");
    }
}
