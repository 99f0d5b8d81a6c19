//! Tool definitions and tool choice (client specification, sections 5.1 and 5.3).

mod list;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::list::{ToolItem, ToolList};

use crate::error::{Error, ErrorKind};

/// The longest tool name that every provider accepts, in characters.
pub const MAX_TOOL_NAME: usize = 64;

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// Unique: a letter, then letters, digits and underscores, 64 characters at most.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema with an object at its root.
    pub parameters: Value,
    /// For tools that take free text: the grammar it must fit. Only some providers have such tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grammar: Option<Grammar>,
}

/// The grammar of a custom tool's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grammar {
    /// The notation, such as `lark`.
    pub syntax: String,
    /// The grammar's text.
    pub definition: String,
}

impl ToolDefinition {
    /// A checked definition.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if the name or the schema's root is not as the specification wants it.
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

    /// With a grammar: a custom tool where the provider has such, a function elsewhere.
    #[must_use]
    pub fn with_grammar(mut self, grammar: Grammar) -> Self {
        self.grammar = Some(grammar);
        self
    }
}

/// Whether and how the model may use tools.
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
    /// The mode's name in the specification.
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
            "`{name}` is no tool name: expected a letter, then letters, digits and underscores, {MAX_TOOL_NAME} characters at most"
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
