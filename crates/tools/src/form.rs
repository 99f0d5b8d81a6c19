//! The parts of a tool that do not change from call to call: definition, compiled schema, kind, limits, aliases.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use pintle_llm::{ToolDefinition, ToolItem};
use serde_json::{Value, json};

use crate::error::{DefinitionError, ToolError};
use crate::schema;
use crate::tool::{self, DynTool, Tool};
use crate::truncate::TruncationRule;

/// The definition of a tool with its compiled schema, and the rules for its arguments and output.
///
/// Deriving and compiling a schema costs far more than registering a tool, so both happen on first use where
/// [`ToolForm::shared`] allows it.
pub(crate) struct ToolForm {
    /// The definition, with a stand-in for the schema if that has not been derived yet.
    base: ToolDefinition,
    kind: String,
    truncation: TruncationRule,
    aliases: Vec<(String, String)>,
    /// Derives the schema; `None` if `base` has it.
    derive_parameters: Option<fn() -> Value>,
    definition: OnceLock<ToolItem>,
    /// The compiled schema, or why it cannot be compiled.
    validator: OnceLock<Result<Validator, String>>,
}

impl ToolForm {
    /// Returns the form of this tool, with its schema compiled.
    ///
    /// # Errors
    ///
    /// A name or a schema that no provider would accept.
    pub(crate) fn of(tool: &dyn DynTool) -> Result<Self, DefinitionError> {
        let base = tool.definition()?;
        let validator = schema::compile(&base.parameters)
            .map_err(|source| DefinitionError::refused(base.name.clone(), source))?;
        let form = Self::uncompiled(tool, base, None);
        let _first = form.validator.set(Ok(validator));
        Ok(form)
    }

    /// Returns the form that all tools of this type with the same name and texts share in this process.
    ///
    /// The schema is derived when [`definition`](Self::definition) is first called, and compiled when
    /// [`validator`](Self::validator) is. It must therefore depend on the type of the input alone.
    ///
    /// # Errors
    ///
    /// A name that no provider would accept.
    pub(crate) fn shared<T: Tool>(tool: &T) -> Result<Arc<Self>, DefinitionError> {
        static FORMS: LazyLock<Mutex<HashMap<TypeId, Arc<ToolForm>>>> = LazyLock::new(Mutex::default);
        let forms = || FORMS.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is not held while the tool is asked, since the code of the tool may register others.
        let known = forms().get(&TypeId::of::<T>()).cloned();
        if let Some(form) = known.filter(|form| form.is_of(tool)) {
            return Ok(form);
        }
        let base = tool::definition_with(tool, json!({"type": "object"}))?;
        let form = Arc::new(Self::uncompiled(tool, base, Some(schema::parameters_of::<T::Input>)));
        // The first of several wordings is kept; the others are not shared.
        forms().entry(TypeId::of::<T>()).or_insert_with(|| Arc::clone(&form));
        Ok(form)
    }

    fn uncompiled(
        tool: &dyn DynTool,
        base: ToolDefinition,
        derive_parameters: Option<fn() -> Value>,
    ) -> Self {
        let kind = tool.canonical_kind().unwrap_or_else(|| base.name.clone());
        let truncation = tool.truncation().unwrap_or_else(|| TruncationRule::of_kind(&kind));
        Self {
            base,
            kind,
            truncation,
            aliases: tool.aliases(),
            derive_parameters,
            definition: OnceLock::new(),
            validator: OnceLock::new(),
        }
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
    /// A schema that cannot be compiled. No call of the tool can be made then.
    pub(crate) fn validator(&self) -> Result<&Validator, ToolError> {
        let compile = || schema::compile(&self.definition().parameters).map_err(|error| error.to_string());
        self.validator.get_or_init(compile).as_ref().map_err(|why| {
            let text = format!(
                "tool `{}` cannot be called: the schema of its arguments is wrong: {why}",
                self.name()
            );
            ToolError::failed(text)
        })
    }

    /// Returns whether a model and the pipeline would see no difference.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.definition() == other.definition()
            && self.kind == other.kind
            && self.truncation == other.truncation
            && self.aliases == other.aliases
    }

    /// Returns whether this is the form of `tool`, whose type is known to be the same.
    fn is_of(&self, tool: &impl Tool) -> bool {
        let aliases = self.aliases.iter().map(|(alias, parameter)| (alias.as_str(), parameter.as_str()));
        self.name() == tool.name()
            && self.base.description == tool.description()
            && self.base.grammar == tool.grammar()
            && self.kind == tool.kind()
            && self.truncation == Tool::truncation(tool)
            && aliases.eq(Tool::aliases(tool).iter().copied())
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
