//! The tools that a model may call (loop specification, sections 3.7 and 3.8).

use std::fmt;
use std::sync::{Arc, OnceLock};

use pintle_llm::schema::CompiledSchema;
use pintle_llm::{ToolDefinition, ToolList};

use crate::error::{DefinitionError, ToolError};
use crate::form::ToolForm;
use crate::similarity::most_similar;
use crate::tool::{DynTool, Effect, Tool};
use crate::truncate::TruncationRule;

/// Tools that a model may call although its requests do not define them, for example after it has found them by a
/// search.
///
/// They are looked up when they are called, so that tools can appear and disappear without a change of the requests.
pub trait DeferredTools: Send + Sync {
    /// Returns the tool with this name.
    fn find(&self, name: &str) -> Option<Arc<RegisteredTool>>;

    /// Returns the names of all tools, for a hint after a call of a tool that does not exist.
    fn names(&self) -> Vec<String>;
}

const _: fn(&dyn DeferredTools) = |_| {};

/// An ordered set of tools. Cheap to clone; a clone is independent.
///
/// The model sees the tools in the order of registration. Registering a tool under an existing name replaces that tool
/// and keeps its position.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    tools: Vec<Arc<RegisteredTool>>,
    deferred: Option<Arc<dyn DeferredTools>>,
    /// Whether arguments are used unchanged; by default, obvious mistakes are repaired.
    exact_arguments: bool,
    /// The definitions of all tools, after the first request for them.
    definitions: OnceLock<ToolList>,
}

/// A registered tool. Registries share it when they are cloned.
pub struct RegisteredTool {
    form: Arc<ToolForm>,
    tool: Arc<dyn DynTool>,
}

impl ToolRegistry {
    /// Creates a registry without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, or replaces the one with the same name. Its schema is compiled once, here.
    ///
    /// # Errors
    ///
    /// A name or a schema that no provider would accept; the registry stays unchanged. Without the feature `jsonschema`, also
    /// a schema with keywords that [types do not need](pintle_llm::schema).
    pub fn register(&mut self, tool: impl DynTool) -> Result<(), DefinitionError> {
        self.register_shared(Arc::new(tool))
    }

    /// As [`ToolRegistry::register`], for a shared tool.
    ///
    /// # Errors
    ///
    /// As for [`ToolRegistry::register`].
    pub fn register_shared(&mut self, tool: Arc<dyn DynTool>) -> Result<(), DefinitionError> {
        let form = Arc::new(ToolForm::from_tool(tool.as_ref())?);
        self.insert_with(form, tool);
        Ok(())
    }

    /// As [`ToolRegistry::register`], but derives the schema when a definition is first requested and compiles it at
    /// the first call, each once per process for all tools of this type with the same name and texts.
    ///
    /// The schema must depend on the type of the input alone. A hand-written
    /// [`JsonSchema`](schemars::JsonSchema) with values known only at run time needs [`ToolRegistry::register`]. A test
    /// should call [`ToolRegistry::verify_definitions`]. If the schema is wrong nevertheless, each call of the tool
    /// fails.
    ///
    /// # Errors
    ///
    /// A name that no provider would accept; the registry stays unchanged.
    pub fn register_static(&mut self, tool: impl Tool) -> Result<(), DefinitionError> {
        let form = ToolForm::shared(&tool)?;
        self.insert_with(form, Arc::new(tool));
        Ok(())
    }

    /// Adds a tool of another registry, or replaces the one with the same name.
    pub fn insert(&mut self, tool: Arc<RegisteredTool>) {
        match self.tools.iter_mut().find(|known| known.name() == tool.name()) {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
        self.definitions = OnceLock::new();
    }

    pub(crate) fn insert_with(&mut self, form: Arc<ToolForm>, tool: Arc<dyn DynTool>) {
        self.insert(Arc::new(RegisteredTool { form, tool }));
    }

    /// Removes a tool; `false` if no tool has this name.
    pub fn unregister(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|tool| tool.name() != name);
        self.definitions = OnceLock::new();
        self.tools.len() != before
    }

    /// Derives and compiles every definition again and compares it with the registered one. For tests of code that
    /// calls [`ToolRegistry::register_static`].
    ///
    /// # Errors
    ///
    /// The first tool that [`ToolRegistry::register`] would refuse, or would register with another definition.
    pub fn verify_definitions(&self) -> Result<(), DefinitionError> {
        for RegisteredTool { form, tool } in self.tools.iter().map(AsRef::as_ref) {
            if !form.is_like(&ToolForm::from_tool(tool.as_ref())?) {
                return Err(DefinitionError::refused(
                    form.name(),
                    "it is registered with another definition",
                ));
            }
        }
        Ok(())
    }

    /// Sets whether obvious mistakes in arguments are repaired before a call is refused. Default: `true`.
    ///
    /// Repairs are: a number or JSON in a string, `5.0` for an integer, `null` for an optional argument, and another
    /// agent's name for a parameter. Each is reported as an [`ArgumentRepair`](crate::ArgumentRepair) of the prepared
    /// call.
    pub fn set_argument_repair(&mut self, repair: bool) {
        self.exact_arguments = !repair;
    }

    /// Returns whether arguments are repaired; see [`ToolRegistry::set_argument_repair`].
    #[must_use]
    pub fn repairs_arguments(&self) -> bool {
        !self.exact_arguments
    }

    /// Returns the tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Sets additional tools that can be called without being defined in requests. Default: none.
    pub fn set_deferred(&mut self, tools: Option<Arc<dyn DeferredTools>>) {
        self.deferred = tools;
    }

    /// Returns the tool for a call with this name: a registered one, or otherwise a [deferred](Self::set_deferred) one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.get(name).cloned().or_else(|| self.deferred.as_ref()?.find(name))
    }

    /// Returns the definitions for the model, in order. Registries that share a tool share its definition.
    #[must_use]
    pub fn definitions(&self) -> ToolList {
        let list = || self.tools.iter().map(|tool| tool.form.definition().clone()).collect();
        self.definitions.get_or_init(list).clone()
    }

    /// Returns all names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// Returns up to three names of callable tools that are similar to `name`, the most similar first.
    #[must_use]
    pub fn similar_names(&self, name: &str) -> Vec<String> {
        let deferred = self.deferred.as_ref().map(|deferred| deferred.names()).unwrap_or_default();
        let names = self.names().chain(deferred.iter().map(String::as_str));
        most_similar(name, names).into_iter().map(str::to_owned).collect()
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRegistry")
            .field("tools", &self.tools)
            .field("deferred", &self.deferred.is_some())
            .field("exact_arguments", &self.exact_arguments)
            .finish_non_exhaustive()
    }
}

impl IntoIterator for ToolRegistry {
    type Item = Arc<RegisteredTool>;
    type IntoIter = std::vec::IntoIter<Arc<RegisteredTool>>;

    /// Returns the tools in order.
    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter()
    }
}

impl RegisteredTool {
    /// Compiles the schema of a tool that is not in a registry, such as a [deferred](DeferredTools) one.
    ///
    /// # Errors
    ///
    /// As for [`ToolRegistry::register`].
    pub fn new(tool: Arc<dyn DynTool>) -> Result<Self, DefinitionError> {
        Ok(Self { form: Arc::new(ToolForm::from_tool(tool.as_ref())?), tool })
    }

    /// Returns the name that the model calls.
    #[must_use]
    pub fn name(&self) -> &str {
        self.form.name()
    }

    /// Returns the definition for the model.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        self.form.definition()
    }

    /// Returns the canonical name that determines output limits.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.form.kind()
    }

    /// Returns the default limits on the tool's output.
    #[must_use]
    pub fn truncation(&self) -> TruncationRule {
        self.form.truncation()
    }

    /// Returns the side effect of a call.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.tool.effect()
    }

    /// Returns whether repeating a call does no harm.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.tool.is_repeatable()
    }

    /// Returns whether a call may take unlimited time.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.tool.waits()
    }

    pub(crate) fn aliases(&self) -> &[(String, String)] {
        self.form.aliases()
    }

    /// As [`ToolForm::validator`].
    pub(crate) fn validator(&self) -> Result<&CompiledSchema, ToolError> {
        self.form.validator()
    }

    pub(crate) fn tool(&self) -> &dyn DynTool {
        self.tool.as_ref()
    }
}

impl fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredTool")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .field("effect", &self.effect())
            .finish_non_exhaustive()
    }
}
