//! `temperature` and `top_p`, for models that support them.

use pintle_llm::{Request, Warning};
use serde_json::{Map, Value};

use super::reasoning::generation;

/// First generation that supports neither.
const FIRST_WITHOUT: (u32, u32) = (4, 7);

/// First generation that supports only one of the two at once.
const FIRST_WITH_ONE: (u32, u32) = (4, 1);

/// Minimum `top_p` with thinking. The only legal temperature is 1.
const MIN_TOP_P: f64 = 0.95;

/// Sets the requested parameters that are legal with this `thinking`. Returns a warning for each dropped one.
pub(super) fn apply(
    fields: &mut Map<String, Value>,
    request: &Request,
    thinking: Option<&Value>,
) -> Vec<Warning> {
    let generation = generation(&request.model);
    let none = generation.is_some_and(|generation| generation >= FIRST_WITHOUT);
    let one = generation.is_some_and(|generation| generation >= FIRST_WITH_ONE);
    let kind = thinking.and_then(|thinking| thinking.get("type")).and_then(Value::as_str);
    let thinks = kind.is_some_and(|kind| kind != "disabled");

    let mut warnings = Vec::new();
    let mut set = |name: &str, value: Option<f64>, obstacle: Option<&str>| match (value, obstacle) {
        (None, _) => {}
        (Some(value), None) => {
            fields.insert(name.to_owned(), value.into());
        }
        (Some(value), Some(why)) => warnings.push(Warning {
            message: format!("{name} {value} was not sent: {why}"),
            code: Some(format!("{name}_ignored")),
        }),
    };
    let obstacle = |allowed: bool| {
        let conflicts = thinks && !allowed;
        none.then_some("this model does not support it")
            .or(conflicts.then_some("the API does not accept it together with thinking"))
    };
    let temperature = obstacle(request.temperature == Some(1.0));
    let sends_temperature = request.temperature.is_some() && temperature.is_none();
    let top_p = obstacle(request.top_p.is_some_and(|top_p| top_p >= MIN_TOP_P))
        .or((one && sends_temperature).then_some("this model accepts it or a temperature, not both"));
    set("temperature", request.temperature, temperature);
    set("top_p", request.top_p, top_p);
    warnings
}

#[cfg(test)]
mod tests {
    use pintle_llm::Message;
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_parameters_are_dropped_with_a_warning() {
        const OLD: &str = "claude-sonnet-4-20250514";
        const ONE: &str = "claude-sonnet-4-5";
        let budget = json!({"type": "enabled", "budget_tokens": 1_024});
        let cases = [
            (OLD, None, Some(0.2), Some(0.5), json!({"temperature": 0.2, "top_p": 0.5}), vec![]),
            (ONE, None, Some(0.2), Some(0.5), json!({"temperature": 0.2}), vec!["top_p_ignored"]),
            (ONE, None, None, Some(0.5), json!({"top_p": 0.5}), vec![]),
            (ONE, Some(&budget), Some(0.2), Some(0.96), json!({"top_p": 0.96}), vec!["temperature_ignored"]),
            (ONE, Some(&budget), Some(1.0), None, json!({"temperature": 1.0}), vec![]),
            (OLD, Some(&budget), None, Some(0.5), json!({}), vec!["top_p_ignored"]),
            (OLD, Some(&json!({"type": "disabled"})), Some(0.2), None, json!({"temperature": 0.2}), vec![]),
            (
                OLD,
                Some(&json!({"type": "adaptive"})),
                Some(0.2),
                None,
                json!({}),
                vec!["temperature_ignored"],
            ),
            (
                "claude-opus-4-7",
                None,
                Some(1.0),
                Some(1.0),
                json!({}),
                vec!["temperature_ignored", "top_p_ignored"],
            ),
            (
                "behind-a-gateway",
                None,
                Some(0.2),
                Some(0.5),
                json!({"temperature": 0.2, "top_p": 0.5}),
                vec![],
            ),
        ];
        for (model, thinking, temperature, top_p, expected, codes) in cases {
            let mut request = Request::new(model, [Message::user("x")]);
            (request.temperature, request.top_p) = (temperature, top_p);
            let mut fields = Map::new();
            let warnings = apply(&mut fields, &request, thinking);
            let found: Vec<&str> = warnings.iter().filter_map(|warning| warning.code.as_deref()).collect();
            assert_eq!((Value::Object(fields), found), (expected, codes), "{model} {thinking:?}");
        }
    }
}
