//! Projects that the user trusts or refuses, in their state at the time of the decision.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pintle_store::Hash;
use serde::{Deserialize, Serialize};

use super::Project;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};

/// File in the state directory.
const FILE: &str = "trust.json";

/// Projects that the user trusts.
#[derive(Debug)]
pub struct TrustedProjects {
    path: PathBuf,
    form: TrustFile,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    version: u32,
    /// Hash of the files, by environment and root.
    projects: BTreeMap<String, String>,
    /// The same for projects that the user has refused. The question is repeated only after a change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<String, String>,
}

impl TrustedProjects {
    const VERSION: u32 = 1;

    /// Reads the file in the user's state directory.
    pub fn open(process_env: &ProcessEnv) -> Result<Self, Failure> {
        let path = process_env.state_directory()?.join(FILE);
        let form = match process_env::read_text_if_exists("list of trusted projects", &path)? {
            None => TrustFile { version: Self::VERSION, ..TrustFile::default() },
            Some(text) => {
                serde_json::from_str(&text).or_failed(&format!("cannot read {}", path.display()))?
            }
        };
        if form.version != Self::VERSION {
            return Err(Failure::failed(format!(
                "{} has version {}, expected {}",
                path.display(),
                form.version,
                Self::VERSION
            )));
        }
        Ok(Self { path, form })
    }

    /// Returns whether the user trusts a project in its current state. A project that has changed since is not trusted, and
    /// neither is one with a [program that no rule protects](Project::unprotected_program).
    pub fn contains(&self, environment: &str, project: &Project) -> bool {
        project.unprotected_program().is_none()
            && self.form.projects.get(&key(environment, project)) == Some(&project.hash().to_string())
    }

    /// Returns whether the user has refused a project in its current state.
    pub fn is_refused(&self, environment: &str, project: &Project) -> bool {
        self.form.refused.get(&key(environment, project)) == Some(&project.hash().to_string())
    }

    /// Returns whether the user trusted a project that has changed since.
    pub(crate) fn has_outdated_trust(&self, environment: &str, project: &Project) -> bool {
        self.form.projects.contains_key(&key(environment, project)) && !self.contains(environment, project)
    }

    /// Trusts a project in its current state.
    ///
    /// # Errors
    ///
    /// A [program that no rule protects](Project::unprotected_program), and a file that cannot be written.
    pub fn add(
        &mut self,
        environment: &str,
        project: &Project,
        process_env: &ProcessEnv,
    ) -> Result<Hash, Failure> {
        if let Some(program) = project.unprotected_program() {
            return Err(Failure::usage(format!(
                "cannot trust the project in {}: cannot protect its program {} against writes; expected a path in UTF-8",
                project.root.display(),
                program.display()
            )));
        }
        let hash = project.hash();
        self.form.projects.insert(key(environment, project), hash.to_string());
        self.form.refused.remove(&key(environment, project));
        self.save(process_env)?;
        Ok(hash)
    }

    /// Remembers that the user refuses a project in its current state.
    pub fn refuse(
        &mut self,
        environment: &str,
        project: &Project,
        process_env: &ProcessEnv,
    ) -> Result<(), Failure> {
        self.form.refused.insert(key(environment, project), project.hash().to_string());
        self.save(process_env)
    }

    /// Trusts a project no longer. Returns whether it was trusted.
    pub fn remove(
        &mut self,
        environment: &str,
        root: &std::path::Path,
        process_env: &ProcessEnv,
    ) -> Result<bool, Failure> {
        let was_there = self.form.projects.remove(&project_key(environment, root)).is_some();
        if was_there {
            self.save(process_env)?;
        }
        Ok(was_there)
    }

    /// Returns environment and root of each project, with the hash of its files.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.form.projects.iter().map(|(project, hash)| (project.as_str(), hash.as_str()))
    }

    fn save(&self, process_env: &ProcessEnv) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&self.form).or_failed("cannot write the trusted projects")?;
        process_env.write_private(&self.path, &text)
    }
}

fn key(environment: &str, project: &Project) -> String {
    project_key(environment, &project.root)
}

fn project_key(environment: &str, root: &std::path::Path) -> String {
    format!("{environment} {}", root.display())
}
