//! `--profile`: a profile of the user's own, in a TOML file.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use pintle_agent::{ModelFamily, ProfileData, ProviderProfile, Toolset, ToolsetOptions};
use pintle_llm::Catalog;

use crate::args::{ModelArgs, ProviderName};
use crate::failure::Failure;
use crate::host;
use crate::provider::Provider;

/// A profile that was read from a file.
#[derive(Debug)]
pub(crate) struct ProfileFile {
    path: PathBuf,
    data: ProfileData,
    /// Where its requests go.
    provider: Provider,
}

impl ProfileFile {
    /// Reads it, and the system prompt that it names, whose path begins at the file.
    ///
    /// # Errors
    ///
    /// A usage failure that names file, place and what was expected there.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = host::read_text("profile", path)?;
        let mut data: ProfileData = toml::from_str(&text).map_err(|error| syntax(path, &error, &text))?;
        if data.system_prompt.is_none()
            && let Some(file) = &data.system_prompt_file
        {
            let file = path.parent().unwrap_or(Path::new("")).join(file);
            let prompt = host::read_text("system prompt", &file)?;
            data = data.with_system_prompt(prompt);
        }
        let provider = Provider::from_str(data.provider(), false).map_err(|_| {
            let known = ModelFamily::ALL.map(ModelFamily::name).join(", ");
            let found = data.provider();
            refused(path, &format!("`provider`: found `{found}`, expected one of {known}"))
        })?;
        Ok(Self { path: path.to_owned(), data, provider })
    }

    /// The flags, with what it says in the place of those that are not given.
    ///
    /// # Errors
    ///
    /// A usage failure for a provider or a dialect that its requests are not for.
    pub(crate) fn fill(&self, args: &ModelArgs) -> Result<ModelArgs, Failure> {
        let mut filled = args.clone();
        filled.model = filled.model.or_else(|| self.data.model.clone());
        match filled.provider {
            None => filled.provider = Some(ProviderName::Of(self.provider)),
            Some(ProviderName::Of(given)) => self.require("--provider", given)?,
            Some(ProviderName::Scripted) => match filled.dialect {
                None => filled.dialect = Some(self.provider),
                Some(given) => self.require("--dialect", given)?,
            },
        }
        Ok(filled)
    }

    /// The profile, for this model or else its own, with the tools that these options bring.
    ///
    /// # Errors
    ///
    /// A usage failure that names the field that cannot be used.
    pub(crate) fn profile(
        &self,
        model: Option<&str>,
        catalog: &Catalog,
        options: &ToolsetOptions,
    ) -> Result<ProviderProfile, Failure> {
        self.data
            .profile_with(model, catalog, options)
            .map_err(|error| refused(&self.path, &error.to_string()))
    }

    /// The profile as it would be if it chose no tools.
    ///
    /// # Errors
    ///
    /// As for [`ProfileFile::profile`].
    pub(crate) fn with_all_tools(
        &self,
        model: Option<&str>,
        catalog: &Catalog,
    ) -> Result<ProviderProfile, Failure> {
        let mut data = self.data.clone();
        data.tools = None;
        data.profile(model, catalog).map_err(|error| refused(&self.path, &error.to_string()))
    }

    /// Whether it chooses its tools.
    pub(crate) fn names_tools(&self) -> bool {
        self.data.tools.is_some()
    }

    /// The toolset that it takes its tools from.
    pub(crate) fn toolset(&self) -> Toolset {
        self.data.toolset
    }

    fn require(&self, flag: &str, given: Provider) -> Result<(), Failure> {
        if given == self.provider {
            return Ok(());
        }
        let (given, own, path) = (given.name(), self.provider.name(), self.path.display());
        Err(Failure::usage(format!("{flag} {given} does not go with the profile {path}, which is for {own}")))
    }
}

fn refused(path: &Path, problem: &str) -> Failure {
    Failure::usage(format!("cannot use the profile {}: {problem}", path.display()))
}

fn syntax(path: &Path, error: &toml::de::Error, text: &str) -> Failure {
    let span = error.span().unwrap_or(0..0);
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    let problem = error.message().trim_end().replace('\n', "; ");
    // The parser's own words do not always tell what it found.
    let found = text.get(span).and_then(|found| found.lines().next()).unwrap_or_default().trim_matches('"');
    let found = if problem.contains(found) { String::new() } else { format!("found `{found}`, ") };
    refused(path, &format!("line {line}, column {column}: {found}{problem}"))
}

#[cfg(test)]
mod tests;
