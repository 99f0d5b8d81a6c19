//! What a tool is for those who call it.

mod proven;

use std::fmt;
use std::sync::{LazyLock, OnceLock};

use jsonschema::Validator;
use pintle_llm::ToolItem;

use crate::error::{DefinitionError, ToolError, ToolErrorKind};
use crate::schema;
use crate::tool::DynTool;
use crate::truncate::TruncationRule;

/// What a tool is for those who call it: its definition, the compiled schema of its arguments, and how its output is
/// cut.
///
/// To make one costs far more than to register a tool. A program that registers the same kind of tool again and again,
/// as one for each session, makes it once, with [`ToolForm::of`], and registers with
/// [`ToolRegistry::register_as`](crate::ToolRegistry::register_as). For a tool whose definition a test has proved, there
/// is [`ToolForm::proven`], which costs next to nothing.
pub struct ToolForm {
    name: String,
    kind: String,
    truncation: TruncationRule,
    aliases: Vec<(String, String)>,
    definition: LazyLock<ToolItem, MakeItem>,
    /// What is wrong with the schema, if it cannot be compiled.
    validator: OnceLock<Result<Validator, String>>,
}

type MakeItem = Box<dyn FnOnce() -> ToolItem + Send>;

impl ToolForm {
    /// That of this tool, with its schema compiled.
    ///
    /// # Errors
    ///
    /// A name or a schema that is not as the specification wants it.
    pub fn of(tool: &dyn DynTool) -> Result<Self, DefinitionError> {
        let definition = ToolItem::from(tool.definition()?);
        let validator = schema::compile(&definition.parameters)
            .map_err(|source| DefinitionError::refused(definition.name.clone(), source))?;
        let name = definition.name.clone();
        let kind = tool.canonical_kind().unwrap_or_else(|| name.clone());
        let truncation = tool.truncation().unwrap_or_else(|| TruncationRule::of_kind(&kind));
        Ok(Self {
            name,
            kind,
            truncation,
            aliases: tool.aliases(),
            definition: LazyLock::new(Box::new(|| definition)),
            validator: OnceLock::from(Ok(validator)),
        })
    }

    /// The name that the model calls.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    pub(crate) fn truncation(&self) -> TruncationRule {
        self.truncation
    }

    pub(crate) fn aliases(&self) -> &[(String, String)] {
        &self.aliases
    }

    pub(crate) fn definition(&self) -> &ToolItem {
        &self.definition
    }

    /// What judges arguments; compiled here if nobody has asked before.
    ///
    /// # Errors
    ///
    /// That the schema is none. No call of the tool can be made then.
    pub(crate) fn validator(&self) -> Result<&Validator, ToolError> {
        let compile = || schema::compile(&self.definition.parameters).map_err(|error| error.to_string());
        self.validator.get_or_init(compile).as_ref().map_err(|why| {
            let text =
                format!("tool `{}` cannot be called: the schema of its arguments is wrong: {why}", self.name);
            ToolError::new(ToolErrorKind::Failed, text)
        })
    }

    /// Whether a model and the pipeline would see no difference.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.definition() == other.definition()
            && self.kind == other.kind
            && self.truncation == other.truncation
            && self.aliases == other.aliases
    }
}

impl fmt::Debug for ToolForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolForm")
            .field("name", &self.name())
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
