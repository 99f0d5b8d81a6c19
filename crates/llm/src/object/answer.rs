//! Answers of a conversation that match a schema, with a bounded number of repairs.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::schema::enforceable_format;
use super::strip_fence;
use crate::error::Error;
use crate::generate::schema;
use crate::request::ResponseFormat;
use crate::schema::CompiledSchema;

/// Checks the answers of a conversation against a JSON Schema: any JSON Schema, also without an object at its root.
///
/// [`generate_object`](super::generate_object) makes one request. This is for those who drive a conversation with tools
/// themselves and want its last message to be an object: a state machine without I/O, for any provider.
///
/// ```
/// use pintle_llm::{AnswerSchema, Verdict};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
/// let mut answers = AnswerSchema::new(schema, 1)?;
/// let Verdict::AskAgain(message) = answers.check("All is well.") else { panic!("no JSON") };
/// assert!(message.contains("not JSON"));
/// assert_eq!(answers.check("```json\n{\"ok\": true}\n```"), Verdict::Accept(json!({"ok": true})));
/// # Ok::<(), pintle_llm::Error>(())
/// ```
#[derive(Debug)]
pub struct AnswerSchema {
    schema: Value,
    validator: CompiledSchema,
    repairs: u32,
    /// Repairs that were asked for since the last accepted answer.
    asked: u32,
}

/// What to do with an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<T = Value> {
    /// It matches. This is its value.
    Accept(T),
    /// It does not. Send this message to the model and check the next answer.
    AskAgain(String),
    /// It does not, and no more repairs are allowed.
    Fail(UnmatchedAnswer),
}

/// No answer matched the schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no answer matched the schema after {repairs} repairs: {problem}")]
#[non_exhaustive]
pub struct UnmatchedAnswer {
    /// Number of repairs that were asked for.
    pub repairs: u32,
    /// Problem of the last answer.
    pub problem: String,
}

impl AnswerSchema {
    /// Creates the check. A model is asked at most `repairs` times to repair its answer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if `schema` is not a JSON Schema, or refers to another
    /// document, which is never fetched.
    pub fn new(schema: Value, repairs: u32) -> Result<Self, Error> {
        let validator = schema::compile(&schema, "the answer")?;
        Ok(Self { schema, validator, repairs, asked: 0 })
    }

    /// As [`new`](Self::new), with the schema of a type. Doc comments of its fields describe them to the model.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn for_type<T: JsonSchema>(repairs: u32) -> Result<Self, Error> {
        Self::new(schema::schema_of::<T>(), repairs)
    }

    /// Returns what to tell the model before its first answer, for the system prompt or the message of the user.
    #[must_use]
    pub fn instructions(&self) -> String {
        format!(
            "When you are done, your last message must be JSON that matches this JSON Schema, without any other text:\n{}",
            self.schema
        )
    }

    /// Returns the format for the requests of the conversation, for a provider that can enforce the schema beside tools. `None`
    /// if the root of the schema is no object, or if the form that providers enforce would exclude values.
    #[must_use]
    pub fn response_format(&self) -> Option<ResponseFormat> {
        enforceable_format(&self.schema)
    }

    /// Checks an answer. A Markdown fence around it is removed.
    pub fn check(&mut self, answer: &str) -> Verdict {
        self.check_as(answer)
    }

    /// As [`check`](Self::check), with the answer as a value of a type. An answer that matches the schema and not the type is
    /// sent back as well.
    pub fn check_as<T: DeserializeOwned>(&mut self, answer: &str) -> Verdict<T> {
        let problem = match self.parse(answer) {
            Ok(value) => {
                self.asked = 0;
                return Verdict::Accept(value);
            }
            Err(problem) => problem,
        };
        if self.asked >= self.repairs {
            return Verdict::Fail(UnmatchedAnswer { repairs: self.asked, problem });
        }
        self.asked = self.asked.saturating_add(1);
        Verdict::AskAgain(format!(
            "Your last message cannot be used: {problem}\nReply with the corrected JSON alone, for this JSON Schema:\n{}",
            self.schema
        ))
    }

    /// Parses an answer, or returns its problem.
    fn parse<T: DeserializeOwned>(&self, answer: &str) -> Result<T, String> {
        let value: Value =
            serde_json::from_str(strip_fence(answer)).map_err(|error| format!("it is not JSON: {error}"))?;
        if let Some(violations) = schema::violations(&self.validator, &value) {
            return Err(format!("it does not match the schema: {violations}"));
        }
        serde_json::from_value(value).map_err(|error| format!("it does not match the type: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answers(repairs: u32) -> AnswerSchema {
        AnswerSchema::new(json!({"type": "array", "items": {"type": "integer"}}), repairs).expect("a schema")
    }

    #[test]
    fn repairs_are_bounded() {
        let mut answers = answers(2);
        assert!(answers.instructions().contains(r#""type":"integer""#));
        for _ in 0..2 {
            let Verdict::AskAgain(message) = answers.check(r#"["a"]"#) else { panic!("a repair is left") };
            assert!(message.contains("`/0`") && message.contains("JSON Schema"), "{message}");
        }
        let Verdict::Fail(failure) = answers.check("none") else { panic!("no repair is left") };
        assert_eq!(failure.repairs, 2);
        assert!(failure.problem.starts_with("it is not JSON"), "{failure}");
    }

    #[test]
    fn an_answer_can_match_the_schema_and_not_the_type() {
        let mut answers = AnswerSchema::new(json!({"type": "integer"}), 1).expect("a schema");
        let Verdict::AskAgain(message) = answers.check_as::<u8>("300") else { panic!("a repair is left") };
        assert!(message.contains("it does not match the type"), "{message}");
        assert_eq!(answers.check_as::<u8>("30"), Verdict::Accept(30));
        assert!(AnswerSchema::for_type::<Vec<u8>>(0).expect("a schema").instructions().contains("array"));
    }

    #[test]
    fn accepted_answer_starts_over() {
        let mut answers = answers(1);
        assert!(matches!(answers.check("{}"), Verdict::AskAgain(_)));
        assert_eq!(answers.check("[1, 2]"), Verdict::Accept(json!([1, 2])));
        assert!(matches!(answers.check("{}"), Verdict::AskAgain(_)));
    }

    #[test]
    fn without_repairs_the_first_answer_counts() {
        assert!(matches!(answers(0).check(""), Verdict::Fail(UnmatchedAnswer { repairs: 0, .. })));
    }

    #[test]
    fn other_documents_are_not_fetched() {
        for schema in [json!({"type": 1}), json!({"$ref": "http://127.0.0.1:9/schema.json"})] {
            AnswerSchema::new(schema, 1).expect_err("no usable schema");
        }
    }
}
