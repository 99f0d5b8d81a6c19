//! Hashes of trusted programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;

use super::commands::{HookCommand, HookCommands};
use super::programs;

/// Hashes of the [programs](HookCommand::programs) of hooks, taken when the hooks were accepted. A hook whose program has
/// changed since then does not run.
#[derive(Clone, Debug)]
pub struct TrustedPrograms {
    workspace: PathBuf,
    /// Hash of each file; `None` for a missing or unreadable file.
    contents: BTreeMap<PathBuf, Option<blake3::Hash>>,
}

impl TrustedPrograms {
    /// Reads those programs of these commands that are below `workspace`, in `env`.
    pub async fn read(
        commands: &HookCommands,
        workspace: impl Into<PathBuf>,
        env: &dyn ExecutionEnvironment,
    ) -> Self {
        let workspace = workspace.into();
        let paths = commands.programs(&workspace);
        let mut programs = Self { workspace, contents: BTreeMap::new() };
        programs.add(paths, env).await;
        programs
    }

    /// Returns the directory whose files are compared.
    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Adds the files that a program and its arguments name. The program starts without a shell in `directory`, which is
    /// relative to the workspace or absolute.
    pub async fn add_invocation(
        &mut self,
        arguments: &[String],
        directory: Option<&Path>,
        env: &dyn ExecutionEnvironment,
    ) {
        let paths = self.find_argument_paths(arguments, directory);
        self.add(paths, env).await;
    }

    /// Returns whether the hashes cover all files of an invocation. Files named through a variable are not covered: the
    /// variable is expanded only after the invocation was [added](Self::add_invocation).
    #[must_use]
    pub fn covers_invocation(&self, arguments: &[String], directory: Option<&Path>) -> bool {
        self.find_argument_paths(arguments, directory).iter().all(|path| self.contents.contains_key(path))
    }

    /// Returns the first file of an invocation that has changed since it was [added](Self::add_invocation).
    pub async fn changed_of_invocation(
        &self,
        arguments: &[String],
        directory: Option<&Path>,
        env: &dyn ExecutionEnvironment,
    ) -> Option<PathBuf> {
        self.first_changed(self.find_argument_paths(arguments, directory), env).await
    }

    fn find_argument_paths(&self, arguments: &[String], directory: Option<&Path>) -> BTreeSet<PathBuf> {
        let directory = directory.map(|directory| self.workspace.join(directory));
        programs::find_argument_paths(
            arguments,
            directory.as_deref().unwrap_or(&self.workspace),
            &self.workspace,
        )
    }

    async fn add(&mut self, paths: BTreeSet<PathBuf>, env: &dyn ExecutionEnvironment) {
        for path in paths {
            let content = content(&path, env).await;
            self.contents.insert(path, content);
        }
    }

    /// Returns the files with the hashes of their contents as text; `None` for a missing or unreadable file. The text
    /// changes only with the content.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, Option<String>)> {
        self.contents
            .iter()
            .map(|(path, content)| (path.as_path(), content.map(|hash| hash.to_hex().to_string())))
    }

    /// Returns the first program of a command that has changed.
    pub(super) async fn changed(
        &self,
        command: &HookCommand,
        env: &dyn ExecutionEnvironment,
    ) -> Option<PathBuf> {
        self.first_changed(command.programs(&self.workspace), env).await
    }

    async fn first_changed(
        &self,
        paths: BTreeSet<PathBuf>,
        env: &dyn ExecutionEnvironment,
    ) -> Option<PathBuf> {
        for path in paths {
            let trusted = self.contents.get(&path).copied().flatten();
            if content(&path, env).await != trusted {
                return Some(path);
            }
        }
        None
    }
}

async fn content(path: &Path, env: &dyn ExecutionEnvironment) -> Option<blake3::Hash> {
    // An unreadable file could become readable later.
    env.read(path, None).await.ok().map(|content| blake3::hash(&content))
}
