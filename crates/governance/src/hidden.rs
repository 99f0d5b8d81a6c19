//! A gate for files that file tools must not touch, such as keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;
use pintle_tools::gate::{Gate, Verdict, write_locations};
use pintle_tools::pipeline::PreparedCall;

/// Denies calls that read or change hidden files and directories by any path, and searches that would read them. No other
/// permission overrides the denial.
///
/// It protects files from file tools, like [`SandboxedEnvironment::with_hidden`](https://docs.rs/pintle-env) from commands.
/// Only a call that declares a path is judged. Paths are resolved in the environment; a path that cannot be resolved is
/// judged as given. A call that reads a directory above a hidden path is denied, since a search reads the files below. A
/// call that only lists the directory's entries is not. Case is ignored, as on some file systems.
///
/// ```
/// use std::sync::Arc;
/// use pintle_env::MemoryEnvironment;
/// use pintle_governance::HiddenPathGate;
///
/// let env = Arc::new(MemoryEnvironment::new("/u/jan/project"));
/// let gate = HiddenPathGate::new(env, ["/u/jan/.ssh", "/u/jan/.netrc"]);
/// # let _ = gate;
/// ```
#[derive(Clone, Debug)]
pub struct HiddenPathGate {
    env: Arc<dyn ExecutionEnvironment>,
    hidden: Vec<PathBuf>,
    visible: Vec<PathBuf>,
}

impl HiddenPathGate {
    /// Creates a gate for these absolute paths. They need not exist.
    #[must_use]
    pub fn new(
        env: Arc<dyn ExecutionEnvironment>,
        hidden: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Self {
        Self { env, hidden: hidden.into_iter().map(Into::into).collect(), visible: Vec::new() }
    }

    /// Leaves a directory inside a hidden one visible, such as the worktree of the session. Hidden paths in it stay
    /// hidden.
    #[must_use]
    pub fn with_visible(mut self, directory: impl Into<PathBuf>) -> Self {
        self.visible.push(directory.into());
        self
    }

    /// Returns paths as given and with all links resolved: the target of a hidden link is hidden as well.
    async fn with_targets(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let mut all = paths.to_vec();
        // Without an environment, paths are judged as given.
        let resolved = self.env.canonicalize_many(paths).await.unwrap_or_default();
        all.extend(resolved.into_iter().flatten());
        all
    }

    async fn objection(&self, call: &PreparedCall) -> Option<String> {
        // Resolving the hidden paths costs many system calls, and most calls are commands, which declare no path.
        if call.reads().is_empty() && call.writes().is_empty() {
            return None;
        }
        let hidden = self.with_targets(&self.hidden).await;
        let visible = self.with_targets(&self.visible).await;
        // The innermost directory counts.
        let is_hidden = |path: &Path| {
            let depth = |directories: &[PathBuf]| {
                let around = directories.iter().filter(|directory| is_within(path, directory));
                around.map(|directory| directory.components().count()).max()
            };
            depth(&hidden) > depth(&visible)
        };
        // Any other call that reads a directory reads the files below it.
        let lists_names = call.read_extent().is_listing();
        for path in call.reads().iter().chain(call.writes()) {
            let env = call.judged_in(&self.env);
            let locations = write_locations(env.as_ref(), path).await.unwrap_or_default();
            let named: Vec<&Path> =
                std::iter::once(path.as_path()).chain(locations.iter().map(PathBuf::as_path)).collect();
            if named.iter().any(|path| is_hidden(path)) {
                return Some(format!("{} is hidden from this session", path.display()));
            }
            let is_above = |hidden: &&PathBuf| named.iter().any(|path| is_within(hidden, path));
            if !lists_names && let Some(hidden) = hidden.iter().find(is_above) {
                return Some(format!(
                    "{} is hidden, and a search of {} would read it; search a directory below",
                    hidden.display(),
                    path.display()
                ));
            }
        }
        None
    }
}

/// Returns whether a path is a directory or below it, ignoring case.
fn is_within(path: &Path, directory: &Path) -> bool {
    let mut names = path.components();
    directory.components().all(|name| {
        names.next().is_some_and(|found| found.as_os_str().eq_ignore_ascii_case(name.as_os_str()))
    })
}

#[async_trait]
impl Gate for HiddenPathGate {
    fn name(&self) -> &'static str {
        "hidden_paths"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        match self.objection(call).await {
            Some(reason) => Verdict::deny(reason).with_rule("hidden path"),
            None => Verdict::ALLOW,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]

    use std::ops::Range;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pintle_env::{Command, EnvError, LocalEnvironment, MemoryEnvironment, Process, forward};
    use pintle_llm::ToolCall;
    use pintle_tools::pipeline::{JudgedCall, prepare};
    use pintle_tools::{ToolRegistry, builtin};
    use serde_json::{Value, json};

    use super::*;

    /// Counts the paths that are resolved.
    #[derive(Debug)]
    struct CountingEnvironment {
        inner: MemoryEnvironment,
        resolved: AtomicUsize,
    }

    #[async_trait]
    impl ExecutionEnvironment for CountingEnvironment {
        forward! { inner: working_directory, platform, os_version, write, metadata, list, remove, rename }

        async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
            self.inner.spawn(command).await
        }

        async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
            self.inner.read(path, range).await
        }

        async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
            self.resolved.fetch_add(1, Ordering::Relaxed);
            self.inner.canonicalize(path).await
        }
    }

    #[tokio::test]
    async fn a_call_without_paths_resolves_none() {
        let inner = MemoryEnvironment::new("/user/project").with_file("/user/.ssh/id", "KEY");
        let env = Arc::new(CountingEnvironment { inner, resolved: AtomicUsize::new(0) });
        let gate = HiddenPathGate::new(env.clone(), ["/user/.ssh", "/user/.netrc"]);
        let gate: Arc<dyn Gate> = Arc::new(gate.with_visible("/user/.ssh/worktree"));
        let mut registry = ToolRegistry::new();
        builtin::register_core(&mut registry).unwrap();
        for (tool, arguments, is_denied) in [
            ("shell", json!({"command": "cat ../.ssh/id"}), false),
            ("read_file", json!({"file_path": "../.ssh/id"}), true),
        ] {
            env.resolved.store(0, Ordering::Relaxed);
            let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
            let prepared = prepare(&registry, &[Arc::clone(&gate)], env.as_ref(), &call).await;
            assert_eq!(matches!(prepared, JudgedCall::Refused { .. }), is_denied, "{tool}: {prepared:?}");
            assert_eq!(env.resolved.load(Ordering::Relaxed) > 0, is_denied, "{tool}");
        }
    }

    #[tokio::test]
    async fn hidden_files_are_reached_by_no_path_and_by_no_search() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        for directory in [".ssh", "project/src", "keys"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        std::fs::write(root.join("keys/real"), "KEY").unwrap();
        symlink(root.join("keys/real"), root.join(".netrc")).unwrap();
        symlink(root.join(".ssh"), root.join("project/link")).unwrap();
        let env: Arc<dyn ExecutionEnvironment> =
            Arc::new(LocalEnvironment::with_host_env(root.join("project"), []).unwrap());
        let gate: Arc<dyn Gate> = Arc::new(HiddenPathGate::new(
            Arc::clone(&env),
            [root.join(".ssh"), root.join(".netrc"), root.join(".missing")],
        ));
        let mut registry = ToolRegistry::new();
        builtin::register_core(&mut registry).unwrap();
        let read = |path: &str| ("read_file", json!({ "file_path": path }));
        let write = |path: &str| ("write_file", json!({"file_path": path, "content": "x"}));
        let grep = |path: &str| ("grep", json!({"pattern": "K", "path": path}));
        let cases: [((&str, Value), bool); 15] = [
            (read("../.ssh/id"), true),
            (read("../.SSH/id"), true),
            (write("../.Missing"), true),
            (read("../.ssh2/id"), false),
            (read("link/id"), true),
            (read("../.netrc"), true),
            (read("../keys/real"), true),
            (read("../.missing/a"), true),
            (read("src/a"), false),
            (write("../.ssh/authorized_keys"), true),
            (write("link"), true),
            (grep(".."), true),
            (grep("link"), true),
            (grep("src"), false),
            (grep("."), false),
        ];
        let own = root.join(".ssh/worktrees/own");
        std::fs::create_dir_all(&own).unwrap();
        let in_hidden = HiddenPathGate::new(Arc::clone(&env), [root.join(".ssh"), own.join("keys")]);
        let in_hidden: Arc<dyn Gate> = Arc::new(in_hidden.with_visible(&own));
        for (path, is_denied) in [
            ("../.ssh/worktrees/own/a", false),
            ("../.ssh/worktrees/own/keys/a", true),
            ("../.ssh/worktrees/own/../other/a", true),
            ("../.ssh/worktrees/a", true),
            ("../.ssh/id", true),
        ] {
            let (tool, arguments) = read(path);
            let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
            let prepared = prepare(&registry, &[Arc::clone(&in_hidden)], env.as_ref(), &call).await;
            assert_eq!(matches!(prepared, JudgedCall::Refused { .. }), is_denied, "{path}: {prepared:?}");
        }
        for ((tool, arguments), is_denied) in cases {
            let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
            let prepared = prepare(&registry, &[Arc::clone(&gate)], env.as_ref(), &call).await;
            let denied = matches!(&prepared, JudgedCall::Refused { judgement, .. } if !judgement.is_empty());
            assert_eq!(denied, is_denied, "{tool} {arguments}: {prepared:?}");
        }
    }
}
