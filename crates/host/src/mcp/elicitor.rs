//! Questions of servers to the attendant of a session.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_mcp::{Elicitation, ElicitationAnswer, ElicitationRequest, Elicitor};
use serde_json::{Map, Value};

use crate::attendant::{Attendant, REFUSAL};
use crate::sanitize::sanitize;

/// Below a question for one value.
const VALUE_PROMPT: &str = "Value (Enter leaves it out, `!` refuses): ";

/// Below a question for a value that is required.
const REQUIRED_PROMPT: &str = "Value (required; `!` refuses): ";

/// Below a URL.
const URL_PROMPT: &str = "Have you opened it? [y]es, [n]o: ";

/// Asks the attendant for each value.
#[derive(Clone, Debug)]
pub(super) struct AttendantElicitor {
    attendant: Arc<dyn Attendant>,
}

/// A value that a server requests.
#[derive(Clone, Debug, PartialEq)]
struct RequestedField<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

impl AttendantElicitor {
    pub(super) fn new(attendant: Arc<dyn Attendant>) -> Self {
        Self { attendant }
    }

    async fn values(&self, question: &Elicitation, schema: &Value) -> ElicitationAnswer {
        let mut values = Map::new();
        for field in fields(schema) {
            let prompt = if field.is_required { REQUIRED_PROMPT } else { VALUE_PROMPT };
            let mut problem = None;
            loop {
                let details: Vec<String> =
                    [Some(field.describe()), problem.take()].into_iter().flatten().collect();
                let answer = self.attendant.ask_for_text(&head(question), &details, prompt).await;
                // End of input is not an answer.
                let Some(answer) = answer else { return ElicitationAnswer::Cancel };
                match field.parse(answer.trim()) {
                    Ok(None) => break,
                    Ok(Some(value)) => {
                        values.insert(field.name.to_owned(), value);
                        break;
                    }
                    Err(InvalidAnswer::Refused) => return ElicitationAnswer::Decline,
                    Err(InvalidAnswer::Expected(expected)) => problem = Some(format!("expected {expected}")),
                }
            }
        }
        ElicitationAnswer::Accept(values)
    }
}

#[async_trait]
impl Elicitor for AttendantElicitor {
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer {
        match &question.request {
            ElicitationRequest::Form(schema) => self.values(&question, schema).await,
            ElicitationRequest::Url(url) => {
                let details = [sanitize(url).into_owned()];
                let answer = self.attendant.ask_for_text(&head(&question), &details, URL_PROMPT).await;
                match answer.as_deref().map(str::trim) {
                    Some("y" | "yes") => ElicitationAnswer::Accept(Map::new()),
                    Some(_) => ElicitationAnswer::Decline,
                    None => ElicitationAnswer::Cancel,
                }
            }
            _ => ElicitationAnswer::Cancel,
        }
    }
}

fn head(question: &Elicitation) -> String {
    format!("server `{}` asks: {}", question.server, sanitize(&question.message))
}

/// Returns the values of a schema in its order, required values first.
fn fields(schema: &Value) -> Vec<RequestedField<'_>> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut fields: Vec<RequestedField<'_>> = properties
        .map(|(name, schema)| RequestedField { name, schema, is_required: required.contains(&name.as_str()) })
        .collect();
    fields.sort_by_key(|field| !field.is_required);
    fields
}

/// Reason why an answer is not a valid value.
#[derive(Debug, PartialEq)]
enum InvalidAnswer {
    Refused,
    Expected(String),
}

impl RequestedField<'_> {
    /// Returns the description of the value for the user.
    fn describe(&self) -> String {
        let text = |key: &str| Some(sanitize(self.schema.get(key)?.as_str()?).into_owned());
        let mut lines = vec![text("title").unwrap_or_else(|| sanitize(self.name).into_owned())];
        lines.extend(text("description"));
        if let Some(choices) = self.choices() {
            lines.push(format!("one of: {}", choices.join(", ")));
        }
        if let Some(default) = self.schema.get("default") {
            lines.push(format!("default: {}", sanitize(&plain(default))));
        }
        lines.join("\n")
    }

    fn choices(&self) -> Option<Vec<String>> {
        let choices = self.schema.get("enum")?.as_array()?;
        Some(choices.iter().map(|choice| sanitize(&plain(choice)).into_owned()).collect())
    }

    /// Returns the value of an answer; `None` if it is left out.
    fn parse(&self, answer: &str) -> Result<Option<Value>, InvalidAnswer> {
        let expected = |what: &str| Err(InvalidAnswer::Expected(what.to_owned()));
        match answer {
            REFUSAL => return Err(InvalidAnswer::Refused),
            "" if self.schema.get("default").is_some() || !self.is_required => return Ok(None),
            "" => return expected("a value"),
            _ => {}
        }
        if let Some(choices) = self.schema.get("enum").and_then(Value::as_array) {
            let chosen = choices.iter().find(|choice| plain(choice) == answer).cloned();
            return chosen.map(Some).ok_or_else(|| InvalidAnswer::Expected("one of the choices".to_owned()));
        }
        match self.schema.get("type").and_then(Value::as_str) {
            Some("boolean") => match answer.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Some(Value::Bool(true))),
                "n" | "no" | "false" => Ok(Some(Value::Bool(false))),
                _ => expected("yes or no"),
            },
            Some("integer") => match answer.parse::<i64>() {
                Ok(number) => Ok(Some(Value::from(number))),
                Err(_) => expected("a whole number"),
            },
            Some("number") => match answer.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(Value::from(number))),
                Ok(_) | Err(_) => expected("a number"),
            },
            Some("array") => {
                let items = answer.split(',').map(|item| Value::from(item.trim())).collect();
                Ok(Some(Value::Array(items)))
            }
            Some(_) | None => Ok(Some(Value::from(answer))),
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_become_values_of_the_type_that_is_wanted() {
        let schema = json!({
            "properties": {
                "colour": {"enum": ["red", "blue"]}, "count": {"type": "integer"}, "name": {"type": "string"},
                "ratio": {"type": "number", "default": 1}, "sure": {"type": "boolean"}, "tags": {"type": "array"},
            },
            "required": ["sure", "name", "ratio"],
        });
        let fields = fields(&schema);
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        assert_eq!(names, ["name", "ratio", "sure", "colour", "count", "tags"]);
        let wrong = |text: &str| Err(InvalidAnswer::Expected(text.to_owned()));
        for (name, answer, expected) in [
            ("name", "Ann", Ok(Some(json!("Ann")))),
            ("name", "", wrong("a value")),
            ("name", "!", Err(InvalidAnswer::Refused)),
            ("ratio", "0.5", Ok(Some(json!(0.5)))),
            ("ratio", "", Ok(None)),
            ("ratio", "inf", wrong("a number")),
            ("sure", "Yes", Ok(Some(json!(true)))),
            ("sure", "perhaps", wrong("yes or no")),
            ("colour", "blue", Ok(Some(json!("blue")))),
            ("colour", "green", wrong("one of the choices")),
            ("colour", "", Ok(None)),
            ("count", "12", Ok(Some(json!(12)))),
            ("count", "1.5", wrong("a whole number")),
            ("tags", "a, b", Ok(Some(json!(["a", "b"])))),
        ] {
            let field = fields.iter().find(|field| field.name == name).unwrap();
            assert_eq!(field.parse(answer), expected, "{name}: {answer}");
        }
    }

    #[test]
    fn texts_of_servers_cannot_steer_the_terminal() {
        let schema =
            json!({"properties": {"a\u{1b}[2J": {"description": "b\u{1b}]0;x\u{7}", "default": "\u{9b}c"}}});
        let described = fields(&schema)[0].describe();
        assert!(!described.contains(|c: char| c.is_control() && c != '\n'), "{described:?}");
    }
}
