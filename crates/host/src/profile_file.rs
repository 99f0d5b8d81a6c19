//! `--profile`: reads a profile from a TOML file.

use std::path::{Path, PathBuf};

use pintle_agent::{ProfileData, ProviderProfile, Toolset, ToolsetOptions};
use pintle_llm::Catalog;

use crate::failure::Failure;
use crate::process_env;
use crate::provider::{Provider, ProviderName};
use crate::route::ModelChoice;

/// Profile read from a file.
#[derive(Debug)]
pub struct ProfileFile {
    path: PathBuf,
    data: ProfileData,
    /// Provider of its requests.
    provider: Provider,
}

impl ProfileFile {
    /// Reads the profile and its system prompt file, whose path is relative to the profile.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = process_env::read_text("profile", path)?;
        let mut data: ProfileData =
            toml::from_str(&text).map_err(|error| syntax_error(path, &error, &text))?;
        if data.system_prompt.is_none()
            && let Some(file) = &data.system_prompt_file
        {
            let file = path.parent().unwrap_or(Path::new("")).join(file);
            let prompt = process_env::read_text("system prompt", &file)?;
            data = data.with_system_prompt(prompt);
        }
        let provider = data.provider().parse::<Provider>();
        let provider = provider.map_err(|problem| invalid(path, &format!("`provider`: {problem}")))?;
        Ok(Self { path: path.to_owned(), data, provider })
    }

    /// Completes the choice with values from the profile.
    pub fn fill(&self, choice: &ModelChoice) -> Result<ModelChoice, Failure> {
        let mut filled = choice.clone();
        filled.model = filled.model.or_else(|| self.data.model.clone());
        match filled.provider {
            None => filled.provider = Some(ProviderName::Of(self.provider)),
            Some(ProviderName::Of(given)) => self.require_provider("--provider", given)?,
            Some(ProviderName::Scripted) => match filled.dialect {
                None => filled.dialect = Some(self.provider),
                Some(given) => self.require_provider("--dialect", given)?,
            },
        }
        Ok(filled)
    }

    /// Returns the profile for the given model or its own, with the tools selected by the options.
    pub fn profile(
        &self,
        model: Option<&str>,
        catalog: &Catalog,
        options: &ToolsetOptions,
    ) -> Result<ProviderProfile, Failure> {
        self.data
            .profile_with(model, catalog, options)
            .map_err(|error| invalid(&self.path, &error.to_string()))
    }

    /// Returns the profile with all tools of its toolset.
    pub fn with_all_tools(&self, model: Option<&str>, catalog: &Catalog) -> Result<ProviderProfile, Failure> {
        let mut data = self.data.clone();
        data.tools = None;
        data.profile(model, catalog).map_err(|error| invalid(&self.path, &error.to_string()))
    }

    /// Returns whether the profile lists its tools.
    pub fn names_tools(&self) -> bool {
        self.data.tools.is_some()
    }

    /// Returns the toolset.
    pub fn toolset(&self) -> Toolset {
        self.data.toolset
    }

    fn require_provider(&self, flag: &str, given: Provider) -> Result<(), Failure> {
        if given == self.provider {
            return Ok(());
        }
        let (given, own, path) = (given.name(), self.provider.name(), self.path.display());
        Err(Failure::usage(format!("{flag} {given} conflicts with the profile {path}, which is for {own}")))
    }
}

fn invalid(path: &Path, problem: &str) -> Failure {
    Failure::usage(format!("invalid profile {}: {problem}", path.display()))
}

fn syntax_error(path: &Path, error: &toml::de::Error, text: &str) -> Failure {
    let span = error.span().unwrap_or(0..0);
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    let problem = error.message().trim_end().replace('\n', "; ");
    // The parser's message does not always include the text found.
    let found = text.get(span).and_then(|found| found.lines().next()).unwrap_or_default().trim_matches('"');
    let found = if problem.contains(found) { String::new() } else { format!("found `{found}`, ") };
    invalid(path, &format!("line {line}, column {column}: {found}{problem}"))
}

#[cfg(test)]
mod tests;
