//! Performers of tasks whose sessions a host opens for its user.

mod clone_containers;
mod local_directory;
mod session_runner;
#[cfg(test)]
mod tests;
mod workspace_factory;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironmentExt as _;
use pintle_host::failure::Failure;
use pintle_host::process_secrets;
use pintle_host::sessions::Sessions;
use pintle_host::{GivenSettings, Host, ResolvedSession, SessionSpec};

use self::clone_containers::CloneContainers;
pub use self::local_directory::LocalDirectory;
use self::session_runner::HostSessionRunner;
use self::workspace_factory::HostWorkspaceFactory;
use crate::contract::Contract;
use crate::local::{Performer, read_task};
use crate::perform::RepositoryPerformer;
use crate::repository::UserRepository;
use crate::session_runner::SessionRunner;
use crate::supervisor::PerformerFactory;

/// Reasoning efforts that providers are known to have. Another one is sent unchanged.
const KNOWN_EFFORTS: [&str; 7] = ["minimal", "low", "medium", "high", "xhigh", "max", "none"];

/// Performs tasks with the sessions of a user: with the rules, keys, sandbox and models of the [`Host`], as the command does.
///
/// The settings are resolved once. Each session is stored, works in the clone of its candidate, and has no user to ask. A
/// [`LocalTaskHost`](crate::LocalTaskHost) runs one task with a performer of it, and a
/// [`TaskSupervisor`](crate::TaskSupervisor) several.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use pintle_agent::SessionId;
/// use pintle_host::process_env::ProcessEnv;
/// use pintle_host::{GivenSettings, Host};
/// use pintle_workflow::contract::{BaseCommit, Contract, TaskCheck};
/// use pintle_workflow::report::TaskReport;
/// use pintle_workflow::repository::UserRepository;
/// use pintle_workflow::{HostPerformerFactory, LocalTaskHost, Performer};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let host = Host::new(ProcessEnv::capture());
///     let performers = HostPerformerFactory::open(host, GivenSettings::default()).await?;
///     let here = performers.directory();
///     let repository = UserRepository::find(Arc::clone(&here.environment), &here.path).await?;
///     let contract = Contract::new("Sums of negative numbers are right.")
///         .with_check(TaskCheck::new("tests", "make test"))
///         .with_base(BaseCommit::new(repository.root.display().to_string(), repository.head));
///
///     let id = SessionId::generate();
///     let performer = Arc::new(performers.create(&id)?);
///     let mut task = LocalTaskHost::create(performers.sessions().store(), id, contract).await?;
///     task.run(performer.clone()).await?;
///     println!("{}", TaskReport::from_task(task.task()).to_markdown());
///     Performer::clean(performer.as_ref(), task.task().contract()).await?;
///     task.close().await?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct HostPerformerFactory {
    sessions: Sessions,
    workspace_factory: HostWorkspaceFactory,
    directory: LocalDirectory,
    session_runner: Arc<HostSessionRunner>,
}

impl HostPerformerFactory {
    /// Resolves the settings of the sessions, and opens their store. Reports a model that the catalog does not contain. The
    /// grant of a file is read again for each session. With an image as environment, each clone of a task has a container.
    ///
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    ///
    /// Invalid settings, a remote host as environment, an image from which no container can be started, a model without a key,
    /// and a store that cannot be used.
    pub async fn open(host: Host, mut given: GivenSettings) -> Result<Self, Failure> {
        // Each clone and each session would report the same about this machine.
        let process_env = host.process_env().clone();
        let notices = process_env.notices().once();
        let host = Host::new(process_env.with_notices(notices));
        let grant = given.grant.take();
        let ResolvedSession { spec, remembered, .. } = host.resolve(given.into()).await?;
        let directory = LocalDirectory::from_settings(&spec, &host)?;
        // A task whose sessions cannot be opened would end as blocked.
        host.choose_model(&spec).await?;
        let containers = CloneContainers::from_settings(&spec, &host).await?.map(Arc::new);
        let sessions = host.sessions().await?;
        let workspace_factory = HostWorkspaceFactory { host, spec, grant, remembered, containers };
        let session_runner = Arc::new(HostSessionRunner::new(workspace_factory.clone()));
        Ok(Self { sessions, workspace_factory, directory, session_runner })
    }

    /// Returns the store of the tasks and of their sessions.
    #[must_use]
    pub const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the settings of the sessions, without the grant of a file.
    #[must_use]
    pub const fn spec(&self) -> &SessionSpec {
        &self.workspace_factory.spec
    }

    /// Returns the directory of the settings. The repository of a new task is usually there.
    #[must_use]
    pub const fn directory(&self) -> &LocalDirectory {
        &self.directory
    }

    /// Checks that the provider of each model of a contract has a key, and reports models that the catalog does not contain and
    /// unknown efforts.
    ///
    /// # Errors
    ///
    /// A missing key, or settings that do not fit to a model. Dropping the future ends the program that prints a key.
    pub async fn check_models(&self, contract: &Contract) -> Result<(), Failure> {
        self.report_unknown_efforts(contract);
        let plans = contract.session_plans();
        let models: BTreeSet<String> = plans.into_iter().filter_map(|plan| plan.model).collect();
        for name in models {
            let mut spec = self.spec().clone();
            session_runner::set_model(&mut spec, name);
            let host = &self.workspace_factory.host;
            let model = host.choose_model(&spec).await?;
            if model.catalog_entry().is_none() && model.unknown_model().is_none() && !model.is_scripted() {
                let name = &model.route.model;
                host.process_env().notices().report(format!(
                    "model `{name}` is not in the catalog: its name is not checked before its first call, and its price is not known"
                ));
            }
        }
        Ok(())
    }

    /// Reports efforts of a contract that no provider is known to have.
    fn report_unknown_efforts(&self, contract: &Contract) {
        let efforts: BTreeSet<String> =
            contract.session_plans().into_iter().filter_map(|plan| plan.effort).collect();
        for effort in efforts.iter().filter(|effort| !KNOWN_EFFORTS.contains(&effort.as_str())) {
            self.workspace_factory.host.process_env().notices().report(format!(
                "effort `{effort}` is sent as it is: known efforts are {}",
                KNOWN_EFFORTS.join(", ")
            ));
        }
    }

    /// Creates the performer of a task, which need not exist yet.
    ///
    /// # Errors
    ///
    /// No variable names the directory of the user's state.
    pub fn create(&self, id: &SessionId) -> Result<RepositoryPerformer, Failure> {
        let host = &self.workspace_factory.host;
        let builder = RepositoryPerformer::builder(
            id.as_str(),
            task_directory(id, host)?,
            Arc::clone(&self.directory.environment),
            Arc::from(self.sessions.store().blobs(id)),
        );
        let session_runner = Arc::clone(&self.session_runner) as Arc<dyn SessionRunner>;
        let performer = builder.build(Arc::new(self.workspace_factory.clone()), session_runner);
        Ok(performer.with_secrets(process_secrets::redactions(host.process_env(), None)))
    }
}

#[async_trait]
impl PerformerFactory for HostPerformerFactory {
    async fn performer(&self, id: &SessionId) -> Result<Arc<dyn Performer>, String> {
        let task = read_task(self.sessions.store(), id).await.map_err(|error| error.to_string())?;
        let base = task.contract().base.as_ref().ok_or("its contract has no repository")?;
        let repository = Path::new(&base.repository);
        let machine = self.directory.environment.as_ref();
        let is_here = machine.file_exists(repository).await.map_err(|error| error.to_string())?;
        if !is_here {
            return Err(format!("its repository {} is not on this machine", repository.display()));
        }
        let performer = self.create(id).map_err(|failure| failure.message())?;
        Ok(Arc::new(performer))
    }

    async fn has_leftovers(&self, id: &SessionId, contract: &Contract) -> bool {
        let machine = &self.directory.environment;
        let directory = task_directory(id, &self.workspace_factory.host);
        if let Ok(directory) = directory
            && machine.file_exists(&directory).await.unwrap_or(false)
        {
            return true;
        }
        let Some(base) = &contract.base else { return false };
        // A repository that cannot be read has no reference that could be removed.
        let snapshots = UserRepository::list_snapshots(machine, Path::new(&base.repository)).await;
        snapshots.is_ok_and(|names| names.iter().any(|name| name == id.as_str()))
    }
}

/// Returns the directory of the files of a task on this machine.
///
/// # Errors
///
/// No variable names the directory of the user's state.
pub fn task_directory(id: &SessionId, host: &Host) -> Result<PathBuf, Failure> {
    Ok(Sessions::directory(host.process_env())?.join("worktrees").join(format!("task-{id}")))
}
