//! What a model family works best with: its tools, its prompt, its limits (loop specification, section 3).

mod anthropic;
mod compatible;
mod data;
mod gemini;
mod kit;
mod openai;
mod skill;
mod toolset;
mod toolset_options;

use std::path::Path;
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::{Capability, Catalog, Client, ModelInfo, TextToolCallForm, TextToolCalls, ToolList};
use pintle_tools::{DefinitionError, DynTool, ToolRegistry, TruncationLimits};
use serde_json::{Map, Value};

pub use self::data::{ModelFamily, ProfileData, ProfileDataError};
pub(crate) use self::kit::Kit;
use self::toolset::Equipment;
pub use self::toolset::Toolset;
pub use self::toolset_options::{SearchBy, ToolsetOptions};
use crate::project_docs::{PROJECT_DOC_BUDGET, ProjectDocs};
use crate::prompt::{self, EnvironmentContext, PromptLayer, SKILLS_BUDGET, SystemPrompt};
use crate::protocol::{SessionId, SubagentLimits};
use crate::subagent::{Lineage, SubagentTools, Subagents};

/// Tools, prompt, limits and request options for one model: plain data, so that a host can change any of it or bring
/// its own (loop specification, section 3.2).
///
/// Reasoning effort is not here: a session puts it into each request, and the adapter into the dialect's own field.
/// What a provider wants besides goes into `provider_options`, which is empty by default: beta headers as
/// `{"anthropic": {"beta_headers": [..]}}`, safety settings and grounding as `{"gemini": {..}}`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderProfile {
    /// `openai`, `anthropic`, `gemini`, `openai-compatible`, or a host's own name.
    pub id: String,
    /// The name under which the client knows the provider that requests go to; the same as `id` by default.
    pub provider: String,
    /// The provider's identifier of the model.
    pub model: String,
    /// The model's name for people; `None` if the catalog does not know the model.
    pub display_name: Option<String>,
    /// Until when its training data reaches, as its maker words it; `None` if unknown.
    pub knowledge_cutoff: Option<String>,
    /// The first layer of the system prompt, in Markdown. Sessions and clones of a profile share it.
    pub base_instructions: Arc<str>,
    /// The tools, in the order in which the model sees them.
    pub tool_registry: ToolRegistry,
    /// The tools for subagents that a session adds to these. `None` adds none; so do a depth of 0
    /// ([`SessionConfig::subagents`](crate::SessionConfig::subagents)) and a window below 16,384 tokens, in which they
    /// would take the room that the work needs.
    pub subagent_tools: Option<SubagentTools>,
    /// The project documents that the prompt holds: names relative to a directory, the later with more precedence.
    pub doc_files: Vec<String>,
    /// Where skills stand: names relative to a directory, the later with more precedence, or absolute ones. By default
    /// `.agents/skills` and the family's own, such as `.claude/skills`; none if the list is empty.
    pub skill_dirs: Vec<String>,
    /// Parameters that only one provider has, keyed by the provider's name, as in [`pintle_llm::Request`].
    pub provider_options: Map<String, Value>,
    /// Whether the model reasons before it answers.
    pub supports_reasoning: bool,
    /// Whether answers can be streamed.
    pub supports_streaming: bool,
    /// Whether the model makes several calls in one answer, which then run side by side.
    pub supports_parallel_tool_calls: bool,
    /// The forms in which tool calls that the model writes as text are recognised, for servers that do not read them
    /// ([`TextToolCalls`]). None by default: then text is text.
    pub text_tool_calls: Vec<TextToolCallForm>,
    /// Input and output together, in tokens. A window below 100,000 bounds what of a tool's output, of project
    /// documents and of skills the model gets: an eighth of it each, at four characters per token.
    pub context_window_size: u64,
    /// The most tokens that the model writes in one answer; `None` if unknown.
    pub max_output_tokens: Option<u64>,
    /// What the catalog knows of the model, for the prices of its calls; `None` if it does not know the model of this
    /// provider.
    pub pricing: Option<Box<ModelInfo>>,
}

/// What is taken for granted of a model that the catalog does not know.
struct UnknownModel {
    context_window_size: u64,
    supports_reasoning: bool,
}

impl ProviderProfile {
    /// For OpenAI's models: `apply_patch` for edits (section 3.4).
    #[must_use]
    pub fn openai(model: impl Into<String>) -> Self {
        openai::profile(model.into())
    }

    /// For Claude: `edit_file` for edits, and two minutes for a command (section 3.5).
    #[must_use]
    pub fn anthropic(model: impl Into<String>) -> Self {
        anthropic::profile(model.into())
    }

    /// For Gemini: `edit_file` in Gemini's form, batch reading and directory listing (section 3.6).
    #[must_use]
    pub fn gemini(model: impl Into<String>) -> Self {
        gemini::profile(model.into())
    }

    /// For local and other models behind Chat Completions: short instructions, one call at a time.
    #[must_use]
    pub fn openai_compatible(model: impl Into<String>) -> Self {
        compatible::profile(model.into())
    }

    /// A profile of a host's own: no instructions, no tools, `AGENTS.md` only, streaming, one call at a time, a window
    /// of 32,768 tokens where the catalog does not know better.
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
        };
        profile.with_model(model)
    }

    /// The best model of the shipped catalog that calls tools; `None` for a provider that it has no models of.
    #[must_use]
    pub fn default_model(id: &str) -> Option<&'static str> {
        Catalog::built_in().latest(id, Some(Capability::Tools)).map(|model| model.id.as_str())
    }

    /// What the model is told of the tools.
    #[must_use]
    pub fn tools(&self) -> ToolList {
        self.tool_registry.definitions()
    }

    /// What the project between `git_root` and the working directory tells its agents, by this profile's names and in the
    /// bounds of its window (section 6.5). Never fails; dropping the future stops the reading.
    pub async fn project_docs(&self, env: &dyn ExecutionEnvironment, git_root: Option<&Path>) -> ProjectDocs {
        let budget = PROJECT_DOC_BUDGET.min(self.share());
        let docs = ProjectDocs::discover_within(env, git_root, &self.doc_files, budget).await;
        docs.with_skills_of(env, git_root, &self.skill_dirs).await
    }

    /// The system prompt: the text of all [layers](Self::prompt_layers), with a blank line between two, but for git
    /// facts, which go on in the environment's block.
    #[must_use]
    pub fn build_system_prompt(
        &self,
        environment: &EnvironmentContext,
        docs: &ProjectDocs,
        user_instructions: Option<&str>,
    ) -> String {
        let layers = self.prompt_layers(environment, docs, user_instructions);
        SystemPrompt::of(&layers).text
    }

    /// The layers of the system prompt that have something to say, in order; the user's instructions are the last
    /// (section 6.1). The same arguments give the same bytes.
    #[must_use]
    pub fn prompt_layers(
        &self,
        environment: &EnvironmentContext,
        docs: &ProjectDocs,
        user_instructions: Option<&str>,
    ) -> Vec<PromptLayer> {
        prompt::layers(self, environment, docs, user_instructions)
    }

    /// For another model, with what the shipped catalog knows of it; an alias becomes the model's identifier.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self.with_catalog(Catalog::built_in())
    }

    /// With what `catalog` knows of the model.
    ///
    /// For a model that it does not know, name, cutoff and output limit become unknown, and window and reasoning
    /// become what is usual for the family; in a host's own profile these two stay.
    #[must_use]
    pub fn with_catalog(mut self, catalog: &Catalog) -> Self {
        // An alias counts only where the entry's own provider serves the model: elsewhere it may be a model's name.
        let known = catalog.get(&self.model).filter(|info| info.id == self.model || info.provider == self.id);
        self.display_name = known.map(|info| info.display_name.clone());
        self.knowledge_cutoff = known.and_then(|info| info.knowledge_cutoff.clone());
        self.max_output_tokens = known.and_then(|info| info.max_output);
        // Another provider may serve a model of this name at another price.
        self.pricing = known.filter(|info| info.provider == self.id).cloned().map(Box::new);
        if let Some(info) = known {
            self.context_window_size = info.context_window;
            self.supports_reasoning = info.supports_reasoning;
            self.model.clone_from(&info.id);
        } else if let Some(usual) = usual_of(&self.id) {
            self.context_window_size = usual.context_window_size;
            self.supports_reasoning = usual.supports_reasoning;
        }
        self
    }

    /// With the tools of this toolset, and the instructions that speak of them, in the place of the profile's own.
    ///
    /// Changes of single tools and of the instructions come after it. A host's own profile stays as it is: the toolset
    /// is that of a family.
    #[must_use]
    pub fn with_toolset(self, toolset: Toolset) -> Self {
        self.with_toolset_and(toolset, &ToolsetOptions::default())
    }

    /// As [`with_toolset`](Self::with_toolset), with the tools that need something of the host.
    ///
    /// A search that the provider makes within the model's own answers ([`SearchBy::Provider`]) is a tool among the
    /// profile's [`provider_options`](Self::provider_options), and goes with the toolset.
    #[must_use]
    pub fn with_toolset_and(mut self, toolset: Toolset, options: &ToolsetOptions) -> Self {
        let Equipment { tools, instructions, provider_tools } = match self.id.as_str() {
            openai::ID => openai::equipment(toolset, options),
            anthropic::ID => anthropic::equipment(toolset, options, &self.skill_dirs),
            gemini::ID => gemini::equipment(toolset, options, &self.skill_dirs),
            compatible::ID => compatible::equipment(options),
            _ => return self,
        };
        self.tool_registry = tools;
        self.subagent_tools = Some(SubagentTools::of_family(&self.id, toolset));
        self.base_instructions = instructions.into();
        toolset_options::set_provider_tools(&mut self.provider_options, &self.id, provider_tools);
        self
    }

    /// With tool calls recognised that the model writes as text in one of these forms.
    #[must_use]
    pub fn with_text_tool_calls(mut self, forms: impl IntoIterator<Item = TextToolCallForm>) -> Self {
        self.text_tool_calls = forms.into_iter().collect();
        self
    }

    /// With a window of this many tokens, whatever the catalog knows.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window_size = tokens;
        self
    }

    /// With requests going to the provider that the client knows by this name.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = provider.into();
        self
    }

    /// With other instructions in the first layer of the prompt.
    #[must_use]
    pub fn with_base_instructions(mut self, markdown: impl Into<Arc<str>>) -> Self {
        self.base_instructions = markdown.into();
        self
    }

    /// With one more tool, or with this tool in the place of the one that has its name (section 3.7).
    ///
    /// # Errors
    ///
    /// A name or a schema that no provider would accept.
    pub fn with_tool(mut self, tool: impl DynTool) -> Result<Self, DefinitionError> {
        self.tool_registry.register(tool)?;
        Ok(self)
    }

    /// Without the tool of this name.
    #[must_use]
    pub fn without_tool(mut self, name: &str) -> Self {
        self.tool_registry.unregister(name);
        self
    }

    /// With the tools for subagents in this form, or with none.
    #[must_use]
    pub fn with_subagent_tools(mut self, tools: Option<SubagentTools>) -> Self {
        self.subagent_tools = tools;
        self
    }

    /// The profile as a session with these limits shows it to its model: with the tools for subagents. To look at, not
    /// to build a session from: the tools work in a session only, which adds its own.
    #[must_use]
    pub fn as_in_session(&self, limits: SubagentLimits) -> Self {
        Subagents::new(SessionId::new(""), Lineage::root(), limits).equip(self)
    }

    /// With other project documents.
    #[must_use]
    pub fn with_doc_files<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.doc_files = names.into_iter().map(Into::into).collect();
        self
    }

    /// With other places for skills, for the prompt and for the native tools that load them.
    #[must_use]
    pub fn with_skill_dirs<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.skill_dirs = names.into_iter().map(Into::into).collect();
        // A tool that loads skills looks where the prompt says that they stand.
        Kit::new()
            .with(skill::claude_skill(&self.skill_dirs))
            .with(skill::gemini_skill(&self.skill_dirs))
            .replace_in(&mut self.tool_registry);
        self
    }

    /// With one provider's own parameters, in the place of those that were set for it.
    #[must_use]
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: Value) -> Self {
        self.provider_options.insert(provider.into(), options);
        self
    }

    /// What a host set for the tools' output, and for the other tools what leaves room in a small window.
    pub(crate) fn tool_output_limits(&self, set: &TruncationLimits) -> TruncationLimits {
        let share = self.share();
        let mut limits = set.clone();
        if share >= LARGEST_OUTPUT {
            return limits;
        }
        for tool in self.tool_registry.names().filter_map(|name| self.tool_registry.get(name)) {
            let is_set = [tool.name(), tool.kind()].iter().any(|name| set.chars.contains_key(*name));
            if !is_set && tool.truncation().chars > share {
                limits.chars.insert(tool.name().to_owned(), share);
            }
        }
        limits
    }

    /// What the list of skills may take of the prompt, in bytes.
    pub(crate) fn skill_list_budget(&self) -> usize {
        SKILLS_BUDGET.min(self.share())
    }

    /// A client that reads the calls which this model writes as text.
    pub(crate) fn reading_text_calls(&self, client: &Client) -> Client {
        if self.text_tool_calls.is_empty() {
            return client.clone();
        }
        client.with_middleware(TextToolCalls::new(self.text_tool_calls.iter().copied()))
    }

    /// An eighth of the window in characters, of which a token has four: whole KiB, and one at least.
    fn share(&self) -> usize {
        let chars = usize::try_from(self.context_window_size / 2).unwrap_or(usize::MAX);
        (chars / 1024).max(1) * 1024
    }
}

/// The most that any tool gives by default, in characters. A window in which it is at most a share is not small.
const LARGEST_OUTPUT: usize = 50_000;

fn usual_of(id: &str) -> Option<UnknownModel> {
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
