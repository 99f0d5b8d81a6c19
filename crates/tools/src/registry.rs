//! The tools that a model may call (loop specification, sections 3.7 and 3.8).

use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use pintle_llm::{ToolDefinition, ToolItem, ToolList};

use crate::error::DefinitionError;
use crate::schema;
use crate::tool::{DynTool, Effect};
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

/// A tool with its schema compiled.
pub struct RegisteredTool {
    form: Arc<ToolForm>,
    tool: Arc<dyn DynTool>,
}

/// What a tool is for those who call it: its definition, the compiled schema of its arguments, and how its output is
/// cut.
///
/// To make one costs far more than to register a tool. A program that registers the same kind of tool again and again,
/// as one for each session, makes it once, with [`ToolForm::of`], and registers with
/// [`ToolRegistry::register_as`].
pub struct ToolForm {
    definition: ToolItem,
    kind: String,
    truncation: TruncationRule,
    aliases: Vec<(String, String)>,
    validator: Validator,
}

impl ToolForm {
    /// That of this tool.
    ///
    /// # Errors
    ///
    /// A name or a schema that is not as the specification wants it.
    pub fn of(tool: &dyn DynTool) -> Result<Self, DefinitionError> {
        let definition = ToolItem::from(tool.definition()?);
        let validator = schema::compile(&definition.parameters)
            .map_err(|source| DefinitionError::refused(definition.name.clone(), source))?;
        let kind = tool.canonical_kind().unwrap_or_else(|| definition.name.clone());
        let truncation = tool.truncation().unwrap_or_else(|| TruncationRule::of_kind(&kind));
        let aliases = tool.aliases();
        Ok(Self { definition, kind, truncation, aliases, validator })
    }

    /// The name that the model calls.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
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
        let list = || self.tools.iter().map(|tool| tool.form.definition.clone()).collect();
        self.definitions.get_or_init(list).clone()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// The known names that are like this one, the nearest first; at most three, and none for what is longer than
    /// any name.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        const LIKE: f64 = 0.6;
        const LONGEST: usize = 128;
        if name.len() > LONGEST {
            return Vec::new();
        }
        let wanted = name.to_ascii_lowercase();
        let mut scored: Vec<(f64, &str)> = self
            .names()
            .map(|known| (strsim::jaro_winkler(&wanted, &known.to_ascii_lowercase()), known))
            .filter(|(score, _)| *score >= LIKE)
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
        &self.form.definition
    }

    /// The canonical name that output limits are keyed by.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.form.kind
    }

    /// How much of its output the model reads, where the host sets nothing else.
    #[must_use]
    pub fn truncation(&self) -> TruncationRule {
        self.form.truncation
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
        &self.form.aliases
    }

    pub(crate) fn validator(&self) -> &Validator {
        &self.form.validator
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
