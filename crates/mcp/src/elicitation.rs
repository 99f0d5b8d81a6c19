//! Elicitation: questions of a server to a user.

use std::fmt;

use async_trait::async_trait;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

use crate::spec::ServerName;

/// Question of a server to a user (MCP, elicitation).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server that asks.
    pub server: ServerName,
    /// The message for the user, which is untrusted text.
    pub message: String,
    /// The requested input.
    pub request: ElicitationRequest,
}

/// Input that a server requests from a user.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationRequest {
    /// Values for the properties of this JSON Schema: an object of texts, numbers, truth values and choices.
    Form(Value),
    /// A visit to this URL. It is untrusted text: it is shown, and never opened automatically.
    Url(String),
}

/// Answer to an [`Elicitation`].
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAnswer {
    /// The values, or an empty object for a URL that was opened.
    Accept(Map<String, Value>),
    /// The user refuses.
    Decline,
    /// The question was dismissed, or no user was present.
    Cancel,
}

/// Handler of the questions of servers.
#[async_trait]
pub trait Elicitor: Send + Sync + 'static {
    /// Answers a question. Dropping the future withdraws it.
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer;
}

const _: fn(&dyn Elicitor) = |_| {};

/// Dismisses every question.
#[derive(Clone, Copy, Debug, Default)]
pub struct DismissAll;

#[async_trait]
impl Elicitor for DismissAll {
    async fn elicit(&self, _question: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Cancel
    }
}

impl Elicitation {
    /// Returns the question of a request; `None` for an unknown kind.
    pub(crate) fn from_params(server: &ServerName, params: ElicitRequestParams) -> Option<Self> {
        let (message, request) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                (message, ElicitationRequest::Form(serde_json::to_value(requested_schema).ok()?))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message, ElicitationRequest::Url(url))
            }
            _ => return None,
        };
        Some(Self { server: server.clone(), message, request })
    }

    /// Returns the values, with defaults for missing values.
    pub(crate) fn complete(&self, mut values: Map<String, Value>) -> Map<String, Value> {
        let ElicitationRequest::Form(schema) = &self.request else { return Map::new() };
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if let Some(default) = property.get("default") {
                values.entry(name).or_insert_with(|| default.clone());
            }
        }
        values
    }
}

impl ElicitationAnswer {
    pub(crate) fn into_result(self, question: &Elicitation) -> ElicitResult {
        match self {
            Self::Accept(values) => {
                let result = ElicitResult::new(ElicitationAction::Accept);
                match question.request {
                    ElicitationRequest::Form(_) => {
                        result.with_content(Value::Object(question.complete(values)))
                    }
                    ElicitationRequest::Url(_) => result,
                }
            }
            Self::Decline => ElicitResult::new(ElicitationAction::Decline),
            Self::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }
}

/// Shows no values: they may be secrets.
impl fmt::Debug for ElicitationAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept(values) => {
                f.debug_tuple("Accept").field(&values.keys().collect::<Vec<_>>()).finish()
            }
            Self::Decline => f.write_str("Decline"),
            Self::Cancel => f.write_str("Cancel"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_values_take_their_defaults() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ada"},
            "age": {"type": "integer", "default": 36},
            "city": {"type": "string"},
        }});
        let (server, message) = ("s".parse().unwrap(), String::new());
        let question = Elicitation { server, message, request: ElicitationRequest::Form(schema) };
        let given = Map::from_iter([("age".to_owned(), json!(40))]);
        let result = ElicitationAnswer::Accept(given).into_result(&question);
        assert_eq!(result.content, Some(json!({"name": "Ada", "age": 40})));
        assert_eq!(ElicitationAnswer::Decline.into_result(&question).content, None);
    }

    #[test]
    fn values_are_not_shown() {
        let answer = ElicitationAnswer::Accept(Map::from_iter([("password".to_owned(), json!("s3cret"))]));
        assert_eq!(format!("{answer:?}"), r#"Accept(["password"])"#);
    }
}
