//! A profile as data, so that a host's user can write one in a file.

use pintle_llm::Catalog;
use pintle_middleware::TextToolCallForm;
use pintle_tools::ToolRegistry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ProviderProfile, Toolset, ToolsetOptions, anthropic, compatible, gemini, openai};

/// A profile that is written down: what it is made from, and what differs. `docs/profiles.md` of the repository has an
/// example of every field.
///
/// The format is the host's choice; the command reads TOML. A field that is not known is refused when it is read. What
/// is left out is as in the profile that it extends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProfileData {
    /// Its own name: letters, digits, `-`, `_` and `.`, at most 64, and none of the built-in profiles' names.
    pub name: String,
    /// The profile that it begins as.
    pub extends: ModelFamily,
    /// The name under which the client knows the provider that requests go to; that of the family by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model, if whoever uses the profile names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model's name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Until when its training data reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// The names and parameters of the tools. Default `spec`.
    #[serde(default)]
    pub toolset: Toolset,
    /// Those of the toolset that the model gets, in the order of the toolset, and none for subagents. It wants a system prompt, since that of the family
    /// speaks of the others, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The first layer of the system prompt, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// A file that holds it in place of `system_prompt`. The host reads it ([`ProfileData::with_system_prompt`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt_file: Option<String>,
    /// The names of project documents, the later with more precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_documents: Option<Vec<String>>,
    /// The places of skills, the later with more precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_directories: Option<Vec<String>>,
    /// Whether several calls of one answer run side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Whether answers are streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Whether the model reasons before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Input and output together, in tokens, 2,048 at least; wins over the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most tokens of one answer, below `context_window`; wins over the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The forms in which tool calls are recognised in text. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_tool_calls: Vec<TextToolCallForm>,
    /// Parameters that only one provider has: an object for each, by its name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
}

/// The families of models that have a built-in profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModelFamily {
    /// OpenAI's.
    #[serde(rename = "openai")]
    OpenAi,
    /// Claude.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Gemini.
    #[serde(rename = "gemini")]
    Gemini,
    /// Local and other models behind Chat Completions.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
}

/// A field of a profile that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {problem}")]
#[non_exhaustive]
pub struct ProfileDataError {
    /// The field, as it is written.
    pub field: &'static str,
    /// What was found, and what was expected.
    pub problem: String,
}

/// The smallest window, in tokens, that instructions and definitions of tools leave room in.
const SMALLEST_WINDOW: u64 = 2_048;

/// The longest name of a profile.
const LONGEST_NAME: usize = 64;

impl ModelFamily {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::OpenAiCompatible];

    /// The name, which is also that of the profile and of the provider.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => openai::ID,
            Self::Anthropic => anthropic::ID,
            Self::Gemini => gemini::ID,
            Self::OpenAiCompatible => compatible::ID,
        }
    }

    /// The built-in profile, with the tools of the specification.
    #[must_use]
    pub fn profile(self, model: impl Into<String>) -> ProviderProfile {
        match self {
            Self::OpenAi => ProviderProfile::openai(model),
            Self::Anthropic => ProviderProfile::anthropic(model),
            Self::Gemini => ProviderProfile::gemini(model),
            Self::OpenAiCompatible => ProviderProfile::openai_compatible(model),
        }
    }
}

impl ProfileData {
    /// A profile of this name in which nothing differs yet.
    #[must_use]
    pub fn new(name: impl Into<String>, extends: ModelFamily) -> Self {
        Self {
            name: name.into(),
            extends,
            provider: None,
            model: None,
            display_name: None,
            knowledge_cutoff: None,
            toolset: Toolset::Spec,
            tools: None,
            system_prompt: None,
            system_prompt_file: None,
            project_documents: None,
            skill_directories: None,
            parallel_tool_calls: None,
            streaming: None,
            reasoning: None,
            context_window: None,
            max_output_tokens: None,
            text_tool_calls: Vec::new(),
            provider_options: Map::new(),
        }
    }

    /// With this system prompt, such as the text of `system_prompt_file`, which is then no longer wanted.
    #[must_use]
    pub fn with_system_prompt(mut self, markdown: impl Into<String>) -> Self {
        self.system_prompt = Some(markdown.into());
        self.system_prompt_file = None;
        self
    }

    /// The name under which the client knows the provider that requests go to.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.provider.as_deref().unwrap_or(self.extends.name())
    }

    /// The profile, for `model` or else the model that it names, with what `catalog` knows of it.
    ///
    /// # Errors
    ///
    /// The first field that cannot be used.
    pub fn profile(
        &self,
        model: Option<&str>,
        catalog: &Catalog,
    ) -> Result<ProviderProfile, ProfileDataError> {
        self.profile_with(model, catalog, &ToolsetOptions::default())
    }

    /// As [`ProfileData::profile`], with the tools that need something of the host; `tools` may name them, too.
    ///
    /// # Errors
    ///
    /// The first field that cannot be used.
    pub fn profile_with(
        &self,
        model: Option<&str>,
        catalog: &Catalog,
        options: &ToolsetOptions,
    ) -> Result<ProviderProfile, ProfileDataError> {
        self.check()?;
        let Some(model) = model.or(self.model.as_deref()).filter(|model| !model.is_empty()) else {
            return refuse("model", "found none, expected the name of a model");
        };
        let base = self.extends.profile(model).with_catalog(catalog);
        let mut profile = base.with_toolset_and(self.toolset, options);
        if let Some(places) = &self.skill_directories {
            profile = profile.with_skill_dirs(places.clone());
        }
        if let Some(names) = &self.tools {
            profile.tool_registry = chosen(&profile.tool_registry, names)?;
            // Who names the tools has those, and no others.
            profile.subagent_tools = None;
        }
        profile.provider = self.provider().to_owned();
        profile.id.clone_from(&self.name);
        self.clone().put_into(&mut profile);
        Ok(profile)
    }

    fn check(&self) -> Result<(), ProfileDataError> {
        let name = self.name.as_str();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
            let expected = "expected letters, digits, `-`, `_` and `.`, at most 64 of them";
            return refuse("name", format!("found {name:?}, {expected}"));
        }
        if ModelFamily::ALL.iter().any(|family| family.name() == name) {
            return refuse("name", format!("found `{name}`, which is built in, expected a name of its own"));
        }
        if let Some(file) = &self.system_prompt_file {
            let found =
                if self.system_prompt.is_some() { "`system_prompt` beside it" } else { file.as_str() };
            return refuse(
                "system_prompt_file",
                format!("found {found}, expected one of the two, and a host that reads the file"),
            );
        }
        if self.tools.is_some() && self.system_prompt.is_none() {
            let problem = "found it without `system_prompt`, expected one that speaks of these tools only";
            return refuse("tools", problem);
        }
        if let Some((name, value)) = self.provider_options.iter().find(|(_, options)| !options.is_object()) {
            return refuse("provider_options", format!("found {value} for `{name}`, expected an object"));
        }
        self.check_window()
    }

    fn check_window(&self) -> Result<(), ProfileDataError> {
        let window = self.context_window.unwrap_or(u64::MAX);
        if window < SMALLEST_WINDOW {
            let problem = format!("found {window} tokens, expected {SMALLEST_WINDOW} at least");
            return refuse("context_window", problem);
        }
        match self.max_output_tokens {
            Some(0) => refuse("max_output_tokens", "found 0, expected 1 at least"),
            Some(tokens) if tokens >= window => refuse(
                "max_output_tokens",
                format!("found {tokens}, expected less than the window of {window} tokens"),
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// What differs.
    fn put_into(self, profile: &mut ProviderProfile) {
        fn put<T>(value: Option<T>, field: &mut T) {
            if let Some(value) = value {
                *field = value;
            }
        }
        profile.display_name = self.display_name.or(profile.display_name.take());
        profile.knowledge_cutoff = self.knowledge_cutoff.or(profile.knowledge_cutoff.take());
        profile.max_output_tokens = self.max_output_tokens.or(profile.max_output_tokens);
        put(self.system_prompt.map(Into::into), &mut profile.base_instructions);
        put(self.project_documents, &mut profile.doc_files);
        put(self.parallel_tool_calls, &mut profile.supports_parallel_tool_calls);
        put(self.streaming, &mut profile.supports_streaming);
        put(self.reasoning, &mut profile.supports_reasoning);
        put(self.context_window, &mut profile.context_window_size);
        profile.text_tool_calls = self.text_tool_calls;
        for (provider, options) in self.provider_options {
            // The toolset may have put tools of the provider's own there.
            match (profile.provider_options.get_mut(&provider), options) {
                (Some(Value::Object(before)), Value::Object(options)) => before.extend(options),
                (_, options) => {
                    put(Some(options), profile.provider_options.entry(provider).or_insert(Value::Null))
                }
            }
        }
    }
}

/// The tools of these names.
fn chosen(all: &ToolRegistry, names: &[String]) -> Result<ToolRegistry, ProfileDataError> {
    let mut kept = all.clone();
    for name in all.names().filter(|name| !names.iter().any(|wanted| wanted == name)) {
        kept.unregister(name);
    }
    for (place, name) in names.iter().enumerate() {
        if all.get(name).is_none() {
            let known = all.names().collect::<Vec<_>>().join(", ");
            return refuse("tools", format!("found `{name}`, expected some of {known}"));
        }
        if names.iter().take(place).any(|before| before == name) {
            return refuse("tools", format!("found `{name}` twice, expected each once"));
        }
    }
    Ok(kept)
}

fn refuse<T>(field: &'static str, problem: impl Into<String>) -> Result<T, ProfileDataError> {
    Err(ProfileDataError { field, problem: problem.into() })
}

#[cfg(test)]
mod tests;
