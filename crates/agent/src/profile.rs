//! Profiles: the tools, prompt and limits that suit a model family (loop specification, section 3).

mod anthropic;
mod built_in;
mod compatible;
mod data;
mod family;
mod gemini;
mod openai;
mod skill;
mod subagent_tools;
mod toolset;
mod toolset_options;

use pintle_env::setters;
use std::path::Path;
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::{Capability, Catalog, Client, ModelInfo, ToolList};
use pintle_middleware::{TextToolCallForm, TextToolCalls};
use pintle_tools::{DefinitionError, DynTool, ToolRegistry, TruncationLimits};
use serde_json::{Map, Value};

pub(crate) use self::built_in::BuiltInTools;
pub use self::data::{ProfileData, ProfileDataError};
pub use self::family::{ModelFamily, UnknownFamily};
pub use self::subagent_tools::SubagentTools;
pub use self::toolset::Toolset;
use self::toolset::ToolsetParts;
pub use self::toolset_options::{SearchBy, ToolsetOptions};
use crate::project_docs::{PROJECT_DOC_BUDGET, ProjectDocs};
use crate::prompt::{self, EnvironmentContext, ProfileFacts, PromptLayer, SKILLS_BUDGET, SystemPrompt};
use crate::protocol::TokenBounds;

/// Tools, prompt, limits and request options for one model (loop specification, section 3.2). Plain data: the embedding
/// application can change any part or build its own.
///
/// Reasoning effort is not part of it: a session sets it on each request, and the adapter translates it. Parameters of
/// one provider go into `provider_options`, which is empty by default: beta headers as
/// `{"anthropic": {"beta_headers": [..]}}`, safety settings and grounding as `{"gemini": {..}}`.
///
/// ```
/// use pintle_agent::ProviderProfile;
/// use pintle_tools::{Effect, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct FindTicket {
///     /// Number of the ticket.
///     number: u64,
/// }
///
/// let find_ticket = tool_fn("find_ticket", "Returns the text of a ticket.", |input: FindTicket, _| async move {
///     Ok::<_, std::io::Error>(format!("Ticket {}: the button is cut off.", input.number))
/// });
/// let profile = ProviderProfile::anthropic("claude-opus-4-6")
///     .with_base_instructions("You answer questions about this project and its tickets.")
///     .with_tool(find_ticket.with_effect(Effect::Read))?
///     .without_tool("shell");
/// assert!(profile.tool_registry.names().any(|name| name == "find_ticket"));
/// assert!(profile.tool_registry.names().all(|name| name != "shell"));
/// # Ok::<(), pintle_tools::DefinitionError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderProfile {
    /// `openai`, `anthropic`, `gemini`, `openai-compatible`, or the name of a custom profile.
    pub id: String,
    /// Name of the client's provider that requests are sent to. Same as `id` by default.
    pub provider: String,
    /// Identifier of the model at its provider.
    pub model: String,
    /// Display name of the model; `None` if the model is not in the catalog.
    pub display_name: Option<String>,
    /// End of the training data, as the model's maker states it; `None` if unknown.
    pub knowledge_cutoff: Option<String>,
    /// First layer of the system prompt, in Markdown. Shared between sessions and clones of a profile.
    pub base_instructions: Arc<str>,
    /// Tools in the order in which the model sees them.
    pub tool_registry: ToolRegistry,
    /// Form of the tools for subagents that a session adds. A session adds none if this is `None`, if its depth limit
    /// ([`SessionConfig::subagents`](crate::SessionConfig::subagents)) is reached, or in a window below 16,384 tokens,
    /// where they would crowd out the work.
    pub subagent_tools: Option<SubagentTools>,
    /// Project documents of the prompt: names relative to a directory, later ones with higher precedence.
    pub doc_files: Vec<String>,
    /// Directories of skills: relative names, later ones with higher precedence, or absolute ones. By default
    /// `.agents/skills` and the family's own, such as `.claude/skills`. An empty list turns skills off.
    pub skill_dirs: Vec<String>,
    /// Provider-specific parameters, keyed by provider name as in [`pintle_llm::Request`].
    pub provider_options: Map<String, Value>,
    /// Whether the model reasons before it answers.
    pub supports_reasoning: bool,
    /// Whether responses can be streamed.
    pub supports_streaming: bool,
    /// Whether the model may make several calls in one response, which then run concurrently.
    pub supports_parallel_tool_calls: bool,
    /// Forms of tool calls that are recognised in the model's text, for servers that do not parse them
    /// ([`TextToolCalls`]). Empty by default: text is never taken for a call.
    pub text_tool_calls: Vec<TextToolCallForm>,
    /// Context window for input and output together, in tokens. A window below 100,000 limits the output of each tool
    /// call, the project documents and the list of skills to an eighth of it each, at four characters per token.
    pub context_window_size: u64,
    /// Maximum output tokens of one response; `None` if unknown.
    pub max_output_tokens: Option<u64>,
    /// Catalog entry of the model, for the prices of its calls; `None` if the catalog has no such model of this
    /// provider.
    pub pricing: Option<Box<ModelInfo>>,
    /// Whether no model of the profile has a price, as set by [`without_prices`](Self::without_prices).
    pub is_unpriced: bool,
}

/// Facts assumed of a model that is not in the catalog.
struct ModelDefaults {
    context_window_size: u64,
    supports_reasoning: bool,
}

impl ProviderProfile {
    /// Returns the token bounds for reservations under a budget: the bounds of the model family, or the default.
    pub(crate) fn token_bounds(&self) -> TokenBounds {
        let family = self.id.parse().ok();
        family.map_or_else(TokenBounds::default, ModelFamily::token_bounds)
    }

    /// Creates the profile for OpenAI's models: edits with `apply_patch` (section 3.4).
    #[must_use]
    pub fn openai(model: impl Into<String>) -> Self {
        openai::profile(model.into())
    }

    /// Creates the profile for Claude: edits with `edit_file`, two minutes per command (section 3.5).
    #[must_use]
    pub fn anthropic(model: impl Into<String>) -> Self {
        anthropic::profile(model.into())
    }

    /// Creates the profile for Gemini: edits with Gemini's form of `edit_file`, batch reading, directory listing
    /// (section 3.6).
    #[must_use]
    pub fn gemini(model: impl Into<String>) -> Self {
        gemini::profile(model.into())
    }

    /// Creates the profile for local and other models behind Chat Completions: short instructions, sequential tool calls.
    #[must_use]
    pub fn openai_compatible(model: impl Into<String>) -> Self {
        compatible::profile(model.into())
    }

    /// Returns the built-in profile for a provider: `openai`, `anthropic`, `gemini` or `openai-compatible`.
    ///
    /// # Errors
    ///
    /// [`UnknownFamily`] for any other name; its message lists the known ones.
    pub fn for_provider(provider: &str, model: impl Into<String>) -> Result<Self, UnknownFamily> {
        Ok(provider.parse::<ModelFamily>()?.profile(model))
    }

    /// Creates a custom profile: no instructions, no tools, `AGENTS.md` as the only project document, streaming, sequential
    /// tool calls, and a window of 32,768 tokens unless the catalog has the model.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>) -> Self {
        let id = id.into();
        let profile = Self {
            provider: id.clone(),
            id,
            model: String::new(),
            display_name: None,
            knowledge_cutoff: None,
            base_instructions: Arc::default(),
            tool_registry: ToolRegistry::new(),
            subagent_tools: None,
            doc_files: vec!["AGENTS.md".to_owned()],
            skill_dirs: vec![".agents/skills".to_owned()],
            provider_options: Map::new(),
            supports_reasoning: false,
            supports_streaming: true,
            supports_parallel_tool_calls: false,
            text_tool_calls: Vec::new(),
            context_window_size: 32_768,
            max_output_tokens: None,
            pricing: None,
            is_unpriced: false,
        };
        profile.with_model(model)
    }

    /// Returns the first model in the built-in catalog that supports tool calls; `None` for a provider without one.
    #[must_use]
    pub fn default_model(id: &str) -> Option<&'static str> {
        Catalog::built_in().latest(id, Some(Capability::Tools)).map(|model| model.id.as_str())
    }

    /// Returns the definitions of the profile's own tools, as sent to the model. A session adds tools for subagents:
    /// [`as_in_session`](Self::as_in_session).
    #[must_use]
    pub fn tools(&self) -> ToolList {
        self.tool_registry.definitions()
    }

    /// Returns the definitions for a request. Without skills, the built-in tool that loads them is left out. It can still
    /// be called.
    pub(crate) fn offered_tools(&self, has_skills: bool) -> ToolList {
        let tools = self.tools();
        if has_skills || !tools.iter().any(|tool| skill::loads_skills(tool)) {
            return tools;
        }
        tools.iter().filter(|tool| !skill::loads_skills(tool)).cloned().collect()
    }

    /// Reads the project documents and skills between `git_root` and the working directory, by this profile's names and
    /// within the limits of its window (section 6.5). Never fails; dropping the future stops the reading.
    pub async fn project_docs(&self, env: &dyn ExecutionEnvironment, git_root: Option<&Path>) -> ProjectDocs {
        let budget = PROJECT_DOC_BUDGET.min(self.text_budget());
        let docs = ProjectDocs::discover_within(env, git_root, &self.doc_files, budget).await;
        docs.with_skills_of(env, git_root, &self.skill_dirs).await
    }

    /// Builds the system prompt: all [layers](Self::prompt_layers), separated by blank lines. Git facts continue the
    /// environment block without one.
    #[must_use]
    pub fn build_system_prompt(
        &self,
        environment: &EnvironmentContext,
        docs: &ProjectDocs,
        user_instructions: Option<&str>,
    ) -> String {
        let layers = self.prompt_layers(environment, docs, user_instructions);
        SystemPrompt::from_layers(&layers).text
    }

    /// Returns the non-empty layers of the system prompt in order, the user's instructions last (section 6.1). Equal
    /// arguments give equal bytes.
    #[must_use]
    pub fn prompt_layers(
        &self,
        environment: &EnvironmentContext,
        docs: &ProjectDocs,
        user_instructions: Option<&str>,
    ) -> Vec<PromptLayer> {
        let tools = self.offered_tools(!docs.skills.is_empty());
        let facts = ProfileFacts {
            base_instructions: &self.base_instructions,
            model: self.display_name.as_deref().unwrap_or(&self.model),
            knowledge_cutoff: self.knowledge_cutoff.as_deref(),
            tools: &tools,
            skill_list_budget: SKILLS_BUDGET.min(self.text_budget()),
        };
        prompt::layers(&facts, environment, docs, user_instructions)
    }

    /// Sets the model, with its facts from the built-in catalog. An alias is replaced by the model's identifier.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self.with_catalog(Catalog::built_in())
    }

    /// Removes the prices of this model and of each model that replaces it, such as in a subagent. For servers that respond
    /// under the name of a model and do not charge its price.
    #[must_use]
    pub fn without_prices(mut self) -> Self {
        (self.pricing, self.is_unpriced) = (None, true);
        self
    }

    /// Sets the facts of the model from `catalog`.
    ///
    /// If the model is not in it, display name, cutoff and output limit become unknown, and window and reasoning take
    /// the family's defaults. A custom profile keeps these two.
    #[must_use]
    pub fn with_catalog(mut self, catalog: &Catalog) -> Self {
        // Aliases hold for the entry's own provider only: elsewhere they may name another model.
        let known = catalog.get(&self.model).filter(|info| info.id == self.model || info.provider == self.id);
        self.display_name = known.map(|info| info.display_name.clone());
        self.knowledge_cutoff = known.and_then(|info| info.knowledge_cutoff.clone());
        self.max_output_tokens = known.and_then(|info| info.max_output);
        // Other providers may serve the same model at another price.
        let priced = known.filter(|info| info.provider == self.id && !self.is_unpriced);
        self.pricing = priced.cloned().map(Box::new);
        if let Some(info) = known {
            self.context_window_size = info.context_window;
            self.supports_reasoning = info.supports_reasoning;
            self.model.clone_from(&info.id);
        } else if let Some(defaults) = model_defaults(&self.id) {
            self.context_window_size = defaults.context_window_size;
            self.supports_reasoning = defaults.supports_reasoning;
        }
        self
    }

    /// Replaces the tools and base instructions with this toolset's.
    ///
    /// Call it before changes of single tools or of the instructions, which it would undo. It leaves a custom profile
    /// unchanged, since toolsets belong to families.
    #[must_use]
    pub fn with_toolset(self, toolset: Toolset) -> Self {
        self.with_toolset_options(toolset, &ToolsetOptions::default())
    }

    /// As [`with_toolset`](Self::with_toolset), with optional tools.
    ///
    /// A search that the provider runs itself ([`SearchBy::Provider`]) is added to the profile's
    /// [`provider_options`](Self::provider_options), and removed with the toolset.
    #[must_use]
    pub fn with_toolset_options(mut self, toolset: Toolset, options: &ToolsetOptions) -> Self {
        let ToolsetParts { tools, instructions, provider_tools } = match self.id.as_str() {
            openai::ID => openai::toolset_parts(toolset, options),
            anthropic::ID => anthropic::toolset_parts(toolset, options, &self.skill_dirs),
            gemini::ID => gemini::toolset_parts(toolset, options, &self.skill_dirs),
            compatible::ID => compatible::toolset_parts(options),
            _ => return self,
        };
        self.tool_registry = tools;
        self.subagent_tools = Some(SubagentTools::for_family(&self.id, toolset));
        self.base_instructions = instructions.into();
        toolset_options::set_provider_tools(&mut self.provider_options, &self.id, provider_tools);
        self
    }

    setters! {
        /// Sets the forms of tool calls that are recognised in the model's text.
        pub fn with_text_tool_calls(forms: impl IntoIterator<Item = TextToolCallForm>)
            => text_tool_calls = forms.into_iter().collect();
        /// Sets the context window in tokens, overriding the catalog.
        pub fn with_context_window(tokens: u64) => context_window_size = tokens;
        /// Sets the name of the client's provider that requests are sent to.
        pub fn with_provider(provider: impl Into<String>) => provider = provider.into();
        /// Sets the base instructions, the first layer of the prompt.
        pub fn with_base_instructions(markdown: impl Into<Arc<str>>) => base_instructions = markdown.into();
    }

    /// Adds a tool, or replaces the tool of the same name (section 3.7).
    ///
    /// # Errors
    ///
    /// A name or a schema that no provider accepts.
    pub fn with_tool(mut self, tool: impl DynTool) -> Result<Self, DefinitionError> {
        self.tool_registry.register(tool)?;
        Ok(self)
    }

    /// Removes the tool of this name, if there is one.
    #[must_use]
    pub fn without_tool(mut self, name: &str) -> Self {
        self.tool_registry.unregister(name);
        self
    }

    /// Sets the form of the tools for subagents; `None` removes them.
    #[must_use]
    pub fn with_subagent_tools(mut self, tools: Option<SubagentTools>) -> Self {
        self.subagent_tools = tools;
        self
    }

    /// Sets the names of project documents.
    #[must_use]
    pub fn with_doc_files<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.doc_files = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the directories of skills, for the prompt and for the native tools that load skills.
    #[must_use]
    pub fn with_skill_dirs<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.skill_dirs = names.into_iter().map(Into::into).collect();
        BuiltInTools::new()
            .with_tool(skill::claude_skill(&self.skill_dirs))
            .with_tool(skill::gemini_skill(&self.skill_dirs))
            .replace_existing(&mut self.tool_registry);
        self
    }

    /// Sets the parameters of one provider, replacing any set before.
    #[must_use]
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: Value) -> Self {
        self.provider_options.insert(provider.into(), options);
        self
    }

    /// Adds the output limits of a small window for all tools without a configured limit.
    pub(crate) fn tool_output_limits(&self, configured: &TruncationLimits) -> TruncationLimits {
        let budget = self.text_budget();
        let mut limits = configured.clone();
        if budget >= MAX_DEFAULT_OUTPUT {
            return limits;
        }
        for tool in self.tool_registry.names().filter_map(|name| self.tool_registry.get(name)) {
            let is_set = [tool.name(), tool.kind()].iter().any(|name| configured.chars.contains_key(*name));
            if !is_set && tool.truncation().chars > budget {
                limits.chars.insert(tool.name().to_owned(), budget);
            }
        }
        limits
    }

    /// Returns a client that recognises the tool calls which this model writes as text.
    pub(crate) fn reading_text_calls(&self, client: &Client) -> Client {
        if self.text_tool_calls.is_empty() {
            return client.clone();
        }
        client.with_middleware(TextToolCalls::new(self.text_tool_calls.iter().copied()))
    }

    /// Returns an eighth of the window in characters, at four per token: whole KiB, at least one.
    fn text_budget(&self) -> usize {
        let chars = usize::try_from(self.context_window_size / 2).unwrap_or(usize::MAX);
        (chars / 1024).max(1) * 1024
    }
}

/// Largest default output limit of any tool, in characters. A window whose text budget reaches it needs no further
/// limits.
const MAX_DEFAULT_OUTPUT: usize = 50_000;

fn model_defaults(id: &str) -> Option<ModelDefaults> {
    match id {
        openai::ID => Some(openai::UNKNOWN_MODEL),
        anthropic::ID => Some(anthropic::UNKNOWN_MODEL),
        gemini::ID => Some(gemini::UNKNOWN_MODEL),
        compatible::ID => Some(compatible::UNKNOWN_MODEL),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
