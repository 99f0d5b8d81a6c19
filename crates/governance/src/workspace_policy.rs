//! The paths of a session's workspace, for gates, the sandbox and checkpoints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_agent::{Clock, SessionId};
use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_tools::gate::{Permission, ProtectedPathGate};

use crate::gate::GrantGate;
use crate::gate_chain::{GateChain, GatePosition};
use crate::grant::Grant;
use crate::hidden::HiddenPathGate;
use crate::policy::{Policy, PolicyGate};
use crate::revocation::Revocations;
use crate::rules::Rules;
use crate::watch::ProtectedPathWatch;

/// Limits on the files of a session that follow from its workspace, and the revoked grants.
///
/// An application assembles it once for a session. The [gates](Self::gates), the [watch](Self::watch), the sandbox and
/// the [exclusion from checkpoints](Self::excluded_from_checkpoints) read the same value.
///
/// ```
/// use std::sync::Arc;
/// use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
/// use pintle_governance::{Mode, Policy, Rules, WorkspacePolicy};
///
/// let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/w"));
/// let mut workspace = WorkspacePolicy::new();
/// workspace.hidden = vec!["/w/keys".into()];
/// let gates = workspace.gates(&env, &Policy::new(Mode::Edit, Rules::new(), "/w"));
/// let names: Vec<&str> = gates.in_order().iter().map(|gate| gate.name()).collect();
/// assert_eq!(names, ["hidden_paths", "protected_paths", "rules"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkspacePolicy {
    /// Directories outside the workspace that sandboxed commands may change, such as the git directory of a worktree.
    pub writable_roots: Vec<PathBuf>,
    /// Files and directories that file tools must not access, and that a sandbox hides from commands. They need not exist.
    pub hidden: Vec<PathBuf>,
    /// Directories inside hidden ones that stay accessible, such as the workspace.
    pub visible: Vec<PathBuf>,
    /// Further files and directories that checkpoints leave out, such as keys that are not hidden without a sandbox.
    pub secret: Vec<PathBuf>,
    /// Names of directories with settings of agents, at any depth. File tools must not change them, and a command that
    /// changes them ends the run.
    pub settings_directories: Vec<String>,
    /// Existing files and directories that the sandbox keeps commands from changing.
    pub protected: Vec<PathBuf>,
    /// Directory for temporary files of sandboxed commands. File tools may change files in it.
    pub temporary: Option<PathBuf>,
    /// Whether a sandbox confines commands, so that mode [`Plan`](crate::Mode::Plan) lets them run.
    pub sandbox_holds_commands: bool,
    /// Whether the files are on this machine. Elsewhere, the watch does not search the workspace, and links of files that
    /// rules deny to read are not resolved, because both take too long.
    pub is_local: bool,
    /// Revoked grants, which sessions share.
    pub revocations: Revocations,
}

impl WorkspacePolicy {
    /// Name of the directory with a project's settings for agents.
    pub const SETTINGS: &'static str = ".pintle";

    /// Creates the policy of a local workspace that protects git's files and [`.pintle`](Self::SETTINGS), hides nothing,
    /// and has no sandbox.
    #[must_use]
    pub fn new() -> Self {
        Self {
            writable_roots: Vec::new(),
            hidden: Vec::new(),
            visible: Vec::new(),
            secret: Vec::new(),
            settings_directories: vec![Self::SETTINGS.to_owned()],
            protected: Vec::new(),
            temporary: None,
            sandbox_holds_commands: false,
            is_local: true,
            revocations: Revocations::new(),
        }
    }

    /// Adds files and directories that file tools must not access.
    #[must_use]
    pub fn with_hidden(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.hidden.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Sets the revoked grants.
    #[must_use]
    pub fn with_revocations(mut self, revocations: Revocations) -> Self {
        self.revocations = revocations;
        self
    }

    /// Returns the gates by hidden files, protected files, and rules and mode. A session adds its grant and its
    /// [watch](Self::watch).
    #[must_use]
    pub fn gates(&self, env: &Arc<dyn ExecutionEnvironment>, policy: &Policy) -> GateChain {
        let hidden = HiddenPathGate::new(Arc::clone(env), self.hidden.iter());
        let protected = ProtectedPathGate::new(Arc::clone(env)).with_permission(Permission::Deny);
        let by_policy = PolicyGate::new(policy.clone(), Arc::clone(env));
        let by_policy = match self.sandbox_holds_commands {
            true => by_policy.holding_commands_to_reading(),
            false => by_policy,
        };
        GateChain::new()
            .with_gate(GatePosition::Hidden, self.visible.iter().fold(hidden, HiddenPathGate::with_visible))
            .with_gate(
                GatePosition::Protected,
                self.settings_directories.iter().fold(protected, ProtectedPathGate::with_name),
            )
            .with_gate(GatePosition::Policy, self.temporary.iter().fold(by_policy, PolicyGate::with_root))
    }

    /// Returns the gate of a session with a grant. `environment` is the name of its environment in the grant.
    #[must_use]
    pub fn grant_gate(
        &self,
        grant: Arc<Grant>,
        session: SessionId,
        env: &Arc<dyn ExecutionEnvironment>,
        environment: &str,
        clock: Arc<dyn Clock>,
    ) -> GrantGate {
        GrantGate::new(grant, session, Arc::clone(env), environment)
            .with_clock(clock)
            .with_revocations(self.revocations.clone())
    }

    /// Returns the watch on protected files, which ends a run whose command changes them.
    #[must_use]
    pub fn watch(&self, env: &Arc<dyn ExecutionEnvironment>) -> ProtectedPathWatch {
        let watch = ProtectedPathWatch::new(Arc::clone(env), &self.settings_directories)
            .with_sandboxed_paths(self.protected.iter().cloned());
        if self.is_local { watch } else { watch.without_search() }
    }

    /// Returns the paths below the working directory that checkpoints leave out, relative to it: hidden and secret files,
    /// and existing files that `rules` deny to read.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as its loss.
    pub async fn excluded_from_checkpoints(
        &self,
        env: &dyn ExecutionEnvironment,
        rules: &Rules,
    ) -> Result<BTreeSet<PathBuf>, EnvError> {
        let denied = rules.denied_reads(env).await?;
        let given = env.working_directory();
        let paths = || self.hidden.iter().chain(&self.secret).chain(&denied.paths);
        let mut links = vec![given.to_path_buf()];
        if self.is_local {
            links.extend(paths().cloned());
        }
        let mut targets = env.canonicalize_many(&links).await?.into_iter();
        let real = targets.next().and_then(Result::ok).unwrap_or_else(|| given.to_path_buf());
        let below_root = |path: &Path| {
            let below = [given, &real].into_iter().find_map(|root| path.strip_prefix(root).ok());
            below.filter(|below| !below.as_os_str().is_empty()).map(Path::to_path_buf)
        };
        let mut excluded: BTreeSet<PathBuf> = paths().filter_map(|path| below_root(path)).collect();
        excluded.extend(targets.flatten().filter_map(|target| below_root(&target)));
        Ok(excluded)
    }
}

impl Default for WorkspacePolicy {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]

    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use pintle_env::{LocalEnvironment, forward};

    use super::*;
    use crate::Mode;

    /// Counts the calls that resolve links.
    #[derive(Debug)]
    struct CountingEnvironment {
        inner: LocalEnvironment,
        resolutions: AtomicUsize,
    }

    #[async_trait]
    impl ExecutionEnvironment for CountingEnvironment {
        forward! {
            inner: working_directory, platform, os_version, spawn, read, write, metadata, list, remove, rename, walk
        }

        async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
            self.resolutions.fetch_add(1, Ordering::Relaxed);
            self.inner.canonicalize(path).await
        }

        async fn canonicalize_many(
            &self,
            paths: &[PathBuf],
        ) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
            self.resolutions.fetch_add(1, Ordering::Relaxed);
            self.inner.canonicalize_many(paths).await
        }
    }

    #[tokio::test]
    async fn all_excluded_paths_are_resolved_in_one_call() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        symlink("real", root.join("link")).unwrap();
        let inner = LocalEnvironment::with_host_env(&root, []).unwrap();
        let env = CountingEnvironment { inner, resolutions: AtomicUsize::new(0) };
        let missing = (0..60).map(|number| PathBuf::from(format!("/missing/{number}")));
        let workspace = WorkspacePolicy::new().with_hidden(missing.chain([root.join("link")]));
        let excluded = workspace.excluded_from_checkpoints(&env, &Rules::new()).await.unwrap();
        assert_eq!(Vec::from_iter(excluded), ["link", "real"].map(PathBuf::from));
        // The rules resolve the working directory.
        let count = env.resolutions.load(Ordering::Relaxed);
        assert!(count <= 2, "{count} calls");
    }

    #[tokio::test]
    async fn checkpoints_leave_out_hidden_secret_and_denied_files_and_their_targets() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("keys")).unwrap();
        for file in ["keys/key", "real", ".env"] {
            std::fs::write(root.join(file), "SECRET").unwrap();
        }
        symlink("real", root.join("link")).unwrap();
        symlink("keys", root.join("home")).unwrap();
        let env = LocalEnvironment::with_host_env(&root, []).unwrap();
        let rules = Rules::parse("rules", r#"deny = ["@read(.env)"]"#, &root).unwrap();
        let mut workspace = WorkspacePolicy::new().with_hidden([root.join("keys"), root.join("link")]);
        // The file below the link does not exist yet.
        let missing = root.join("home/later");
        workspace.secret = vec![root.join(".netrc"), PathBuf::from("/elsewhere/.ssh"), root.clone(), missing];
        for (is_local, expected) in [
            (true, vec![".env", ".netrc", "home/later", "keys", "keys/later", "link", "real"]),
            (false, vec![".env", ".netrc", "home/later", "keys", "link"]),
        ] {
            workspace.is_local = is_local;
            let excluded = workspace.excluded_from_checkpoints(&env, &rules).await.unwrap();
            let excluded: Vec<&str> = excluded.iter().filter_map(|path| path.to_str()).collect();
            assert_eq!(excluded, expected, "{is_local}");
        }
    }

    #[test]
    fn gates_are_in_the_order_of_their_positions() {
        let env: Arc<dyn ExecutionEnvironment> = Arc::new(pintle_env::MemoryEnvironment::new("/w"));
        let workspace = WorkspacePolicy::new();
        let policy = Policy::new(Mode::Auto, Rules::new(), "/w");
        let grant = Arc::new(Grant::all(crate::GrantId::new("g")));
        let session = SessionId::new("s");
        let clock: Arc<dyn Clock> = Arc::new(pintle_agent::SystemClock);
        let chain = workspace
            .gates(&env, &policy)
            .with_gate(GatePosition::Watch, workspace.watch(&env))
            .with_gate(GatePosition::Grant, workspace.grant_gate(grant, session, &env, "local", clock));
        let names: Vec<&str> = chain.in_order().iter().map(|gate| gate.name()).collect();
        let expected = ["grant", "hidden_paths", "protected_paths", "rules", "protected_path_watch"];
        assert_eq!(names, expected);
    }
}
