//! From a reasoning effort to what each Claude model takes.

use pintle_llm::{Error, ErrorKind, ModelInfo, ReasoningEffort, Request, ToolChoice, get_model_info};
use serde_json::{Map, Value, json};

use super::NAME;

/// The smallest budget that the API accepts, in tokens.
const SMALLEST_BUDGET: u64 = 1_024;
const MEDIUM_BUDGET: u64 = 8_192;
const LARGEST_BUDGET: u64 = 24_576;

/// The first model with an effort: it has it as a beta, and takes a budget beside it instead of thinking adaptively.
const FIRST_WITH_EFFORT: &str = "claude-opus-4-5";

const EFFORT_BETA: &str = "effort-2025-11-24";

/// How a model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinks {
    Not,
    WithBudget,
    WithBudgetAndEffort,
    Adaptively,
}

/// Sets `thinking` and `output_config.effort` as the request's effort asks.
///
/// `open_turn_unthought`: the open tool turn has no thinking block at its head, and the API would refuse a budget
/// now. Adaptive thinking has no such rule, since a model that thinks adaptively may begin a turn without.
pub(super) fn apply(
    fields: &mut Map<String, Value>,
    request: &Request,
    max_tokens: u64,
    open_turn_unthought: bool,
) -> Result<(), Error> {
    let Some(effort) = request.reasoning_effort.as_ref().filter(|effort| effort.as_str() != "none") else {
        return Ok(());
    };
    let thinks = thinks(&request.model);
    if matches!(thinks, Thinks::WithBudgetAndEffort | Thinks::Adaptively) {
        let word = if effort.as_str() == "minimal" { "low" } else { effort.as_str() };
        fields.insert("output_config".into(), json!({"effort": word}));
    }
    if matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_))) {
        return Ok(());
    }
    match thinks {
        Thinks::Not => {}
        Thinks::Adaptively => {
            fields.insert("thinking".into(), json!({"type": "adaptive"}));
        }
        Thinks::WithBudget | Thinks::WithBudgetAndEffort => {
            if let (Some(budget), false) = (budget(effort, max_tokens)?, open_turn_unthought) {
                fields.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget}));
            }
        }
    }
    Ok(())
}

/// The beta header that the effort in these fields needs.
pub(super) fn beta(fields: &Map<String, Value>, model: &str) -> Option<&'static str> {
    let has_effort = fields.get("output_config").is_some_and(|config| config.get("effort").is_some());
    (has_effort && model.starts_with(FIRST_WITH_EFFORT)).then_some(EFFORT_BETA)
}

/// The generation in a model's name: `(4, 5)` of `claude-sonnet-4-5-20250929` as of `claude-4.5-sonnet`.
pub(super) fn generation(model: &str) -> Option<(u32, u32)> {
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let mut words =
        model.split(|c: char| !c.is_ascii_alphanumeric()).skip_while(|word| number(word).is_none());
    let major = words.next().and_then(number)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

/// As the catalog says. A model that it does not know is judged by the generation in its name, and one without such
/// is taken for a new one.
fn thinks(model: &str) -> Thinks {
    let first_with_effort = model.starts_with(FIRST_WITH_EFFORT);
    let by_budget = if first_with_effort { Thinks::WithBudgetAndEffort } else { Thinks::WithBudget };
    match model_info(model) {
        Some(info) if !info.supports_reasoning => Thinks::Not,
        Some(info) if info.supports_effort && !first_with_effort => Thinks::Adaptively,
        Some(_) => by_budget,
        None => match generation(model) {
            Some(generation) if generation < (3, 7) => Thinks::Not,
            Some(generation) if generation < (4, 6) => by_budget,
            Some(_) | None => Thinks::Adaptively,
        },
    }
}

/// The catalog's entry; a dated name such as `claude-opus-4-5-20251101` finds the entry of its family.
fn model_info(model: &str) -> Option<&'static ModelInfo> {
    get_model_info(model).or_else(|| {
        let (family, date) = model.rsplit_once('-')?;
        let dated = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
        get_model_info(dated.then_some(family)?)
    })
}

/// The budget of an effort, below `max_tokens`; `None` if no budget fits below it.
fn budget(effort: &ReasoningEffort, max_tokens: u64) -> Result<Option<u64>, Error> {
    let wanted = match effort {
        ReasoningEffort::Low => SMALLEST_BUDGET,
        ReasoningEffort::Medium => MEDIUM_BUDGET,
        ReasoningEffort::High => LARGEST_BUDGET,
        ReasoningEffort::Other(word) => match word.as_str() {
            "minimal" => SMALLEST_BUDGET,
            "xhigh" | "max" => LARGEST_BUDGET,
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
    // Half of what may be written is left for the answer.
    Ok((SMALLEST_BUDGET < max_tokens).then_some((max_tokens / 2).max(SMALLEST_BUDGET)))
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
        let rows = [
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
        for (effort, max_tokens, expected) in rows {
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
        let rows = [
            ("claude-instant-1.2", Some((1, 2)), Thinks::Not),
            ("claude-3-haiku-20240307", Some((3, 0)), Thinks::Not),
            ("claude-3-5-sonnet-20241022", Some((3, 5)), Thinks::Not),
            ("claude-3-7-sonnet-20250219", Some((3, 7)), Thinks::WithBudget),
            ("claude-sonnet-4-20250514", Some((4, 0)), Thinks::WithBudget),
            ("claude-opus-4-1", Some((4, 1)), Thinks::WithBudget),
            ("claude-opus-4-5-20251101", Some((4, 5)), Thinks::WithBudgetAndEffort),
            ("claude-opus-4-6", Some((4, 6)), Thinks::Adaptively),
            ("claude-opus-77-7", Some((77, 7)), Thinks::Adaptively),
            ("claude-fable-99", Some((99, 0)), Thinks::Adaptively),
            ("claude-of-tomorrow", None, Thinks::Adaptively),
        ];
        for (model, number, expected) in rows {
            assert_eq!((generation(model), thinks(model)), (number, expected), "{model}");
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
