//! A gate for files that must not change.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;

use super::{Gate, Permission, Verdict, write_locations};
use crate::call::PreparedCall;

/// Paths below `.git` whose content runs programs, or selects them.
const GIT: [&[&str]; 8] = [
    &["commondir"],
    &["config"],
    &["config.worktree"],
    &["hooks"],
    &["info", "attributes"],
    // The steps and options of an operation in progress, which name programs.
    &["rebase-apply"],
    &["rebase-merge"],
    &["sequencer"],
];

/// A rule on changes of files that later run programs outside of any tool: the configuration, hooks and attributes of
/// git and the state of its rebases, at any depth, and directories that an application adds.
///
/// Paths are judged both as given and with all links resolved. A path that cannot be resolved is judged as given. Case
/// is ignored, since some file systems ignore it. Commands are not judged, since they do not declare reliable paths.
#[derive(Clone, Debug)]
pub struct ProtectedPathGate {
    env: Arc<dyn ExecutionEnvironment>,
    names: Vec<String>,
    permission: Permission,
}

impl ProtectedPathGate {
    /// Creates a gate that asks about changes of git's own files.
    #[must_use]
    pub fn new(env: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { env, names: Vec::new(), permission: Permission::Ask }
    }

    /// Adds directories with this name, at any depth.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Sets the permission of those changes.
    #[must_use]
    pub fn with_permission(mut self, permission: Permission) -> Self {
        self.permission = permission;
        self
    }
}

/// Returns the protected file or directory that a write to `path` in an environment would change: a file of git, or a
/// directory with one of these names. Paths are judged as by [`ProtectedPathGate`]. Dropping the future has no effect.
pub async fn protected_target(env: &dyn ExecutionEnvironment, path: &Path, names: &[&str]) -> Option<String> {
    let locations = write_locations(env, path).await.unwrap_or_default();
    let mut paths = std::iter::once(path).chain(locations.iter().map(PathBuf::as_path));
    paths.find_map(|path| protected_name(path, names))
}

/// Returns the protected name in a path.
fn protected_name(path: &Path, names: &[&str]) -> Option<String> {
    let is_named = |name: &&&str| path.iter().any(|part| is_same(part, name));
    let of_git = || {
        // Also in the directories of submodules and worktrees.
        let below: Vec<&OsStr> = path.iter().skip_while(|part| !is_same(part, ".git")).skip(1).collect();
        let is_at = |position: usize, names: &[&str]| {
            let parts = below.iter().skip(position);
            below.len() - position >= names.len() && parts.zip(names).all(|(part, name)| is_same(part, name))
        };
        let find = |position| GIT.into_iter().find(|names| is_at(position, names));
        (0..below.len()).find_map(find).map(|names| names.join("/"))
    };
    let is_git = || path.file_name().is_some_and(|name| is_same(name, ".git")).then(|| ".git".to_owned());
    names
        .iter()
        .find(is_named)
        .map(|name| (*name).to_owned())
        .or_else(|| of_git().map(|name| format!(".git/{name}")))
        .or_else(is_git)
}

fn is_same(part: &OsStr, name: &str) -> bool {
    part.to_str().is_some_and(|part| part.eq_ignore_ascii_case(name))
}

#[async_trait]
impl Gate for ProtectedPathGate {
    fn name(&self) -> &'static str {
        "protected_paths"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        for path in call.writes() {
            let env = call.judged_in(&self.env);
            if let Some(name) = protected_target(env.as_ref(), path, &names).await {
                let verdict = self.permission.verdict(|| format!("{} is protected", path.display()));
                return verdict.with_rule(format!("protected {name}"));
            }
        }
        Verdict::ALLOW
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::LocalEnvironment;
    use serde_json::json;

    use super::*;
    use crate::tests::probe::{call_in, probe};
    use crate::tool::Effect;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "fixtures are there before the environment is used")]
    async fn changes_of_protected_files_are_asked_about() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join(".git/hooks")).unwrap();
        std::os::unix::fs::symlink(".git/hooks", directory.path().join("hooks")).unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), []).unwrap());
        let gate = ProtectedPathGate::new(Arc::clone(&env) as _).with_name(".pintle");
        for (path, asks) in [
            (".git/config", true),
            (".git", true),
            (".git/index", false),
            ("sub/.git/hooks/pre-commit", true),
            (".git/modules/a/hooks/pre-commit", true),
            (".git/commondir", true),
            (".git/info/attributes", true),
            (".git/modules/a/info/attributes", true),
            (".GIT/Info/Attributes", true),
            (".git/rebase-merge/git-rebase-todo", true),
            (".git/rebase-apply/next", true),
            (".git/sequencer/todo", true),
            (".git/worktrees/a/rebase-merge/git-rebase-todo", true),
            (".git/modules/a/Rebase-Merge/git-rebase-todo", true),
            ("rebase-merge/git-rebase-todo", false),
            (".git/info/exclude", false),
            (".git/info", false),
            ("hooks/pre-commit", true),
            (".GIT/Config", true),
            (".pintle/rules.toml", true),
            ("sub/.pintle", true),
            (".gitignore", false),
            ("src/git/config", false),
        ] {
            let call = call_in(env.as_ref(), probe(Effect::Write), json!({ "writes": [path] })).await;
            let verdict = gate.check(&call).await;
            assert_eq!(verdict.permission() == Permission::Ask, asks, "{path}: {verdict:?}");
        }
        let call = call_in(env.as_ref(), probe(Effect::Read), json!({ "reads": [".git/config"] })).await;
        assert_eq!(gate.check(&call).await, Verdict::ALLOW);
    }
}
