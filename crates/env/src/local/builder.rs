//! Builds a local environment.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{LocalEnvironment, lifeline::Lifeline, reaper::Reaper};
use crate::{
    error::EnvError,
    host_files::{files::Files, walk_cache::WalkCache},
    output::OutputLimits,
    path::normalize,
    setters::setters,
    variables::{EnvPolicy, TAG_VARIABLE},
};

/// Candidate shells; the first one that exists is used.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// Builds a [`LocalEnvironment`].
#[derive(Clone)]
#[must_use]
pub struct LocalEnvironmentBuilder {
    working_directory: PathBuf,
    host_env: BTreeMap<OsString, OsString>,
    policy: EnvPolicy,
    variables: BTreeMap<OsString, OsString>,
    shell: Option<PathBuf>,
    output_limits: Option<OutputLimits>,
    has_lifeline: bool,
    walk_cache: Option<Arc<WalkCache>>,
}

impl LocalEnvironmentBuilder {
    /// Creates a builder with all defaults.
    pub(super) fn new(working_directory: PathBuf) -> Self {
        Self {
            working_directory,
            host_env: BTreeMap::new(),
            policy: EnvPolicy::default(),
            variables: BTreeMap::new(),
            shell: None,
            output_limits: None,
            has_lifeline: true,
            walk_cache: None,
        }
    }

    /// Sets the variables of the embedding application, as returned by `std::env::vars_os()`. The
    /// policy decides which of them commands inherit.
    pub fn with_host_env(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.host_env = variables.into_iter().collect();
        self
    }

    /// Sets which of these variables commands inherit; default [`EnvPolicy::InheritFiltered`].
    pub fn with_env_policy(mut self, policy: EnvPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Adds a variable for every command, regardless of the policy.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    setters! {
        /// Sets the shell, which must support `-c`; default `/bin/bash`, else `/bin/sh`.
        pub fn with_shell(shell: impl Into<PathBuf>) => shell = Some(shell.into());
        /// Sets the limits on captured output; default [`OutputLimits::default`] with spool files in
        /// the embedding application's `TMPDIR`.
        pub fn with_output_limits(limits: OutputLimits) => output_limits = Some(limits);
        /// Sets whether commands are terminated when the embedding process dies, by a `/bin/sh` that
        /// runs beside them; default true. Commands fail to start if that shell does. Without it,
        /// dropped commands receive the kill signal at once: the embedding process could exit before
        /// the end of the grace period.
        pub fn with_lifeline(has_lifeline: bool) => has_lifeline = has_lifeline;
    }

    /// Keeps the latest [walk](crate::ExecutionEnvironment::walk) of the working directory, and returns it again while the kernel
    /// reports no change of the tree, unless the request is [fresh](crate::WalkRequest::is_fresh). Environments of clones of
    /// the builder share it. Default: each walk lists the tree.
    ///
    /// Only on Linux and on local file systems; elsewhere, and in trees of more than 8,192 directories, it has no effect. A
    /// change through a hard link that is created later in another directory is not reported, nor is one through a memory
    /// map before it is closed.
    pub fn with_cached_walks(mut self) -> Self {
        self.walk_cache = Some(Arc::default());
        self
    }

    /// Builds the environment without touching the file system;
    /// [`initialize`](crate::ExecutionEnvironment::initialize) checks the directory.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the directory is not absolute.
    pub fn build(self) -> Result<LocalEnvironment, EnvError> {
        if !self.working_directory.is_absolute() {
            return Err(EnvError::InvalidPath {
                path: self.working_directory,
                source: std::io::Error::other("the working directory must be absolute"),
            });
        }
        let outer_tag = self.host_env.get(TAG_VARIABLE.as_ref() as &std::ffi::OsStr);
        let outer_tag = outer_tag.and_then(|tag| tag.to_str()).map(str::to_owned);
        let output_limits = self.output_limits.unwrap_or_else(|| {
            let limits = OutputLimits::default();
            match self.host_env.get("TMPDIR".as_ref() as &std::ffi::OsStr) {
                Some(directory) => limits.with_spool_dir(directory),
                None => limits,
            }
        });
        let home = [&self.variables, &self.host_env]
            .into_iter()
            .find_map(|variables| variables.get("HOME".as_ref() as &std::ffi::OsStr))
            .map(|home| normalize(Path::new(home)))
            .filter(|home| home.is_absolute());
        let mut variables = self.policy.choose(self.host_env);
        variables.extend(self.variables);
        let tag = environment_tag(outer_tag.as_deref());
        let lifeline = self.has_lifeline.then(|| {
            let path = variables.get("PATH".as_ref() as &std::ffi::OsStr).cloned();
            Arc::new(Lifeline::new(tag.clone(), outer_tag, path))
        });
        Ok(LocalEnvironment {
            working_directory: normalize(&self.working_directory),
            home,
            os_version: os_version(),
            shell: self.shell.unwrap_or_else(default_shell),
            variables: Arc::new(variables),
            output_limits,
            reaper: Arc::new(Reaper::new(lifeline)),
            tag,
            commands: Arc::default(),
            files: Files::Named,
            walk_cache: self.walk_cache,
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            temporary: None,
        })
    }
}

impl fmt::Debug for LocalEnvironmentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnvironmentBuilder")
            .field("working_directory", &self.working_directory)
            .field("policy", &self.policy)
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Creates a tag that is unique among all live processes. It extends the tag of the embedding
/// process if that is itself a command of another environment.
fn environment_tag(outer: Option<&str>) -> String {
    // The standard library seeds its hashers from the system's randomness.
    let random = RandomState::new().hash_one(());
    let own = format!("{}-{random:016x}", std::process::id());
    match outer {
        Some(outer) => format!("{outer}/{own}"),
        None => own,
    }
}

fn os_version() -> String {
    match nix::sys::utsname::uname() {
        Ok(name) => format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
        Err(_) => std::env::consts::OS.to_owned(),
    }
}

fn default_shell() -> PathBuf {
    let [preferred, fallback] = SHELLS.map(Path::new);
    let shell = if preferred.exists() { preferred } else { fallback };
    shell.to_path_buf()
}
