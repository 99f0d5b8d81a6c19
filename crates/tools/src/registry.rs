//! The tools that a model may call (loop specification, sections 3.7 and 3.8).

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use pintle_llm::{ToolDefinition, ToolList};

use crate::error::{DefinitionError, ToolError};
use crate::form::ToolForm;
use crate::tool::{DynTool, Effect, Tool};
use crate::truncate::TruncationRule;

/// An ordered set of tools. Cheap to clone; a clone is independent.
///
/// The order of registration is the order in which the model sees them. A tool of a name that is already there
/// takes its place.
#[derive(Clone, Debug, Default)]
pub struct ToolRegistry {
    tools: Vec<Arc<RegisteredTool>>,
    /// Whether arguments are taken as they come; by default, plain mistakes are mended.
    exact_arguments: bool,
    /// What the model is told of these tools, once somebody has asked.
    definitions: OnceLock<ToolList>,
}

/// A tool in the form that it was registered with.
pub struct RegisteredTool {
    form: Arc<ToolForm>,
    tool: Arc<dyn DynTool>,
}

impl ToolRegistry {
    /// A registry without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, or puts it in the place of one with the same name. Its schema is compiled here, once.
    ///
    /// # Errors
    ///
    /// A name or a schema that is not as the specification wants it; the registry is then as it was.
    pub fn register(&mut self, tool: impl DynTool) -> Result<(), DefinitionError> {
        self.register_shared(Arc::new(tool))
    }

    /// As [`ToolRegistry::register`], for a tool that is shared with others.
    ///
    /// # Errors
    ///
    /// As for [`ToolRegistry::register`].
    pub fn register_shared(&mut self, tool: Arc<dyn DynTool>) -> Result<(), DefinitionError> {
        let form = Arc::new(ToolForm::of(tool.as_ref())?);
        self.register_as(form, tool);
        Ok(())
    }

    /// As [`ToolRegistry::register`], for a tool whose definition is known to be right because a test has called
    /// [`ToolRegistry::prove`]: its schema is derived and compiled when that is first needed, and once in a process. See
    /// [`ToolForm::proven`] for what that asks of a tool.
    ///
    /// # Errors
    ///
    /// A name that is not as the specification wants it; the registry is then as it was.
    pub fn register_proven(&mut self, tool: impl Tool) -> Result<(), DefinitionError> {
        let form = ToolForm::proven(&tool)?;
        self.register_as(form, Arc::new(tool));
        Ok(())
    }

    /// Makes the form of each tool anew, with its schema compiled, and compares. For the tests of those who call
    /// [`ToolRegistry::register_proven`].
    ///
    /// # Errors
    ///
    /// The first tool that [`ToolRegistry::register`] would refuse, or whose form is not the one it would get there.
    pub fn prove(&self) -> Result<(), DefinitionError> {
        for RegisteredTool { form, tool } in self.tools.iter().map(AsRef::as_ref) {
            if !form.is_like(&ToolForm::of(tool.as_ref())?) {
                return Err(DefinitionError::refused(form.name(), "it is registered in another form"));
            }
        }
        Ok(())
    }

    /// As [`ToolRegistry::register_shared`], for a tool of a form that was made before. Calls are judged by the form, and
    /// the tool makes them.
    pub fn register_as(&mut self, form: Arc<ToolForm>, tool: Arc<dyn DynTool>) {
        let entry = Arc::new(RegisteredTool { form, tool });
        match self.tools.iter_mut().find(|known| known.name() == entry.name()) {
            Some(known) => *known = entry,
            None => self.tools.push(entry),
        }
        self.definitions = OnceLock::new();
    }

    /// Takes a tool out; `false` if there was none of this name.
    pub fn unregister(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|tool| tool.name() != name);
        self.definitions = OnceLock::new();
        self.tools.len() != before
    }

    /// Whether plain mistakes in arguments are mended before a call is refused, as they are by default: a number in
    /// a text, `5.0` for an integer, `null` for what is optional, another agent's name for a parameter, an object in
    /// a text. Each repair is an [`ArgumentRepair`](crate::ArgumentRepair) of the prepared call.
    pub fn set_argument_repair(&mut self, repair: bool) {
        self.exact_arguments = !repair;
    }

    /// As [`ToolRegistry::set_argument_repair`] set it.
    #[must_use]
    pub fn repairs_arguments(&self) -> bool {
        !self.exact_arguments
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// What the model is told, in order. Registries that have a tool in common share its definition.
    #[must_use]
    pub fn definitions(&self) -> ToolList {
        let list = || self.tools.iter().map(|tool| tool.form.definition().clone()).collect();
        self.definitions.get_or_init(list).clone()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// Returns up to three registered names with a similarity above 0.8, the most similar first; none for a text longer
    /// than any name.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        const MIN_SIMILARITY: f64 = 0.8;
        const LONGEST: usize = 128;
        if name.len() > LONGEST {
            return Vec::new();
        }
        let wanted = name.to_ascii_lowercase();
        let mut scored: Vec<(f64, &str)> = self
            .names()
            .map(|known| (strsim::jaro_winkler(&wanted, &known.to_ascii_lowercase()), known))
            .filter(|(score, _)| *score > MIN_SIMILARITY)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored.into_iter().take(3).map(|(_, known)| known).collect()
    }
}

impl RegisteredTool {
    /// The name that the model calls.
    #[must_use]
    pub fn name(&self) -> &str {
        self.form.name()
    }

    /// What the model is told.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        self.form.definition()
    }

    /// The canonical name that output limits are keyed by.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.form.kind()
    }

    /// How much of its output the model reads, where the host sets nothing else.
    #[must_use]
    pub fn truncation(&self) -> TruncationRule {
        self.form.truncation()
    }

    /// What a call does to the world.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.tool.effect()
    }

    /// Whether the same call may be made twice without harm.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.tool.is_repeatable()
    }

    /// Whether a call may take as long as it likes.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.tool.waits()
    }

    pub(crate) fn aliases(&self) -> &[(String, String)] {
        self.form.aliases()
    }

    /// As [`ToolForm::validator`].
    pub(crate) fn validator(&self) -> Result<&Validator, ToolError> {
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
