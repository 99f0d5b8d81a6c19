//! The environment and the directory in which the tools of a session work.

use std::fmt;
use std::path::{Path, PathBuf};

use pintle_agent::SessionId;
use pintle_store::{Filter, Summary};

use super::worktree::Worktree;
use crate::env_spec::{EnvSpec, EnvironmentChoice};
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

const ENVIRONMENT: &str = "environment";
const DIRECTORY: &str = "directory";

/// Execution environment and directory, by which sessions are found again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLocation {
    environment: String,
    /// Absolute on this machine; verbatim in other environments, and empty for the login directory.
    directory: String,
}

impl SessionLocation {
    /// Returns the environment and the directory of this location, in which the session with this id works.
    pub fn to_choice(&self, id: &SessionId) -> Result<EnvironmentChoice, Failure> {
        let spec = self.environment().parse();
        let spec = spec.map_err(|_| Failure::failed(format!("session {id} has no valid environment")))?;
        let directory = Some(self.directory()).filter(|directory| !directory.is_empty()).map(PathBuf::from);
        Ok(EnvironmentChoice { spec, directory })
    }

    /// Returns the location for an environment and a directory.
    pub fn from_choice(choice: &EnvironmentChoice, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let given = choice.directory.as_deref();
        let directory = match &choice.spec {
            EnvSpec::Local => process_env.directory(given)?.display().to_string(),
            EnvSpec::Docker(_) | EnvSpec::Image(_) | EnvSpec::Ssh(_) => {
                given.map(|directory| directory.display().to_string()).unwrap_or_default()
            }
        };
        Ok(Self { environment: choice.spec.to_string(), directory })
    }

    /// Returns the location for an absolute directory of this machine, which may be missing.
    pub(super) fn from_local_directory(directory: &Path) -> Self {
        Self { environment: EnvSpec::Local.to_string(), directory: directory.display().to_string() }
    }

    /// Returns the location on the summary of a session.
    pub fn from_summary(summary: &Summary) -> Self {
        let property = |name: &str| summary.properties.get(name).cloned().unwrap_or_default();
        Self { environment: property(ENVIRONMENT), directory: property(DIRECTORY) }
    }

    /// Returns the filter of sessions in this location.
    pub fn filter(&self) -> Filter {
        Filter::default()
            .with_property(ENVIRONMENT, self.environment.as_str())
            .with_property(DIRECTORY, self.directory.as_str())
    }

    /// Records the location in the summary of a session.
    pub(crate) fn add_to_summary(&self, summary: Summary) -> Summary {
        summary
            .with_property(ENVIRONMENT, self.environment.as_str())
            .with_property(DIRECTORY, self.directory.as_str())
    }

    /// Returns the name of the environment.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Returns the directory; empty for the login directory.
    pub fn directory(&self) -> &str {
        &self.directory
    }
}

/// Checks that the directory of a session on this machine still exists, which may be in its worktree.
pub fn require_directory(summary: &Summary, process_env: &ProcessEnv) -> Result<(), Failure> {
    let location = SessionLocation::from_summary(summary);
    let is_elsewhere = location.environment != EnvSpec::Local.to_string();
    if is_elsewhere || process_env.is_directory(Path::new(&location.directory)) {
        return Ok(());
    }
    let id = &summary.id;
    if let Some(worktree) = Worktree::from_summary(summary).filter(|worktree| !worktree.exists(process_env)) {
        return Err(worktree.missing_failure(process_env));
    }
    Err(Failure::usage(format!("the directory of session {id}, {location}, does not exist")).with_hint(
        &format!("`pintle run --resume {id} --dir DIR` continues the session where its project is now"),
    ))
}

impl fmt::Display for SessionLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.environment.as_str(), self.directory.as_str()) {
            (EnvSpec::LOCAL, directory) => f.write_str(directory),
            (environment, "") => f.write_str(environment),
            (environment, directory) => write!(f, "{environment} {directory}"),
        }
    }
}
