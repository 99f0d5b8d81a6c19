//! The constant properties of a typed tool.

use pintle_llm::{Grammar, ToolDefinition};
use serde_json::Value;

use super::Tool;
use crate::error::DefinitionError;
use crate::truncate::TruncationRule;

/// The properties of a [`Tool`] that do not depend on its input type.
///
/// Code that needs only these is compiled once and not for each tool.
pub(crate) struct Properties<'t> {
    name: &'t str,
    description: &'t str,
    grammar: Option<Grammar>,
    pub(crate) kind: &'t str,
    pub(crate) truncation: TruncationRule,
    aliases: &'t [(&'static str, &'static str)],
}

impl<'t> Properties<'t> {
    pub(crate) fn from_tool(tool: &'t impl Tool) -> Self {
        Self {
            name: tool.name(),
            description: tool.description(),
            grammar: tool.grammar(),
            kind: tool.kind(),
            truncation: tool.truncation(),
            aliases: tool.aliases(),
        }
    }

    /// Returns the definition with this schema.
    ///
    /// # Errors
    ///
    /// A name or a schema that no provider would accept.
    pub(crate) fn definition(&self, parameters: Value) -> Result<ToolDefinition, DefinitionError> {
        let definition = ToolDefinition::new(self.name, self.description, parameters)
            .map_err(|source| DefinitionError::refused(self.name, source))?;
        Ok(match &self.grammar {
            Some(grammar) => definition.with_grammar(grammar.clone()),
            None => definition,
        })
    }

    pub(crate) fn owned_aliases(&self) -> Vec<(String, String)> {
        let owned = |(alias, parameter): &(&str, &str)| ((*alias).to_owned(), (*parameter).to_owned());
        self.aliases.iter().map(owned).collect()
    }

    /// Returns whether a definition, except its schema, and aliases match this tool.
    pub(crate) fn match_definition(&self, definition: &ToolDefinition, aliases: &[(String, String)]) -> bool {
        let aliases = aliases.iter().map(|(alias, parameter)| (alias.as_str(), parameter.as_str()));
        self.name == definition.name
            && self.description == definition.description
            && self.grammar == definition.grammar
            && aliases.eq(self.aliases.iter().copied())
    }
}
