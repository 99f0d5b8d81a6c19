//! Opens sessions from their settings.

mod hooks;
mod manifest_tools;
mod opener;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_agent::{Hooks, Limits, SessionId, TurnLimits};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{GovernedSession, Policy};
use pintle_llm::ToolList;
use pintle_tools::RegisteredTool;

use self::opener::{SessionOpener, StartedSession};
use crate::attendant::Attendant;
use crate::boxed_future::box_future;
use crate::budget;
use crate::configuration::ResolvedSession;
use crate::env_spec::EnvironmentChoice;
use crate::environment::{Confinement, EnvSession, EnvTarget};
use crate::failure::Failure;
use crate::grant_workspace;
use crate::host::Host;
use crate::limit_sources::LimitSources;
use crate::model::Model;
use crate::process_env::ProcessEnv;
use crate::servers::{ServerSpec, SessionServers};
use crate::sessions::worktree::Worktree;
use crate::sessions::{
    RememberedSettings, SelectedSession, SessionDescription, SessionLocation, SessionOrigin, SessionStorage,
    Sessions, delete,
};
use crate::spec::SessionSpec;

/// Function that routes the calls of tools through another environment, such as an editor with unsaved text.
pub type EnvironmentWrapper<'a> =
    Box<dyn FnOnce(Arc<dyn ExecutionEnvironment>, &SessionId) -> Arc<dyn ExecutionEnvironment> + Send + 'a>;

/// Function that is called with the environment once it is connected. If it fails, the session is not opened.
pub type EnvironmentCheck<'a> = Box<dyn FnOnce(&EnvSession) -> Result<(), Failure> + Send + 'a>;

/// Session to open: its settings, and the stored session that it continues.
#[derive(Debug)]
pub struct OpenRequest {
    /// The settings.
    pub spec: SessionSpec,
    /// Settings that a new session remembers besides the selected model.
    pub remembered: RememberedSettings,
    /// Stored session to resume or to fork; `None` for a new session.
    pub selected: Option<SelectedSession>,
    /// Worktree that was created for the session. It is removed if the session cannot be stored.
    pub worktree: Option<Worktree>,
    /// The model; `None` for the model of the settings.
    pub model: Option<Arc<Model>>,
    /// Whether the mode is set now. A session remembers its last mode.
    pub is_mode_given: bool,
    /// Whether the reasoning effort is set now. A session remembers its last effort.
    pub is_effort_given: bool,
    /// Whether a new session fails to open if it cannot be stored. Otherwise it is opened without a store.
    pub must_be_stored: bool,
    /// Limits on each run until the session is closed. They only lower the limits of the settings and of the user's file.
    pub run_limit: Limits,
}

impl From<SessionSpec> for OpenRequest {
    /// Returns the request for a new session.
    fn from(spec: SessionSpec) -> Self {
        Self {
            is_effort_given: spec.model.reasoning_effort.is_some(),
            spec,
            remembered: RememberedSettings::default(),
            selected: None,
            worktree: None,
            model: None,
            is_mode_given: true,
            must_be_stored: true,
            run_limit: Limits::default(),
        }
    }
}

impl From<ResolvedSession> for OpenRequest {
    /// Returns the request for a new session.
    fn from(resolved: ResolvedSession) -> Self {
        let ResolvedSession { spec, remembered, .. } = resolved;
        Self { remembered, ..Self::from(spec) }
    }
}

/// The part of a session that belongs to the program that opens it.
pub struct Surface<'a> {
    /// The user or the program that decides on calls and answers questions.
    pub attendant: Arc<dyn Attendant>,
    /// Hooks that run after the hooks of the user.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// More tools.
    pub tools: Vec<Arc<RegisteredTool>>,
    /// MCP servers that the client of the session declares.
    pub servers: Vec<ServerSpec>,
    /// Whether the session can switch to mode plan at any time, so that it has the plan tool from the start.
    pub can_switch_to_plan: bool,
    /// Whether the workspace is a clone that is removed later.
    pub is_disposable: bool,
    /// Directories outside of the workspace that sandboxed commands and file tools can read and not change, wherever they are.
    pub readable: Vec<PathBuf>,
    /// Whether the environment is a container for this session and its workspace alone. It then counts as a sandbox.
    pub is_contained: bool,
    /// Wrapper of the environment, which is initialised already: the session does not call `initialize` of the wrapper. Refusing
    /// and confining wrappers stay outermost.
    pub wrap_environment: Option<EnvironmentWrapper<'a>>,
    /// Called once the environment is connected.
    pub check_environment: Option<EnvironmentCheck<'a>>,
    /// Future whose completion interrupts the connection to the environment.
    pub interrupted: Option<BoxFuture<'a, ()>>,
}

impl Surface<'_> {
    /// Creates a surface without additions.
    #[must_use]
    pub fn new(attendant: Arc<dyn Attendant>) -> Self {
        Self {
            attendant,
            hooks: Vec::new(),
            tools: Vec::new(),
            servers: Vec::new(),
            can_switch_to_plan: false,
            is_disposable: false,
            readable: Vec::new(),
            is_contained: false,
            wrap_environment: None,
            check_environment: None,
            interrupted: None,
        }
    }
}

impl fmt::Debug for Surface<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surface").field("attendant", &self.attendant).finish_non_exhaustive()
    }
}

/// Open session with its resources.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenSession {
    /// The session.
    pub session: GovernedSession,
    /// Rules and mode, which can change while the session runs.
    pub policy: Policy,
    /// Environment of the tools.
    pub environment: EnvSession,
    /// MCP servers.
    pub servers: SessionServers,
    /// The model. A script is served as long as this exists.
    pub model: Arc<Model>,
    /// The settings.
    pub spec: SessionSpec,
    /// Tools that the model is offered.
    pub offered: ToolList,
    /// Reasoning effort, if it is set.
    pub effort: Option<String>,
    /// Limits on turns.
    pub limits: TurnLimits,
    /// Sources of the limits of the budget.
    pub limit_sources: LimitSources,
    /// Whether the session is stored, so that it can be resumed after this process exits.
    pub is_stored: bool,
    /// Whether the session has no earlier history.
    pub is_new: bool,
    /// Whether the session started in an earlier process.
    pub is_resumed: bool,
}

impl OpenSession {
    /// Closes the session, its servers and its environment.
    ///
    /// # Errors
    ///
    /// A command may still be running, or a command changed a protected file.
    pub async fn close(self) -> Result<(), Failure> {
        self.session.close().await;
        self.servers.close().await;
        self.environment.close().await
    }

    /// Detaches the session to resume it later, and closes its servers and its environment.
    ///
    /// # Errors
    ///
    /// As [`close`](Self::close).
    pub async fn detach(self) -> Result<(), Failure> {
        self.session.detach().await;
        self.servers.close().await;
        self.environment.close().await
    }
}

impl Host {
    /// Opens a session: selects the model, stores the session, connects its environment, and starts it with the rules, hooks,
    /// budget, instructions and MCP servers of the user and of trusted projects.
    ///
    /// A failure closes everything that was opened. A session or a fork that was created is deleted, unless it has a worktree.
    ///
    /// Dropping the future leaves a created session in the store, without a message. The environment removes its temporary
    /// files.
    ///
    /// # Errors
    ///
    /// Settings that are invalid here, a model without a key, an environment or a sandbox that cannot be set up, and sessions
    /// that cannot be stored or resumed.
    pub fn open<'a>(
        &'a self,
        request: impl Into<OpenRequest>,
        surface: Surface<'a>,
    ) -> BoxFuture<'a, Result<OpenSession, Failure>> {
        // Boxed, so that rustc does not prove again for each caller that all of it is `Send`.
        box_future(|| self.open_session(request.into(), surface))
    }

    async fn open_session(&self, request: OpenRequest, surface: Surface<'_>) -> Result<OpenSession, Failure> {
        let OpenRequest { mut spec, remembered, selected, worktree, model, must_be_stored, .. } = request;
        grant_workspace::limit_network(&mut spec);
        let process_env = self.process_env_for(&spec);
        let attendant = Arc::clone(&surface.attendant);
        let prepared = box_future(|| async {
            let model = match model {
                Some(model) => model,
                None => self.choose_model(&spec).await?,
            };
            budget::require_price(&(&spec).into(), &model.profile(), &attendant, &process_env)?;
            let choice = EnvironmentChoice::try_from(&spec)?;
            EnvTarget::new(choice.clone(), Confinement::from(&spec), &process_env)?;
            let description = SessionDescription::new(&spec, remembered);
            let storing =
                StoredSessionRequest { description, selected, worktree: worktree.as_ref(), must_be_stored };
            let stored = match spec.persistence.keep {
                true => box_future(|| storing.open(&model, &choice, &process_env)).await?,
                false => None,
            };
            Ok::<_, Failure>((model, choice, stored))
        });
        let (model, choice, stored) = match prepared.await {
            Ok(prepared) => prepared,
            Err(failure) => {
                // Without its session, it could not be found again.
                if let Some(worktree) = &worktree
                    && let Err(left) = worktree.remove(&process_env).await
                {
                    // The first failure is the one to report.
                    process_env.notices().report(left.message());
                }
                return Err(failure);
            }
        };
        let is_created =
            stored.as_ref().is_some_and(|stored| !matches!(stored.origin, SessionOrigin::Resumed(_)));
        let created =
            stored.as_ref().filter(|_| is_created && worktree.is_none()).map(|stored| stored.id.clone());
        let opened = {
            let opener = SessionOpener {
                spec: &spec,
                environment: &choice,
                model: &model,
                attendant,
                is_mode_given: request.is_mode_given,
                is_effort_given: request.is_effort_given,
                run_limit: &request.run_limit,
                can_switch_to_plan: surface.can_switch_to_plan,
                process_env: &process_env,
            };
            box_future(|| opener.open(stored, surface)).await
        };
        match opened {
            Ok((started, environment)) => {
                let StartedSession { session, policy, servers, effort, offered, .. } = started;
                let (limits, limit_sources) = (started.limits, started.limit_sources);
                let (is_stored, is_new, is_resumed) = (started.is_stored, started.is_new, started.is_resumed);
                Ok(OpenSession {
                    session,
                    policy,
                    environment,
                    servers,
                    model,
                    spec,
                    offered,
                    effort,
                    limits,
                    limit_sources,
                    is_stored,
                    is_new,
                    is_resumed,
                })
            }
            Err(failure) => {
                if let Some(id) = created
                    && let Ok(sessions) = Sessions::open(&process_env).await
                {
                    // The first failure is the one to report. No client has seen the session.
                    let _ = delete::delete_unchecked(&sessions, &id).await;
                }
                Err(failure)
            }
        }
    }
}

/// Session to create, resume or fork in the store.
struct StoredSessionRequest<'a> {
    description: SessionDescription,
    selected: Option<SelectedSession>,
    worktree: Option<&'a Worktree>,
    must_be_stored: bool,
}

impl StoredSessionRequest<'_> {
    /// Opens the session in the store; `None` if a new session cannot be stored and need not be.
    async fn open(
        self,
        model: &Model,
        choice: &EnvironmentChoice,
        process_env: &ProcessEnv,
    ) -> Result<Option<SessionStorage>, Failure> {
        let Self { description, selected, worktree, must_be_stored } = self;
        let must_be_stored = must_be_stored || selected.is_some() || worktree.is_some();
        let opened = async {
            let location = SessionLocation::from_choice(choice, process_env)?;
            match selected {
                Some(selected) => selected.open(&description, model, &location, worktree).await,
                None => {
                    let sessions = Sessions::open(process_env).await?;
                    sessions.create(&description, model, &location, worktree).await
                }
            }
        };
        match opened.await {
            Ok(stored) => Ok(Some(stored)),
            Err(failure) if must_be_stored => Err(failure),
            Err(failure) => {
                process_env.notices().report(format!("this run is not kept: {}", failure.message()));
                Ok(None)
            }
        }
    }
}
