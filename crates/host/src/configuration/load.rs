//! Loads the configuration of the user and of the project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::settings::{Source, Sources, Value, Values};
use crate::config_file::keys::{self, KEY_COMMAND, PROFILE};
use crate::config_file::problem::Problem;
use crate::config_file::{File, Setting, user_file};
use crate::env_spec::EnvSpec;
use crate::failure::Failure;
use crate::layers::ValueKind;
use crate::named_value;
use crate::notice::Notice;
use crate::policy::{self, Project, TrustedProjects};
use crate::process_env::ProcessEnv;

/// Name of the project's file for messages.
const PROJECT_FILE: &str = ".pintle/config.toml";

/// Content of both files and of the variables.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The user's file.
    pub user: File,
    pub(super) project: File,
    pub(super) variables: Values,
    /// Whether the user trusts the project with the keys that need it.
    pub(super) is_project_trusted: bool,
    /// Mistakes of all sources.
    pub problems: Vec<Problem>,
    /// Notices about keys of the project that have no effect.
    pub notices: Vec<Notice>,
}

/// Returns the root of the project that the current directory is in: the directory that has its files, or else the root of
/// the repository, or else the current directory.
///
/// # Errors
///
/// The current directory, or a file of a project in it, cannot be read.
pub async fn project_root(process_env: &ProcessEnv) -> Result<PathBuf, Failure> {
    let environment = process_env.local_environment(&process_env.directory(None)?)?;
    Project::root(&environment).await
}

/// Returns whether a project's file has keys that count only if the project is trusted.
#[must_use]
pub fn needs_trust(file: &File) -> bool {
    file.settings.iter().chain(file.profiles.values().flatten()).any(Setting::needs_trust)
}

impl Configuration {
    /// Loads the configuration for a command that works in `directory`; without one, no project counts. Dropping the future stops
    /// reading.
    ///
    /// # Errors
    ///
    /// A file of a project cannot be read. Mistakes in files are [`problems`](Self::problems).
    pub async fn load(directory: Option<&Path>, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let mut loaded = Self { user: user_file(process_env), ..Self::default() };
        if let Some(directory) = directory {
            loaded.read_project(directory, process_env).await?;
        }
        loaded.problems.append(&mut loaded.user.problems);
        loaded.problems.append(&mut loaded.project.problems);
        loaded.read_variables(process_env);
        loaded.check_selected_profiles();
        Ok(loaded)
    }

    /// Returns the names of all profiles.
    #[must_use]
    pub fn profiles(&self) -> BTreeSet<&str> {
        self.sources(None).profiles()
    }

    /// Returns the sources that count.
    pub(super) fn sources(&self, profile_flag: Option<&str>) -> Sources<'_> {
        Sources {
            files: vec![&self.user, &self.project],
            variables: self.variables.clone(),
            profile_flag: profile_flag.map(str::to_owned),
        }
    }

    async fn read_project(&mut self, directory: &Path, process_env: &ProcessEnv) -> Result<(), Failure> {
        let environment = process_env.local_environment(directory)?;
        let Some(configuration) = Project::read_configuration(&environment).await? else { return Ok(()) };
        let parent = configuration.path.parent().unwrap_or(directory);
        let mut file = File::parse(PROJECT_FILE, parent, &configuration.text);
        let users = remove(&mut file, Setting::is_of_user);
        let users = users.into_iter().chain(file.key_commands.drain(..).map(|_| KEY_COMMAND.to_owned()));
        let users = list(users.collect());
        if !users.is_empty() {
            let text = format!("only your own configuration can set {users}, which {PROJECT_FILE} does");
            self.notices.push(Notice::from(text));
        }
        if needs_trust(&file) {
            let projects = Project::read_all(&environment).await?;
            let project = projects.into_iter().find(|project| project.root == configuration.root);
            let trusted = TrustedProjects::open(process_env)?;
            // The file may have changed since it was read.
            let is_trusted_text = |project: &Project| {
                trusted.contains(EnvSpec::LOCAL, project)
                    && project.configuration() == Some(&configuration.text)
            };
            self.is_project_trusted = project.as_ref().is_some_and(is_trusted_text);
            if !self.is_project_trusted {
                let was = project
                    .as_ref()
                    .is_some_and(|project| trusted.has_outdated_trust(EnvSpec::LOCAL, project));
                let keys = list(remove(&mut file, Setting::needs_trust));
                self.notices.push(policy::untrusted_notice(&format!("{keys} of {PROJECT_FILE}"), was));
            }
        }
        self.project = file;
        Ok(())
    }

    pub(super) fn read_variables(&mut self, process_env: &ProcessEnv) {
        for key in keys::all() {
            let (name, kind) = (key.variable(), key.row.kind);
            let Some(text) = process_env.variable(&name) else { continue };
            if kind.accepts(&text) {
                self.variables.insert(key.name, Value { text, source: Source::Variable(name) });
                continue;
            }
            let expected = kind.expected();
            let found = if kind == ValueKind::Url { String::new() } else { format!("found `{text}`, ") };
            self.problems.push(Problem { origin: name, message: format!("{found}expected {expected}") });
        }
    }

    /// Rejects names of profiles that do not exist.
    pub(super) fn check_selected_profiles(&mut self) {
        let mut problems = Vec::new();
        let is_unknown = |text: &str| !keys::is_profile_file(text) && !self.profiles().contains(text);
        for file in [&self.user, &self.project] {
            let selecting = file.settings.iter().filter(|setting| setting.key.name == PROFILE);
            for setting in selecting.filter(|setting| is_unknown(&setting.value)) {
                let origin = format!("{}: line {}, column {}", file.name, setting.line, setting.column);
                problems.push(Problem { origin, message: self.no_profile(&setting.value) });
            }
        }
        if let Some(value) = self.variables.get(PROFILE).filter(|value| is_unknown(&value.text))
            && let Source::Variable(origin) = &value.source
        {
            problems.push(Problem { origin: origin.clone(), message: self.no_profile(&value.text) });
        }
        self.problems.extend(problems);
    }

    /// Describes a name without a profile.
    pub(super) fn no_profile(&self, name: &str) -> String {
        let profiles = self.profiles();
        let meant = named_value::suggest_name(name, profiles.iter().copied());
        if !meant.is_empty() || profiles.is_empty() {
            return format!("there is no profile `{name}`{meant}");
        }
        let known: Vec<&str> = profiles.into_iter().collect();
        format!("there is no profile `{name}`; expected one of {}", known.join(", "))
    }
}

/// Removes settings, and returns their names.
pub(super) fn remove(file: &mut File, condition: impl Fn(&Setting) -> bool) -> Vec<String> {
    let mut removed = Vec::new();
    let mut keep = |profile: Option<&String>, setting: &Setting| {
        let goes = condition(setting);
        if goes {
            let name = setting.key.name;
            removed.push(
                profile.map_or_else(|| name.to_owned(), |profile| format!("profiles.{profile}.{name}")),
            );
        }
        !goes
    };
    file.settings.retain(|setting| keep(None, setting));
    for (profile, settings) in &mut file.profiles {
        settings.retain(|setting| keep(Some(profile), setting));
    }
    removed
}

fn list(mut names: Vec<String>) -> String {
    names.dedup();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
