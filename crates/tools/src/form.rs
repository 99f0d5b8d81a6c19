//! The parts of a tool that are the same for all calls: definition, compiled schema, kind, limits, aliases.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use pintle_llm::schema::CompiledSchema;
use pintle_llm::{ToolDefinition, ToolItem};
use serde_json::{Value, json};

use crate::error::{DefinitionError, ToolError};
use crate::schema;
use crate::tool::{DynTool, Properties, Tool};
use crate::truncate::TruncationRule;

/// The definition of a tool with its compiled schema, and the rules for its arguments and output.
///
/// Deriving and compiling a schema costs far more than registering a tool, so both happen on first use where
/// [`ToolForm::shared`] allows it.
pub(crate) struct ToolForm {
    /// The definition, with a placeholder for a schema that has not been derived yet.
    base: ToolDefinition,
    kind: String,
    truncation: TruncationRule,
    aliases: Vec<(String, String)>,
    /// Derives the schema; `None` if `base` contains it.
    derive_parameters: Option<fn() -> Value>,
    definition: OnceLock<ToolItem>,
    /// The compiled schema, or the reason why it cannot be compiled.
    validator: OnceLock<Result<CompiledSchema, String>>,
}

impl ToolForm {
    /// Returns the form of this tool, with its schema compiled.
    ///
    /// # Errors
    ///
    /// A name or a schema that no provider would accept.
    pub(crate) fn from_tool(tool: &dyn DynTool) -> Result<Self, DefinitionError> {
        let base = tool.definition()?;
        let validator = schema::compile(&base.parameters)
            .map_err(|source| DefinitionError::refused(base.name.clone(), source))?;
        let kind = tool.canonical_kind().unwrap_or_else(|| base.name.clone());
        let truncation = tool.truncation().unwrap_or_else(|| TruncationRule::of_kind(&kind));
        Ok(Self {
            base,
            kind,
            truncation,
            aliases: tool.aliases(),
            derive_parameters: None,
            definition: OnceLock::new(),
            validator: OnceLock::from(Ok(validator)),
        })
    }

    /// Returns the form that is shared in this process by all tools of this type with the same name and texts.
    ///
    /// The first call of [`definition`](Self::definition) derives the schema, and the first call of
    /// [`validator`](Self::validator) compiles it. It must therefore depend on the type of the input alone.
    ///
    /// # Errors
    ///
    /// A name that no provider would accept.
    pub(crate) fn shared<T: Tool>(tool: &T) -> Result<Arc<Self>, DefinitionError> {
        Self::shared_by_type(
            TypeId::of::<T>(),
            &Properties::from_tool(tool),
            schema::parameters_of::<T::Input>,
        )
    }

    /// Not generic, so that it is compiled once and not for each tool.
    fn shared_by_type(
        tool: TypeId,
        properties: &Properties<'_>,
        derive_parameters: fn() -> Value,
    ) -> Result<Arc<Self>, DefinitionError> {
        static FORMS: LazyLock<Mutex<HashMap<TypeId, Arc<ToolForm>>>> = LazyLock::new(Mutex::default);
        let forms = || FORMS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = forms().get(&tool).cloned();
        if let Some(form) = known.filter(|form| form.is_of(properties)) {
            return Ok(form);
        }
        let form = Arc::new(Self {
            base: properties.definition(json!({"type": "object"}))?,
            kind: properties.kind.to_owned(),
            truncation: properties.truncation,
            aliases: properties.owned_aliases(),
            derive_parameters: Some(derive_parameters),
            definition: OnceLock::new(),
            validator: OnceLock::new(),
        });
        // The first of several wordings is kept; the others are not shared.
        forms().entry(tool).or_insert_with(|| Arc::clone(&form));
        Ok(form)
    }

    /// Returns the name that the model calls.
    pub(crate) fn name(&self) -> &str {
        &self.base.name
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

    /// Returns the complete definition; the first call derives the schema.
    pub(crate) fn definition(&self) -> &ToolItem {
        self.definition.get_or_init(|| {
            let mut definition = self.base.clone();
            if let Some(derive) = self.derive_parameters {
                definition.parameters = derive();
            }
            ToolItem::from(definition)
        })
    }

    /// Returns the compiled schema of the arguments; the first call compiles it.
    ///
    /// # Errors
    ///
    /// A schema that cannot be compiled. The tool can then not be called.
    pub(crate) fn validator(&self) -> Result<&CompiledSchema, ToolError> {
        let compile = || schema::compile(&self.definition().parameters).map_err(|error| error.to_string());
        self.validator.get_or_init(compile).as_ref().map_err(|why| {
            let text = format!(
                "tool `{}` cannot be called: the schema of its arguments is wrong: {why}",
                self.name()
            );
            ToolError::failed(text)
        })
    }

    /// Returns whether both are the same for a model and the pipeline.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.definition() == other.definition()
            && self.kind == other.kind
            && self.truncation == other.truncation
            && self.aliases == other.aliases
    }

    /// Returns whether this is the form of a tool with these properties. The type is known to be the same.
    fn is_of(&self, properties: &Properties<'_>) -> bool {
        properties.match_definition(&self.base, &self.aliases)
            && self.kind == properties.kind
            && self.truncation == properties.truncation
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

#[cfg(test)]
mod tests;
