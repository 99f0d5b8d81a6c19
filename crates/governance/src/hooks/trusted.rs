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
    /// Hash of each file; `None` if there was none that could be read.
    contents: BTreeMap<PathBuf, Option<blake3::Hash>>,
}

impl TrustedPrograms {
    /// Reads the programs of these commands in `env`, as far as they are below `workspace`.
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

    /// Adds the files that a program and its arguments name. The program is started without a shell.
    pub async fn add_invocation(&mut self, arguments: &[String], env: &dyn ExecutionEnvironment) {
        self.add(programs::named_by(arguments, &self.workspace), env).await;
    }

    async fn add(&mut self, paths: BTreeSet<PathBuf>, env: &dyn ExecutionEnvironment) {
        for path in paths {
            let content = content(&path, env).await;
            self.contents.insert(path, content);
        }
    }

    /// Returns the files with the hash of their content; `None` for one that there is not, or that cannot be read. The text is
    /// the same as long as the content is.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, Option<String>)> {
        self.contents
            .iter()
            .map(|(path, content)| (path.as_path(), content.map(|hash| hash.to_hex().to_string())))
    }

    /// Returns the first program of a command that is not as it was.
    pub(super) async fn changed(
        &self,
        command: &HookCommand,
        env: &dyn ExecutionEnvironment,
    ) -> Option<PathBuf> {
        for path in command.programs(&self.workspace) {
            let trusted = self.contents.get(&path).copied().flatten();
            if content(&path, env).await != trusted {
                return Some(path);
            }
        }
        None
    }
}

async fn content(path: &Path, env: &dyn ExecutionEnvironment) -> Option<blake3::Hash> {
    // One that cannot be read now could be read later.
    env.read(path, None).await.ok().map(|content| blake3::hash(&content))
}
