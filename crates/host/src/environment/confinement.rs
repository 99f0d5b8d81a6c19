//! Applies `--sandbox`, `--network` and `--confine` to an environment.

#[cfg(target_os = "linux")]
mod linux;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use pintle_env::{ConfinedEnvironment, ExecutionEnvironment, LocalEnvironmentBuilder, WriteSwitch};
use pintle_governance::{HostScope, WorkspacePolicy};

#[cfg(target_os = "linux")]
use self::linux::build_sandboxed;
use super::project_caches::SessionCaches;
use super::repository_guard::RepositoryGuard;
use super::sandbox_loss::SandboxLoss;
use super::secrets;
use super::temporary::TemporaryDirectory;
use super::watch_record::WatchRecord;
use super::workspace_search::{SearchedWorkspace, WorkspaceSearch};
use crate::env_spec::{EnvSpec, unsupported_hosts};
use crate::failure::{Failure, OrFailure as _};
use crate::policy::ProjectFiles;
use crate::process_env::ProcessEnv;
use crate::spec::{NetworkAccess, SandboxLevel, SessionSpec};

/// Message for an environment that cannot be set up.
pub(crate) const ENVIRONMENT_UNUSABLE: &str = "cannot use the execution environment";

/// Hint for a sandbox that cannot be set up.
pub const SANDBOX_HINT: &str =
    "use --no-sandbox to run commands with all your permissions, or --mode edit to be asked";

/// Limits on commands and file tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Level of the sandbox that commands run in.
    pub level: SandboxLevel,
    /// Whether sandboxed commands and web tools may use the network; `None` leaves it to the sandbox. A list of hosts is separate
    /// from it: [`EnvTarget::with_hosts`](super::EnvTarget::with_hosts).
    pub network: Option<bool>,
    /// Whether file tools are restricted to the working directory.
    pub confine: bool,
}

impl Confinement {
    /// Returns the limits of commands of `pintle` that run no model.
    pub const fn none() -> Self {
        Self { level: SandboxLevel::Off, network: None, confine: false }
    }

    /// Returns whether sandboxed commands and web tools may use the network.
    pub fn has_network(&self) -> bool {
        self.network.unwrap_or(self.level == SandboxLevel::Off)
    }
}

impl From<&SessionSpec> for Confinement {
    fn from(spec: &SessionSpec) -> Self {
        let environment = &spec.environment;
        Self {
            level: environment.sandbox,
            network: environment.network.as_ref().map(|access| *access == NetworkAccess::On),
            confine: environment.confine,
        }
    }
}

/// Local environment with its limits applied.
pub(super) struct ConfinedLocal {
    pub(super) environment: Arc<dyn ExecutionEnvironment>,
    /// The environment for MCP servers, some of which may run outside of the sandbox.
    pub(super) server_environment: Arc<dyn ExecutionEnvironment>,
    pub(super) kill_all: Arc<dyn Fn() + Send + Sync>,
    /// Directory for temporary files of sandboxed commands, removed on drop.
    pub(super) temporary: Option<TemporaryDirectory>,
    pub(super) sandbox: SandboxState,
    /// Whether the sandbox support was read from the record of an earlier probe.
    pub(super) is_cached: bool,
    /// Policy with the files that the sandbox protects.
    pub(super) workspace: WorkspacePolicy,
    /// Returns the paths that lost their protection while a command ran.
    pub(super) replaced: Option<ReplacedPathsSource>,
    /// Restores git histories that commands remove.
    pub(super) repositories: RepositoryGuard,
    /// Finds more paths to protect before the first change.
    pub(super) search: Option<Arc<WorkspaceSearch>>,
    /// Package caches of commands.
    pub(super) caches: SessionCaches,
    /// Reports that the machine has lost the sandbox.
    pub(super) loss: SandboxLoss,
}

/// Returns paths that the sandbox no longer protected.
pub(super) type ReplacedPathsSource = Arc<dyn Fn() -> BTreeSet<PathBuf> + Send + Sync>;

/// Files of a workspace and of the user that a sandbox guards, and the hosts that its commands may reach.
#[derive(Clone, Copy)]
pub(super) struct GuardedFiles<'a> {
    pub(super) record: &'a WatchRecord,
    pub(super) policy: &'a WorkspacePolicy,
    /// Rules of `--deny`.
    pub(super) denials: &'a [String],
    pub(super) projects: &'a ProjectFiles,
    /// Hosts that commands may reach; `None` without such a limit.
    pub(super) hosts: Option<&'a HostScope>,
}

/// Sandbox requirements of a run.
#[derive(Clone, Debug)]
pub struct SandboxRequirements {
    /// Whether commands and file tools may change the workspace now. It follows the mode.
    pub writes: WriteSwitch,
    /// Whether the user can allow a command to run outside of the sandbox.
    pub can_run_outside: bool,
    /// Whether state is stored for later runs.
    pub keeps_state: bool,
    /// Whether the result of an earlier probe may be used.
    pub may_reuse_probe: bool,
    /// Whether the workspace is a clone that is removed later. Only its own repository is guarded, not repositories that
    /// commands create in it.
    pub is_disposable: bool,
    /// Directories outside of the workspace that commands and file tools can read and not change, wherever they are.
    pub readable: Vec<PathBuf>,
    /// Whether the environment is a container for this workspace alone, which counts as a sandbox.
    pub is_contained: bool,
}

impl Default for SandboxRequirements {
    fn default() -> Self {
        Self {
            writes: WriteSwitch::new(true),
            can_run_outside: false,
            keeps_state: false,
            may_reuse_probe: true,
            is_disposable: false,
            readable: Vec::new(),
            is_contained: false,
        }
    }
}

/// Sandbox state of the commands of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxState {
    /// Turned off by the user.
    Off,
    /// A sandbox of this level, `full` or `writes`, or a `container` for the workspace alone.
    Level(String),
    /// No level could be set up.
    Unavailable {
        /// Why, for each level.
        reasons: String,
    },
}

impl SandboxState {
    /// Returns the name of the state in a record.
    pub fn recorded_name(&self) -> &str {
        match self {
            Self::Off => "off",
            Self::Level(level) => level,
            Self::Unavailable { .. } => "unavailable",
        }
    }
}

/// Rejects limits that do not apply to the target.
pub(super) fn validate(confinement: &Confinement, spec: &EnvSpec) -> Result<(), Failure> {
    let level = confinement.level;
    if matches!(level, SandboxLevel::Full | SandboxLevel::Writes) && *spec != EnvSpec::Local {
        let problem = format!("sandbox {level}: expected the environment {}, not {spec}", EnvSpec::LOCAL);
        return Err(Failure::usage(problem)
            .with_setting("environment.sandbox")
            .with_hint("the setting `confine` restricts file tools"));
    }
    let has_sandbox = level != SandboxLevel::Off && *spec == EnvSpec::Local;
    if confinement.network.is_some() && !confinement.has_network() && !has_sandbox {
        let problem = "network off: expected a sandbox, which blocks the network";
        return Err(Failure::usage(problem).with_setting("environment.network"));
    }
    Ok(())
}

/// Returns whether a run on this machine has a sandbox, unless its flags say otherwise.
#[cfg(target_os = "linux")]
pub async fn has_sandbox(local: &pintle_env::LocalEnvironment) -> bool {
    let support = pintle_env::SandboxSupport::probe(local).await;
    support.is_ok_and(|support| !support.levels().is_empty())
}

/// Returns whether a run on this machine has a sandbox, unless its flags say otherwise.
#[cfg(not(target_os = "linux"))]
pub async fn has_sandbox(_local: &pintle_env::LocalEnvironment) -> bool {
    false
}

/// Builds the local environment.
///
/// A requested level that cannot be set up is a usage failure.
pub(super) async fn build_local(
    confinement: &Confinement,
    requirements: &SandboxRequirements,
    builder: LocalEnvironmentBuilder,
    files: &GuardedFiles<'_>,
    process_env: &ProcessEnv,
) -> Result<ConfinedLocal, Failure> {
    let sandbox = match confinement.level {
        SandboxLevel::Off => SandboxState::Off,
        SandboxLevel::Auto | SandboxLevel::Full | SandboxLevel::Writes => {
            match build_sandboxed(confinement, requirements, builder.clone(), files, process_env).await? {
                SandboxAttempt::Built(built) => return Ok(*built),
                SandboxAttempt::Unavailable { reasons } if confinement.level == SandboxLevel::Auto => {
                    SandboxState::Unavailable { reasons }
                }
                SandboxAttempt::Unavailable { reasons } => {
                    return Err(Failure::usage(format!("the sandbox cannot be set up: {reasons}"))
                        .with_hint(SANDBOX_HINT));
                }
            }
        }
    };
    if files.hosts.is_some() {
        let reason = match &sandbox {
            SandboxState::Unavailable { reasons } => format!("the sandbox cannot be set up: {reasons}"),
            SandboxState::Off | SandboxState::Level(_) => "it is not supported without a sandbox".to_owned(),
        };
        return Err(unsupported_hosts(&reason));
    }
    let plain = builder.clone().build().or_failed(ENVIRONMENT_UNUSABLE)?;
    let workspace = plain.working_directory().to_path_buf();
    let searched = SearchedWorkspace {
        environment: plain,
        settings_directories: files.policy.settings_directories.clone(),
        writable_roots: secrets::external_git_directories(&workspace, process_env),
        is_disposable: requirements.is_disposable,
        is_protected: false,
    };
    let search = WorkspaceSearch::new(searched, files.record, process_env).await;
    let search = Arc::new(search.or_failed(ENVIRONMENT_UNUSABLE)?);
    let local = Arc::new(builder.build().or_failed(ENVIRONMENT_UNUSABLE)?);
    let killed = Arc::clone(&local);
    Ok(ConfinedLocal {
        environment: confine(confinement, Arc::clone(&local) as _, []),
        server_environment: local,
        kill_all: Arc::new(move || killed.kill_all()),
        temporary: None,
        sandbox,
        is_cached: false,
        workspace: files.policy.clone(),
        replaced: None,
        repositories: RepositoryGuard::new(Arc::clone(&search), &workspace, false, process_env),
        search: Some(search),
        caches: SessionCaches::default(),
        loss: SandboxLoss::default(),
    })
}

/// Restricts file tools to the working directory and `more` if `--confine` is set.
pub(super) fn confine(
    confinement: &Confinement,
    environment: Arc<dyn ExecutionEnvironment>,
    more: impl IntoIterator<Item = PathBuf>,
) -> Arc<dyn ExecutionEnvironment> {
    if !confinement.confine {
        return environment;
    }
    let roots: Vec<PathBuf> =
        std::iter::once(environment.working_directory().to_path_buf()).chain(more).collect();
    Arc::new(ConfinedEnvironment::new(environment, roots))
}

/// Attempt to set up a sandbox.
enum SandboxAttempt {
    Built(Box<ConfinedLocal>),
    Unavailable { reasons: String },
}

/// Returns an environment of this machine whose commands have the rights of the user but no network.
#[cfg(target_os = "linux")]
pub(crate) async fn offline_environment(
    directory: &std::path::Path,
    process_env: &ProcessEnv,
) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
    use pintle_env::{Protection, SandboxedEnvironment};

    use super::sandbox_probe::SandboxProbe;

    let builder = process_env.unsandboxed_builder(directory);
    let trials = builder.clone().with_lifeline(false).build().or_failed(ENVIRONMENT_UNUSABLE)?;
    let SandboxProbe { support, .. } = SandboxProbe::recall_or_probe(&trials, false, process_env).await?;
    // The strongest level comes first. The last one does not change temporary directories and services' files.
    let level = support.levels().into_iter().next_back().ok_or_else(no_network_sandbox)?;
    let local = builder.build().or_failed(ENVIRONMENT_UNUSABLE)?;
    let sandbox = SandboxedEnvironment::new(local).with_level(level).with_support(support).with_writable("/");
    let unenforced = sandbox.unenforced().await.or_failed(ENVIRONMENT_UNUSABLE)?;
    if unenforced.contains(&Protection::Sockets) {
        return Err(no_network_sandbox());
    }
    Ok(Arc::new(unenforced.into_iter().fold(sandbox, SandboxedEnvironment::with_accepted)))
}

/// Returns an environment of this machine whose commands have the rights of the user but no network.
///
/// Always a usage failure: a sandbox requires Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn offline_environment(
    _directory: &std::path::Path,
    _process_env: &ProcessEnv,
) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
    Err(no_network_sandbox())
}

fn no_network_sandbox() -> Failure {
    Failure::usage(
        "the grant does not allow the network, and no sandbox on this machine can block it for your hooks",
    )
    .with_hint("remove the hooks, or give a grant with `\"network\": true`")
}

#[cfg(not(target_os = "linux"))]
async fn build_sandboxed(
    _confinement: &Confinement,
    _requirements: &SandboxRequirements,
    _builder: LocalEnvironmentBuilder,
    _files: &GuardedFiles<'_>,
    _process_env: &ProcessEnv,
) -> Result<SandboxAttempt, Failure> {
    Ok(SandboxAttempt::Unavailable { reasons: "a sandbox requires Linux".to_owned() })
}
