//! A gate for directories that must not change unnoticed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;

use super::{Gate, Permission, Verdict};
use crate::call::PreparedCall;

/// A rule on changes below directories with certain names at any depth, such as `.git`, whose hooks and configuration
/// run programs.
///
/// Paths are judged both as given and with all links resolved; a path that cannot be resolved is judged as given. Case
/// does not count, since some file systems ignore it. Commands are not judged, since they declare no reliable paths.
#[derive(Clone, Debug)]
pub struct ProtectedDirectoryGate {
    env: Arc<dyn ExecutionEnvironment>,
    names: Vec<String>,
    permission: Permission,
}

impl ProtectedDirectoryGate {
    /// A gate that asks about changes in directories with these names.
    #[must_use]
    pub fn new<'a>(env: Arc<dyn ExecutionEnvironment>, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().map(str::to_owned).collect();
        Self { env, names, permission: Permission::Ask }
    }

    /// Sets the permission of those changes.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        self.permission = permission;
        self
    }

    /// Returns the protected name in a path.
    fn protected_name(&self, path: &Path) -> Option<&str> {
        let is_named = |name: &&String| path.iter().any(|part| is_same(part, name));
        self.names.iter().find(is_named).map(String::as_str)
    }
}

fn is_same(part: &OsStr, name: &str) -> bool {
    part.to_str().is_some_and(|part| part.eq_ignore_ascii_case(name))
}

#[async_trait]
impl Gate for ProtectedDirectoryGate {
    fn name(&self) -> &'static str {
        "protected_directory"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        for path in call.writes() {
            let real: Option<PathBuf> = self.env.canonicalize(path).await.ok();
            let found = self.protected_name(path).or_else(|| self.protected_name(real.as_deref()?));
            if let Some(name) = found {
                return self.permission.verdict(|| format!("it changes {}, below {name}", path.display()));
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
    use crate::gate::harness::{call_in, probe};
    use crate::tool::Effect;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "fixtures are there before the environment is used")]
    async fn changes_below_a_protected_directory_are_asked_about() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join(".git/hooks")).unwrap();
        std::os::unix::fs::symlink(".git/hooks", directory.path().join("hooks")).unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), []).unwrap());
        let gate = ProtectedDirectoryGate::new(Arc::clone(&env) as _, [".git"]);
        for (path, asks) in [
            (".git/config", true),
            (".git", true),
            ("sub/.git/hooks/pre-commit", true),
            ("hooks/pre-commit", true),
            (".GIT/config", true),
            (".gitignore", false),
            ("src/git/a.rs", false),
        ] {
            let call = call_in(env.as_ref(), probe(Effect::Write), json!({ "writes": [path] })).await;
            let verdict = gate.check(&call).await;
            assert_eq!(verdict.permission() == Permission::Ask, asks, "{path}: {verdict:?}");
        }
        let call = call_in(env.as_ref(), probe(Effect::Read), json!({ "reads": [".git/config"] })).await;
        assert_eq!(gate.check(&call).await, Verdict::ALLOW);
    }
}
