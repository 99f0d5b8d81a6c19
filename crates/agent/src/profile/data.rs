//! Profiles as data, such as a user's configuration file.

use pintle_llm::Catalog;
use pintle_middleware::TextToolCallForm;
use pintle_tools::ToolRegistry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ModelFamily, ProviderProfile, Toolset, ToolsetOptions};

/// Description of a profile: a built-in profile, and the differences from it. `docs/reference/profiles.md` in the
/// repository has an example of every field.
///
/// Any serde format works; the command reads TOML. Deserialisation fails on an unknown field. An omitted field keeps
/// the value of the built-in profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProfileData {
    /// Name of the profile: at most 64 letters, digits, `-`, `_` and `.`, and not the name of a built-in profile.
    pub name: String,
    /// Built-in profile that it is based on.
    pub extends: ModelFamily,
    /// Name of the client's provider that requests are sent to. Default: the name of the family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model that is used unless another model is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Display name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// End of the model's training data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// Names and forms of the tools. Default: `spec`.
    #[serde(default)]
    pub toolset: Toolset,
    /// Subset of the toolset, kept in the order of the toolset, without tools for subagents. Requires a system prompt,
    /// since the family's own refers to the other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// First layer of the system prompt, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// File with the system prompt, instead of `system_prompt`. The embedding application reads it
    /// ([`ProfileData::with_system_prompt`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt_file: Option<String>,
    /// Names of project documents, later ones with higher precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_documents: Option<Vec<String>>,
    /// Directories of skills, later ones with higher precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_directories: Option<Vec<String>>,
    /// Whether several calls of one response run concurrently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Whether responses are streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// Whether the model reasons before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Context window for input and output together, in tokens; at least 2,048. Overrides the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Maximum output tokens of one response, less than `context_window`. Overrides the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Forms of tool calls that are recognised in text. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_tool_calls: Vec<TextToolCallForm>,
    /// Provider-specific parameters: one object per provider name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
}

/// Error for a field of a profile whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {problem}")]
#[non_exhaustive]
pub struct ProfileDataError {
    /// Name of the field.
    pub field: &'static str,
    /// Found and expected values.
    pub problem: String,
}

/// Smallest context window, in tokens, that holds more than the instructions and tool definitions.
const MIN_WINDOW: u64 = 2_048;

/// Maximum length of a profile's name.
const MAX_NAME: usize = 64;

impl ProfileData {
    /// Creates a description without differences from the built-in profile.
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

    /// Sets the system prompt, such as the text of `system_prompt_file`, and clears that field.
    #[must_use]
    pub fn with_system_prompt(mut self, markdown: impl Into<String>) -> Self {
        self.system_prompt = Some(markdown.into());
        self.system_prompt_file = None;
        self
    }

    /// Returns the name of the client's provider that requests are sent to.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.provider.as_deref().unwrap_or(self.extends.name())
    }

    /// Builds the profile for `model`, or for the description's own model, with the model's facts from `catalog`.
    ///
    /// # Errors
    ///
    /// The first field whose value cannot be used.
    pub fn profile(
        &self,
        model: Option<&str>,
        catalog: &Catalog,
    ) -> Result<ProviderProfile, ProfileDataError> {
        self.profile_with(model, catalog, &ToolsetOptions::default())
    }

    /// As [`ProfileData::profile`], with optional tools, which `tools` may name as well.
    ///
    /// # Errors
    ///
    /// The first field whose value cannot be used.
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
        let mut profile = base.with_toolset_options(self.toolset, options);
        if let Some(directories) = &self.skill_directories {
            profile = profile.with_skill_dirs(directories.clone());
        }
        if let Some(names) = &self.tools {
            profile.tool_registry = select(&profile.tool_registry, names)?;
            // The list is exhaustive.
            profile.subagent_tools = None;
        }
        profile.provider = self.provider().to_owned();
        profile.id.clone_from(&self.name);
        self.clone().apply_to(&mut profile);
        Ok(profile)
    }

    fn check(&self) -> Result<(), ProfileDataError> {
        let name = self.name.as_str();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            let expected = "expected letters, digits, `-`, `_` and `.`, at most 64 of them";
            return refuse("name", format!("found {name:?}, {expected}"));
        }
        if ModelFamily::ALL.iter().any(|family| family.name() == name) {
            return refuse("name", format!("found `{name}`, which is built in, expected another name"));
        }
        if let Some(file) = &self.system_prompt_file {
            let problem = if self.system_prompt.is_some() {
                "found `system_prompt` as well, expected one of the two".to_owned()
            } else {
                format!("found {file}, which was not read: expected its text in `system_prompt`")
            };
            return refuse("system_prompt_file", problem);
        }
        if self.tools.is_some() && self.system_prompt.is_none() {
            let problem = "found no `system_prompt`, expected one that refers to these tools only";
            return refuse("tools", problem);
        }
        if let Some((name, value)) = self.provider_options.iter().find(|(_, options)| !options.is_object()) {
            return refuse("provider_options", format!("found {value} for `{name}`, expected an object"));
        }
        self.check_window()
    }

    fn check_window(&self) -> Result<(), ProfileDataError> {
        let window = self.context_window.unwrap_or(u64::MAX);
        if window < MIN_WINDOW {
            let problem = format!("found {window} tokens, expected {MIN_WINDOW} at least");
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

    /// Applies the remaining differences.
    fn apply_to(self, profile: &mut ProviderProfile) {
        fn set<T>(value: Option<T>, field: &mut T) {
            if let Some(value) = value {
                *field = value;
            }
        }
        profile.display_name = self.display_name.or(profile.display_name.take());
        profile.knowledge_cutoff = self.knowledge_cutoff.or(profile.knowledge_cutoff.take());
        profile.max_output_tokens = self.max_output_tokens.or(profile.max_output_tokens);
        set(self.system_prompt.map(Into::into), &mut profile.base_instructions);
        set(self.project_documents, &mut profile.doc_files);
        set(self.parallel_tool_calls, &mut profile.supports_parallel_tool_calls);
        set(self.streaming, &mut profile.supports_streaming);
        set(self.reasoning, &mut profile.supports_reasoning);
        set(self.context_window, &mut profile.context_window_size);
        profile.text_tool_calls = self.text_tool_calls;
        for (provider, options) in self.provider_options {
            // The toolset may have added the provider's own tools there.
            match (profile.provider_options.get_mut(&provider), options) {
                (Some(Value::Object(before)), Value::Object(options)) => before.extend(options),
                (_, options) => {
                    set(Some(options), profile.provider_options.entry(provider).or_insert(Value::Null))
                }
            }
        }
    }
}

/// Returns a registry with only the tools of these names.
fn select(all: &ToolRegistry, names: &[String]) -> Result<ToolRegistry, ProfileDataError> {
    let mut kept = all.clone();
    for name in all.names().filter(|name| !names.iter().any(|wanted| wanted == name)) {
        kept.unregister(name);
    }
    for (index, name) in names.iter().enumerate() {
        if all.get(name).is_none() {
            let known = all.names().collect::<Vec<_>>().join(", ");
            return refuse("tools", format!("found `{name}`, expected some of {known}"));
        }
        if names.iter().take(index).any(|before| before == name) {
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
