//! Tool definitions and tool choice (client specification, sections 5.1 and 5.3).

mod list;
mod root;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::list::{ToolItem, ToolList};

use crate::error::{Error, ErrorKind};

/// The longest tool name that every provider accepts, in characters.
pub const MAX_TOOL_NAME: usize = 64;

/// Definition of a tool, as sent to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// Unique name: a letter, then letters, digits and underscores, at most 64 characters.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema with an object at its root.
    pub parameters: Value,
    /// Grammar of the input, for tools that take free text. Only some providers support such tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<Grammar>,
}

/// Grammar of a custom tool's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grammar {
    /// Notation, such as `lark`.
    pub syntax: String,
    /// Text of the grammar.
    pub definition: String,
}

impl ToolDefinition {
    /// Creates a definition after checking name and schema.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if the name is invalid or the root of the schema is not an object.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
    ) -> Result<Self, Error> {
        let name = name.into();
        check_name(&name)?;
        if parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "the parameters of tool `{name}` must be a JSON Schema with \"type\": \"object\" at the root"
                ),
            ));
        }
        Ok(Self { name, description: description.into(), parameters, grammar: None })
    }

    /// Returns the parameters for providers that refuse `anyOf`, `oneOf`, `allOf`, `not`, `enum` and a `$ref` to a definition at the
    /// root of a schema. They have the properties of all alternatives and of the definition, and require those that each
    /// alternative requires. Arguments are checked against [`parameters`](Self::parameters).
    #[must_use]
    pub fn parameters_without_choices(&self) -> Cow<'_, Value> {
        root::without_choices(&self.parameters)
    }

    /// Sets the grammar: a custom tool for providers that support them, a function for others.
    #[must_use]
    pub fn with_grammar(mut self, grammar: Grammar) -> Self {
        self.grammar = Some(grammar);
        self
    }
}

/// Tool choice mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", content = "tool_name", rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls, even if tools are defined.
    None,
    /// At least one call.
    Required,
    /// This tool.
    Named(String),
}

impl ToolChoice {
    /// Name of the mode in the specification.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Required => "required",
            Self::Named(_) => "named",
        }
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let mut chars = name.chars();
    let starts_well = chars.next().is_some_and(|first| first.is_ascii_alphabetic());
    if starts_well && chars.all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= MAX_TOOL_NAME {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Configuration,
        format!(
            "invalid tool name `{name}`: expected a letter, then letters, digits and underscores, at most {MAX_TOOL_NAME} characters"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_schemas_are_checked_at_definition() {
        let object = json!({"type": "object"});
        for good in ["a", "get_weather", "Read2", &"x".repeat(64)] {
            assert!(ToolDefinition::new(good, "", object.clone()).is_ok(), "{good}");
        }
        for bad in ["", "2x", "_x", "a-b", "a b", "é", &"x".repeat(65)] {
            let error = ToolDefinition::new(bad, "", object.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{bad}");
        }
        assert!(ToolDefinition::new("a", "", json!({"type": "array"})).is_err());
        assert!(ToolDefinition::new("a", "", json!({})).is_err());
    }
}
