//! Creates the execution environment of a run: local, a container, or a remote host.

mod confinement;
mod host_limits;
mod project_caches;
#[cfg(target_os = "linux")]
mod proxy_gateway;
mod repository_guard;
mod sandbox_loss;
#[cfg(target_os = "linux")]
mod sandbox_probe;
mod secrets;
mod temporary;
mod watch_record;
mod workspace_search;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use pintle_env::{
    DockerEnvironment, EnvError, ExecutionEnvironment, OutputLimits, ReadOnlyEnvironment, SshEnvironment,
    SshError, SshErrorKind, WriteSwitch,
};
use pintle_governance::{FinalCheck, HostScope, ProtectedPathWatch, WorkspacePolicy};

use self::confinement::{ConfinedLocal, GuardedFiles, ReplacedPathsSource};
pub use self::confinement::{Confinement, SANDBOX_HINT, SandboxRequirements, SandboxState, has_sandbox};
pub(crate) use self::confinement::{ENVIRONMENT_UNUSABLE, offline_environment};
use self::host_limits::HostLimits;
use self::project_caches::SessionCaches;
pub use self::project_caches::{UnusedCaches, prune_caches};
#[cfg(target_os = "linux")]
pub use self::proxy_gateway::ProxyGateway;
pub use self::repository_guard::GuardedWatch;
use self::repository_guard::RepositoryGuard;
use self::sandbox_loss::SandboxLoss;
use self::secrets::HiddenPaths;
#[cfg(feature = "mcp")]
pub(crate) use self::secrets::SERVER_TOKENS;
pub use self::secrets::server_paths;
use self::temporary::{AbandonedRemoval, TemporaryDirectory};
use self::watch_record::WatchRecord;
use self::workspace_search::WorkspaceSearch;
use crate::env_spec::{EnvSpec, EnvironmentChoice, SshHost, unsupported_hosts};
use crate::failure::{Failure, FailureKind, OrFailure as _};
use crate::notice::Notices;
use crate::policy::{Project, ProjectFiles};
use crate::process_env::ProcessEnv;
use crate::spec::SandboxLevel;

/// Validated target that has not been connected to yet.
#[derive(Debug)]
pub struct EnvTarget<'a> {
    choice: EnvironmentChoice,
    confinement: Confinement,
    requirements: SandboxRequirements,
    /// Rules of `--deny`.
    denials: &'a [String],
    /// Further hidden paths.
    hidden: &'a [PathBuf],
    /// Hosts that commands may reach; `None` without such a limit.
    hosts: Option<&'a HostScope>,
    /// Whether rules limit the hosts.
    has_rules: bool,
    process_env: &'a ProcessEnv,
}

/// Initialised execution environment with a working directory.
pub struct EnvSession {
    environment: Arc<dyn ExecutionEnvironment>,
    /// The environment for MCP servers, some of which may run outside of the sandbox.
    server_environment: Arc<dyn ExecutionEnvironment>,
    /// Kills all commands at once. `None` if a remote supervisor does so.
    kill_all: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Directory for temporary files of sandboxed commands.
    temporary: Option<TemporaryDirectory>,
    /// Removal of the temporary files of killed sessions.
    abandoned: AbandonedRemoval,
    sandbox: SandboxState,
    /// Hidden and protected files, for gates, the watch and checkpoints.
    workspace: WorkspacePolicy,
    /// Hosts that commands may reach; `None` without such a limit.
    hosts: Option<HostScope>,
    /// Returns the protected files that a command was able to change.
    replaced: Option<ReplacedPathsSource>,
    /// Restores git histories that commands remove.
    repositories: RepositoryGuard,
    /// Finds more paths to protect before the first change.
    search: Option<Arc<WorkspaceSearch>>,
    /// Projects that contain the working directory.
    projects: ProjectFiles,
    /// Package caches of commands.
    caches: SessionCaches,
    /// Reports that the machine has lost the sandbox.
    loss: SandboxLoss,
    /// Whether the sandbox and file tools allow changes.
    writes: WriteSwitch,
    record: WatchRecord,
    /// Checks protected files, once a session has created it.
    watch: OnceLock<ProtectedPathWatch>,
    notices: Notices,
}

/// Returns the policy of a workspace on this machine before a sandbox is set up: with a sandbox of this level, keys of
/// the user are hidden. They are never in checkpoints.
///
/// A workspace that is hidden itself is a usage failure.
pub fn local_workspace_policy(
    workspace: &Path,
    level: SandboxLevel,
    process_env: &ProcessEnv,
) -> Result<WorkspacePolicy, Failure> {
    let HiddenPaths { paths, visible } = match level {
        // Commands can read all of them.
        SandboxLevel::Off => secrets::hidden_without_sandbox(workspace, process_env)?,
        SandboxLevel::Auto | SandboxLevel::Full | SandboxLevel::Writes => {
            secrets::hidden_in_sandbox(workspace, process_env)?
        }
    };
    let mut policy = WorkspacePolicy::new();
    policy.hidden = paths;
    policy.visible = visible;
    // Without a home directory, only runs without a sandbox get here.
    policy.secret = secrets::hidden_paths(process_env).unwrap_or_default();
    Ok(policy)
}

impl<'a> EnvTarget<'a> {
    /// Validates the environment, the directory and the limits.
    pub fn new(
        choice: EnvironmentChoice,
        confinement: Confinement,
        process_env: &'a ProcessEnv,
    ) -> Result<Self, Failure> {
        confinement::validate(&confinement, &choice.spec)?;
        if let EnvSpec::Image(image) = &choice.spec {
            let problem = format!(
                "found the image {image:?}, expected the name or the id of a running container; only tasks start \
                 containers from an image"
            );
            return Err(Failure::usage(problem).with_setting("environment.kind"));
        }
        if choice.spec == EnvSpec::Local {
            process_env.directory(choice.directory.as_deref())?;
        }
        Ok(Self {
            choice,
            confinement,
            requirements: SandboxRequirements::default(),
            denials: &[],
            hidden: &[],
            hosts: None,
            has_rules: false,
            process_env,
        })
    }

    /// Sets the sandbox requirements of a run.
    pub fn with_requirements(mut self, requirements: SandboxRequirements) -> Self {
        self.requirements = requirements;
        self
    }

    /// Hides files from sandboxed commands that these rules of `--deny` deny to read. Rules files always apply.
    pub fn with_denials(mut self, denials: &'a [String]) -> Self {
        self.denials = denials;
        self
    }

    /// Hides further paths. Relative ones start at the working directory.
    pub fn with_hidden(mut self, hidden: &'a [PathBuf]) -> Self {
        self.hidden = hidden;
        self
    }

    /// Lets commands reach these hosts in place of no network, and limits commands to the hosts of the rules. An environment that
    /// cannot limit commands is refused when it is connected.
    pub fn with_hosts(mut self, hosts: Option<&'a HostScope>) -> Self {
        self.hosts = hosts;
        self.has_rules = true;
        self
    }

    /// Returns the further hidden paths of a workspace.
    ///
    /// A workspace in one of them is a usage failure.
    fn hidden_paths(&self, workspace: &Path) -> Result<Vec<PathBuf>, Failure> {
        let hidden: Vec<PathBuf> = self.hidden.iter().map(|path| workspace.join(path)).collect();
        match hidden.iter().find(|path| workspace.starts_with(path)) {
            None => Ok(hidden),
            Some(path) => {
                let (workspace, path) = (workspace.display(), path.display());
                Err(Failure::usage(format!("cannot work in {workspace}: {path} is hidden")))
            }
        }
    }

    /// Connects to the target and initialises it. Never falls back to another environment.
    pub fn connect(&self) -> BoxFuture<'_, Result<EnvSession, Failure>> {
        // Boxed, so that rustc does not prove again for each caller that all of it is `Send`.
        Box::pin(self.connect_to_target())
    }

    async fn connect_to_target(&self) -> Result<EnvSession, Failure> {
        let limits = OutputLimits::default();
        let limits = match self.process_env.variable("TMPDIR") {
            Some(directory) => limits.with_spool_dir(directory),
            None => limits,
        };
        let environment = match &self.choice.spec {
            EnvSpec::Local => return self.connect_local().await,
            // Refused when the target was created: no container has the name of an image with a tag.
            EnvSpec::Docker(name) | EnvSpec::Image(name) => {
                self.connect_remote(|directory| container(name, directory, &limits)).await?
            }
            EnvSpec::Ssh(host) => {
                self.connect_remote(|directory| remote_host(host, directory, &limits)).await?
            }
        };
        let projects = ProjectFiles::new(Arc::clone(&environment));
        if let Err(failure) = self.refuse_hosts(environment.as_ref(), &projects).await {
            // The first failure is the one to report.
            let _ = environment.cleanup().await;
            return Err(failure);
        }
        let environment = confinement::confine(&self.confinement, environment, []);
        let sandbox = match self.confinement.level {
            SandboxLevel::Off => SandboxState::Off,
            SandboxLevel::Auto | SandboxLevel::Full | SandboxLevel::Writes
                if self.requirements.is_contained =>
            {
                SandboxState::Level("container".to_owned())
            }
            SandboxLevel::Auto | SandboxLevel::Full | SandboxLevel::Writes => {
                SandboxState::Unavailable { reasons: format!("there is no sandbox in {}", self.choice.spec) }
            }
        };
        let mut workspace = WorkspacePolicy::new();
        workspace.is_local = false;
        workspace.hidden = match self.hidden_paths(environment.working_directory()) {
            Ok(hidden) => hidden,
            Err(failure) => {
                // The first failure is the one to report.
                let _ = environment.cleanup().await;
                return Err(failure);
            }
        };
        Ok(EnvSession {
            server_environment: Arc::clone(&environment),
            environment,
            kill_all: None,
            temporary: None,
            abandoned: AbandonedRemoval::default(),
            sandbox,
            workspace,
            hosts: None,
            replaced: None,
            repositories: RepositoryGuard::default(),
            search: None,
            projects,
            caches: SessionCaches::default(),
            loss: SandboxLoss::default(),
            writes: self.requirements.writes.clone(),
            record: WatchRecord::default(),
            watch: OnceLock::new(),
            notices: self.process_env.notices().clone(),
        })
    }

    async fn connect_local(&self) -> Result<EnvSession, Failure> {
        let abandoned = AbandonedRemoval::start();
        let directory = self.process_env.directory(self.choice.directory.as_deref())?;
        let builder = self.process_env.environment_builder(&directory).with_cached_walks();
        let record = WatchRecord::open(&directory, self.requirements.keeps_state, self.process_env)?;
        let mut policy = local_workspace_policy(&directory, self.confinement.level, self.process_env)?;
        policy.hidden.extend(self.hidden_paths(&directory)?);
        // File tools read the directories that commands can read.
        policy.visible.extend(self.requirements.readable.iter().cloned());
        let unlimited = builder.clone().build().or_failed(ENVIRONMENT_UNUSABLE)?;
        let unlimited = Arc::new(unlimited);
        let projects = ProjectFiles::new(Arc::clone(&unlimited) as _);
        let HostLimits { hosts, are_of_rules } = self.host_limits(&*unlimited, &projects).await?;
        let network = if hosts.is_some() { Some(false) } else { self.confinement.network };
        let confinement = Confinement { network, ..self.confinement };
        let files = GuardedFiles {
            record: &record,
            policy: &policy,
            denials: self.denials,
            projects: &projects,
            hosts: hosts.as_ref(),
        };
        let confined = async |requirements| {
            confinement::build_local(&confinement, requirements, builder.clone(), &files, self.process_env)
                .await
        };
        let mut local = confined(&self.requirements).await?;
        let mut initialized = self.initialize(local.environment).await;
        if initialized.is_err() && local.is_cached {
            // The machine may have changed since.
            local = confined(&SandboxRequirements { may_reuse_probe: false, ..self.requirements.clone() })
                .await?;
            initialized = self.initialize(local.environment).await;
        }
        let ConfinedLocal {
            server_environment,
            kill_all,
            temporary,
            sandbox,
            workspace,
            replaced,
            repositories,
            search,
            caches,
            loss,
            ..
        } = local;
        let environment = initialized?;
        if are_of_rules && !matches!(sandbox, SandboxState::Level(_)) {
            // The first failure is the one to report.
            let _ = environment.cleanup().await;
            return Err(unsupported_hosts("it is not supported without a sandbox"));
        }
        let writes = self.requirements.writes.clone();
        let kill_all = Some(kill_all);
        Ok(EnvSession {
            environment,
            server_environment,
            kill_all,
            temporary,
            abandoned,
            sandbox,
            workspace,
            hosts,
            replaced,
            repositories,
            search,
            projects,
            caches,
            loss,
            writes,
            record,
            watch: OnceLock::new(),
            notices: self.process_env.notices().clone(),
        })
    }

    /// Connects to the environment that `build` creates for an absolute directory, or for the login directory if `None`.
    async fn connect_remote(
        &self,
        build: impl Fn(Option<&Path>) -> Result<Arc<dyn ExecutionEnvironment>, EnvError>,
    ) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
        let connect = async |directory: Option<&Path>| {
            let environment = build(directory).map_err(|error| self.failure(&error))?;
            self.initialize(environment).await
        };
        let directory = self.choice.directory.as_deref();
        let Some(relative) = directory.filter(|directory| directory.is_relative()) else {
            return connect(directory).await;
        };
        // The login directory is only known after a login.
        let login = connect(None).await?;
        let absolute = login.resolve(relative);
        login.cleanup().await.map_err(|error| self.failure(&error))?;
        connect(Some(&absolute)).await
    }

    async fn initialize(
        &self,
        environment: Arc<dyn ExecutionEnvironment>,
    ) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
        match environment.initialize().await {
            Ok(()) => Ok(environment),
            Err(error) => {
                // Report the first error, not one that follows from it.
                let _ = environment.cleanup().await;
                Err(self.failure(&error))
            }
        }
    }

    fn failure(&self, error: &EnvError) -> Failure {
        let EnvironmentChoice { spec, directory } = &self.choice;
        match (directory.as_deref(), error) {
            (Some(directory), EnvError::NotFound { .. }) => {
                invalid_directory(directory, "does not exist", spec)
            }
            (Some(directory), EnvError::NotADirectory { .. }) => {
                invalid_directory(directory, "is not a directory", spec)
            }
            (Some(directory), EnvError::PermissionDenied { .. }) => {
                invalid_directory(directory, "is not accessible", spec)
            }
            (_, EnvError::Unreachable { source: Some(source), .. }) => {
                let failure = Failure::failed(format!("cannot reach {spec}")).caused_by(source.as_ref());
                match source.downcast_ref::<SshError>().and_then(|error| ssh_hint(error.kind)) {
                    Some(hint) => failure.with_hint(hint),
                    None => failure,
                }
            }
            (_, EnvError::Unsupported { .. }) => {
                Failure::usage("the sandbox cannot be enforced").caused_by(error).with_hint(SANDBOX_HINT)
            }
            (_, error) => Failure::failed(format!("cannot use {spec}")).caused_by(error),
        }
    }
}

impl EnvSession {
    /// Returns the environment, for a session that closes it or for direct use.
    pub fn environment(&self) -> Arc<dyn ExecutionEnvironment> {
        Arc::clone(&self.environment)
    }

    /// Returns the environment for MCP servers. The user's own file may place a server outside of the sandbox.
    pub fn server_environment(&self) -> Arc<dyn ExecutionEnvironment> {
        self.repositories.guard_programs(Arc::clone(&self.server_environment))
    }

    /// Routes the calls of tools through another environment, which `wrap` returns for this one, such as an editor with
    /// unsaved text. Refusing and confining wrappers stay outermost.
    pub(crate) fn wrap_tool_environment(
        self,
        wrap: impl FnOnce(Arc<dyn ExecutionEnvironment>) -> Arc<dyn ExecutionEnvironment>,
        confinement: Confinement,
    ) -> Self {
        let held: Arc<dyn ExecutionEnvironment> = Arc::new(
            ReadOnlyEnvironment::new(wrap(self.environment)).allow_commands().with_write_switch(&self.writes),
        );
        let temporary = self.temporary.iter().map(|directory| directory.path().to_path_buf());
        let environment = confinement::confine(&confinement, held, temporary);
        Self { environment, ..self }
    }

    /// Returns a function that kills all local commands at once, waits for them, and removes their temporary files, for a
    /// process that is about to exit. `None` in containers and on remote hosts: a supervisor there terminates the commands
    /// when this process exits.
    pub fn kill_hook(&self) -> Option<impl Fn() + Send + Sync + use<>> {
        let kill_all = Arc::clone(self.kill_all.as_ref()?);
        let temporary = self.temporary().map(Path::to_path_buf);
        Some(move || {
            kill_all();
            // Files that cannot be removed remain in the system's temporary directory.
            let _ = temporary.as_ref().map(std::fs::remove_dir_all);
        })
    }

    /// Returns the projects that contain the working directory, the nearest first. Their files are read once, without the limits
    /// on file tools. Dropping the future stops reading.
    ///
    /// # Errors
    ///
    /// As [`Project::read_all`].
    pub async fn projects(&self) -> Result<&[Project], Failure> {
        self.projects.projects().await
    }

    /// Returns the hosts that commands, web tools and servers may reach; `None` without such a limit.
    pub fn hosts(&self) -> Option<&HostScope> {
        self.hosts.as_ref()
    }

    /// Returns hidden and protected files, for gates, the watch and checkpoints.
    pub fn workspace(&self) -> &WorkspacePolicy {
        &self.workspace
    }

    /// Returns the watch that checks protected files after each command, and at the end of runs and of the session. In
    /// remote environments it does not search the workspace, since a walk takes too long.
    fn watch(&self) -> ProtectedPathWatch {
        let watch = self.workspace.watch(&self.environment);
        let watch = match self.replaced.clone() {
            Some(replaced) => watch.with_replaced_paths(move || replaced()),
            None => watch,
        };
        let watch = match self.search.clone() {
            Some(search) => watch.with_found_paths(move || search.found()),
            None => watch,
        };
        let record = self.record.clone();
        let watch = watch.with_record(self.record.earlier().clone());
        let watch = watch.with_observer(move |files| record.write(files));
        self.watch.get_or_init(|| watch).clone()
    }

    /// Returns the gate that checks protected files after each command, and restores the history of a repository that a
    /// command removes.
    pub fn guarded_watch(&self) -> GuardedWatch {
        self.repositories.with_watch(self.watch(), self.search.clone())
    }

    /// Compares protected files with the record of a session that ended before its final check.
    ///
    /// Changes are a failure that contains them. The next session accepts the current files.
    pub async fn compare_with_earlier(&self) -> Result<(), Failure> {
        if self.record.earlier().is_final() {
            return Ok(());
        }
        if let Some(search) = &self.search {
            // The record of the search must not replace the record of the watch.
            search.run().await.or_failed("protected files cannot be compared")?;
        }
        match self.watch().check_recorded().await.or_failed("protected files cannot be compared")? {
            None => Ok(()),
            Some(change) => {
                let message = format!("an earlier session ended before its final check: {change}");
                Err(Failure::usage(message).with_hint("start again to continue with the current files"))
            }
        }
    }

    /// Fills the package caches of commands in the background once `is_needed` returns true. The first command waits for them,
    /// and fills them if they are not being filled yet.
    pub(crate) fn fill_caches_once(&self, is_needed: impl Future<Output = bool> + Send + 'static) {
        self.caches.fill_once(is_needed);
    }

    /// Calls `react` with the reason once the machine has lost the sandbox of commands.
    pub(crate) fn watch_sandbox(
        &self,
        react: impl FnOnce(String) -> BoxFuture<'static, ()> + Send + 'static,
    ) {
        self.loss.watch(react);
    }

    /// Returns the failure of a run without a user, if the machine has lost the sandbox of commands: no command has started since.
    pub fn sandbox_failure(&self) -> Option<Failure> {
        let reason = self.loss.reason()?;
        let failure = Failure::usage(format!("the sandbox cannot be set up any more: {reason}"));
        Some(failure.with_hint("the next run probes this machine again").with_hint(SANDBOX_HINT))
    }

    /// Returns the switch that allows changes of the workspace, or refuses them.
    pub fn writes(&self) -> &WriteSwitch {
        &self.writes
    }

    /// Returns the sandbox state of commands.
    pub fn sandbox(&self) -> &SandboxState {
        &self.sandbox
    }

    /// Returns the directory for temporary files of sandboxed commands.
    fn temporary(&self) -> Option<&Path> {
        self.temporary.as_ref().map(TemporaryDirectory::path)
    }

    /// Terminates commands that still run and waits for them, checks the protected files once more, and removes the
    /// directory for temporary files. Idempotent.
    ///
    /// Fails if a command may still be running, or if a background command changed a protected file.
    pub async fn close(&self) -> Result<(), Failure> {
        self.caches.stop().await;
        self.loss.stop().await;
        let closed = self.environment.cleanup().await.or_failed("a command may still be running");
        self.abandoned.finish().await;
        let look = match self.watch.get() {
            Some(watch) => watch.check_final().await,
            None => Ok(FinalCheck::Skipped),
        };
        let restored = self.repositories.close().await;
        let has_looked = matches!(look, Ok(FinalCheck::Unchanged | FinalCheck::Changed(_)));
        // In a container or on a remote host, this check has reconnected.
        let closed = match has_looked {
            true => closed.and(self.environment.cleanup().await.or_failed("a command may still be running")),
            false => closed,
        };
        if closed.is_ok() && has_looked {
            self.record.record_final();
        }
        let change = match look {
            Ok(FinalCheck::Changed(change)) => {
                let lines = restored.iter().flat_map(|restored| restored.lines());
                lines.for_each(|line| self.notices.report(line));
                Some(change)
            }
            Ok(FinalCheck::Skipped | FinalCheck::Unchanged) => restored,
            // The run has reported that the environment is lost.
            Err(lost) if lost.is_environment_failure() => restored,
            Err(error) => {
                self.notices.report(format!("cannot compare protected files: {error}"));
                restored
            }
        };
        if closed.is_ok()
            && let Some(temporary) = self.temporary()
            && let Err(error) = temporary::remove(temporary)
        {
            let path = temporary.display();
            self.notices.report(format!("the temporary directory {path} cannot be removed: {error}"));
        }
        match (closed, change) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(change)) => Err(Failure::multi_line(FailureKind::Other, &change)),
            (Err(failure), None) => Err(failure),
            (Err(failure), Some(change)) => {
                self.notices.report(change.lines().next().unwrap_or_default());
                Err(failure)
            }
        }
    }

    /// Closes the environment and reports a failure as a notice.
    pub async fn close_with_notice(&self) {
        if let Err(failure) = self.close().await {
            self.notices.report(failure.message().lines().next().unwrap_or_default());
        }
    }
}

impl fmt::Debug for EnvSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvSession").field("environment", &self.environment).finish_non_exhaustive()
    }
}

fn container(
    name: &str,
    directory: Option<&Path>,
    limits: &OutputLimits,
) -> Result<Arc<dyn ExecutionEnvironment>, EnvError> {
    let builder = DockerEnvironment::attach(name).with_output_limits(limits.clone());
    let builder = match directory {
        Some(directory) => builder.with_working_directory(directory),
        None => builder,
    };
    Ok(Arc::new(builder.build()?))
}

fn remote_host(
    host: &SshHost,
    directory: Option<&Path>,
    limits: &OutputLimits,
) -> Result<Arc<dyn ExecutionEnvironment>, EnvError> {
    let builder = SshEnvironment::builder(host.destination()).with_output_limits(limits.clone());
    let builder = match host.port() {
        Some(port) => builder.with_port(port),
        None => builder,
    };
    let builder = match directory {
        Some(directory) => builder.with_working_directory(directory),
        None => builder,
    };
    Ok(Arc::new(builder.build()?))
}

fn invalid_directory(directory: &Path, problem: &str, spec: &EnvSpec) -> Failure {
    let directory = directory.display();
    let problem = format!("directory {directory}: {problem} on {spec}; expected an existing directory");
    Failure::usage(problem).with_setting("environment.dir")
}

/// Returns a hint for problems that the user has to solve by hand, since `ssh` runs without prompts.
#[expect(clippy::wildcard_enum_match_arm, reason = "the kinds grow, and few have a hint")]
fn ssh_hint(kind: SshErrorKind) -> Option<&'static str> {
    match kind {
        SshErrorKind::HostKeyUnknown => Some("connect once with `ssh` to verify and accept the host key"),
        SshErrorKind::AuthenticationFailed => Some(
            "only keys are supported, from files without a passphrase or from an agent; test with `ssh -o BatchMode=yes`",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
