//! The sessions of a user for an editor, opened like the command opens them. They are in the store, so that a conversation can
//! move to a terminal and back.

mod commands;
mod controls;

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironment;
use pintle_governance::Mode;
use pintle_host::attendant::ClientAttendant;
use pintle_host::env_spec::EnvSpec;
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::keys::{self, RemovedKey};
use pintle_host::model::Model;
use pintle_host::route::ModelChoice;
use pintle_host::sessions::delete::delete_stored_session;
use pintle_host::sessions::empty::delete_if_empty;
use pintle_host::sessions::{OpenSessionFiles, SelectedSession, SessionLocation, Sessions};
use pintle_host::user_commands::discover;
use pintle_host::{
    GivenSettings, Host, OpenRequest, PartialSpec, RequestClient, RequestSpec, SettingSources, Surface,
};
use pintle_mcp::{HttpServer, ServerName, ServerSpec, ServerTransport, StdioServer};
use pintle_store::{Filter, Page, Summary};

use self::controls::{EditorSessionContext, EditorSessionControls};
use crate::client::Client;
use crate::editor::{EditorEnvironment, TerminalSwitch};
use crate::error::HostError;
use crate::host::{
    AgentHost, AgentInfo, McpServerSpec, McpTransport, NewSession, OpenSession, SessionPage, SessionQuery,
    SessionSummary,
};
use crate::settings::NamedChoice;

/// The authentication method.
const KEY: &str = "api-key";

/// Ways for a user to provide a key.
const KEY_DESCRIPTION: &str = "Store the key of a provider with `pintle login` in a terminal, or set ANTHROPIC_API_KEY, \
                               OPENAI_API_KEY or GEMINI_API_KEY in the environment of the editor's agent";

/// Failure of that method.
const NO_KEY: &str = "no key was found: store one with `pintle login`, or set ANTHROPIC_API_KEY, OPENAI_API_KEY or \
                      GEMINI_API_KEY";

/// Mode of sessions by default.
const MODE: Mode = Mode::Edit;

/// Sessions of a page.
const PAGE: usize = 50;

/// Sessions of the user of a [`Host`], for an editor.
///
/// It opens them like `pintle acp` does: on this machine, in the directory that the editor names, with the configuration,
/// rules, keys, sandbox, instructions, hooks and MCP servers of the user. They are stored, so that the editor can list and load
/// them, and `pintle` can resume them. The mode is `edit` unless the settings contain another one.
///
/// ```no_run
/// use pintle_acp::{AcpAgent, EditorHost};
/// use pintle_governance::Mode;
/// use pintle_host::process_env::ProcessEnv;
/// use pintle_host::{Host, PartialSpec};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut settings = PartialSpec::default();
///     settings.policy.mode = Some(Mode::Ask);
///     let host = EditorHost::new(Host::new(ProcessEnv::capture())).with_settings(settings);
///     // The editor starts this program and closes its input to end it.
///     AcpAgent::new(host).serve(tokio::io::stdin(), tokio::io::stdout()).await?;
///     Ok(())
/// }
/// ```
///
/// Warnings are notices of the host. Its failures become errors of the protocol. If the future of a request is dropped, the
/// environment of a session that is being opened removes its temporary files, and a new session may stay in the store without
/// a message.
#[derive(Clone, Debug)]
pub struct EditorHost {
    host: Host,
    given: GivenSettings,
}

impl EditorHost {
    /// Creates a host for sessions with the configuration of the user.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Self { host, given: GivenSettings::default() }
    }

    /// Sets the settings of the program. They precede the configuration and the settings that a session remembers. The editor
    /// decides on the directory.
    #[must_use]
    pub fn with_settings(mut self, given: impl Into<GivenSettings>) -> Self {
        self.given = given.into();
        self
    }

    /// Opens a new or stored session in a directory.
    async fn open(
        &self,
        selected: Option<SelectedSession>,
        request: &NewSession,
        client: &Client,
    ) -> Result<OpenSession, Failure> {
        let is_new = selected.is_none();
        let title = selected.as_ref().map(SelectedSession::title).filter(|title| !title.is_empty());
        let resolved = self.host.resolve(self.sources(selected.as_ref(), request)?).await?;
        let is_effort_given = is_new && resolved.spec.model.reasoning_effort.is_some();
        let directory = resolved.spec.environment.dir.as_deref();
        let process_env = self.host.process_env().clone().with_workspace(directory);
        let terminals = TerminalSwitch::new(false);
        let mut surface =
            Surface::new(Arc::new(ClientAttendant::without_approver(Some(process_env.principal()))));
        surface.can_switch_to_plan = true;
        surface.servers = servers_of(request)?;
        let (of_editor, switch) = (client.clone(), terminals.clone());
        surface.wrap_environment =
            Some(Box::new(move |environment: Arc<dyn ExecutionEnvironment>, id: &SessionId| {
                Arc::new(EditorEnvironment::new(environment, of_editor, id.as_str(), switch))
                    as Arc<dyn ExecutionEnvironment>
            }));
        let request_to_open = OpenRequest {
            selected,
            is_mode_given: is_new,
            is_effort_given,
            must_be_stored: false,
            ..OpenRequest::from(resolved)
        };
        let opened = self.host.open(request_to_open, surface).await?;
        let id = opened.session.id().clone();
        let environment = opened.environment.environment();
        let files = match opened.is_stored {
            true => OpenSessionFiles::open(id.clone(), &opened.environment, &process_env).await.map(Some),
            false => Ok(None),
        };
        let files = match files {
            Ok(files) => files,
            Err(failure) => {
                // The first failure is the one to report.
                let _ = opened.detach().await;
                delete_if_empty(&id, &process_env).await;
                return Err(failure);
            }
        };
        let pintle_host::OpenSession { session, policy, servers, model, offered, effort, .. } = opened;
        let context = EditorSessionContext {
            id,
            handle: session.handle(),
            policy,
            servers,
            model,
            env_session: opened.environment,
            terminals,
            directory: request.directory.clone(),
            offered,
            files,
            user_commands: discover(environment.as_ref(), &process_env).await,
            notices: process_env.notices().clone(),
        };
        let controls = EditorSessionControls::new(context, effort, title);
        Ok(OpenSession::new(session.into_session(), Arc::new(controls), &request.directory))
    }

    /// Returns the sources of the settings of a session.
    fn sources(
        &self,
        selected: Option<&SelectedSession>,
        request: &NewSession,
    ) -> Result<SettingSources, Failure> {
        let mut requested = PartialSpec::default();
        requested.environment.dir = Some(request.directory.clone());
        let mut sources = SettingSources::from_selected(self.given.clone(), selected)?;
        // The user can be asked.
        sources.defaults.policy.mode = Some(MODE);
        let request = RequestSpec { client: RequestClient::Editor, can_approve: true, spec: requested };
        sources.request = Some(request);
        Ok(sources)
    }

    /// Returns the model of a new session. Fails without a key.
    async fn model(&self) -> Result<Model, Failure> {
        let mut given = self.given.clone();
        // The model does not depend on the grant.
        given.grant = None;
        let resolved = self.host.resolve(given.into()).await?;
        Model::choose(&ModelChoice::try_from(&resolved.spec)?, self.host.process_env()).await
    }

    /// Opens the store and finds a session that no process has open.
    async fn find(&self, id: &str) -> Result<(Sessions, Summary), HostError> {
        let sessions = self.host.sessions().await.map_err(|failure| host_error(&failure))?;
        let session_id = SessionId::new(id);
        let summary = sessions.store().summary(&session_id).await;
        let summary = summary.map_err(|error| HostError::failed("cannot read the session", error))?;
        let Some(summary) = summary else { return Err(HostError::NoSuchSession(id.to_owned())) };
        if let Ok(Some(holder)) = sessions.store().holder(&session_id).await {
            let holder = format!("pintle with process id {} on {}", holder.pid, holder.host);
            return Err(HostError::Held { id: id.to_owned(), holder });
        }
        Ok((sessions, summary))
    }

    async fn load(&self, id: &str, request: &NewSession, client: &Client) -> Result<OpenSession, HostError> {
        let (sessions, summary) = self.find(id).await?;
        let selected =
            SelectedSession::load(sessions, summary).await.map_err(|failure| host_error(&failure))?;
        let place = selected.environment().map_err(|failure| host_error(&failure))?;
        let directory = place.directory.clone().unwrap_or_default();
        if place.spec != EnvSpec::Local {
            return Err(HostError::Unsupported(format!(
                "sessions elsewhere than on this machine, such as {id}"
            )));
        }
        if !self.host.process_env().is_same_path(&directory, &request.directory) {
            return Err(HostError::OtherDirectory { id: id.to_owned(), directory });
        }
        self.open(Some(selected), request, client).await.map_err(|failure| host_error(&failure))
    }
}

#[async_trait]
impl AgentHost for EditorHost {
    fn info(&self) -> AgentInfo {
        AgentInfo::new("pintle", env!("CARGO_PKG_VERSION"))
            .with_title("Pintle")
            .with_loading(true)
            .with_lists(true)
            .with_deletion(true)
            .with_logout(true)
            .with_auth_methods([NamedChoice::new(KEY, "API key").with_description(KEY_DESCRIPTION)])
            .with_mcp_http(true)
    }

    async fn authenticate(&self, method: &str) -> Result<(), HostError> {
        if method != KEY {
            return Err(HostError::Invalid(format!(
                "there is no authentication method `{method}`: expected `{KEY}`"
            )));
        }
        let model = self.model().await;
        model.map(drop).map_err(|failure| {
            if failure.kind() == FailureKind::Credentials {
                HostError::failed(NO_KEY, failure.message())
            } else {
                host_error(&failure)
            }
        })
    }

    async fn logout(&self) -> Result<(), HostError> {
        let model = self.model().await;
        let model =
            model.map_err(|failure| HostError::failed("there is no key to remove", failure.message()))?;
        let provider = model.route.provider;
        let removed = keys::remove(provider, self.host.process_env());
        let RemovedKey { was_stored, other } = removed.map_err(|failure| host_error(&failure))?;
        let name = provider.name();
        match other {
            Some(other) => Err(HostError::Invalid(format!("the key of {name} in {other} is still used"))),
            None if was_stored => Ok(()),
            None => Err(HostError::Invalid(format!("no key of {name} is stored"))),
        }
    }

    async fn delete_session(&self, id: &str) -> Result<(), HostError> {
        let (sessions, summary) = self.find(id).await?;
        let deleted = delete_stored_session(&sessions, &summary, self.host.process_env()).await;
        deleted.map_err(|failure| HostError::failed("the session cannot be deleted", failure.message()))
    }

    async fn new_session(&self, request: NewSession, client: &Client) -> Result<OpenSession, HostError> {
        let opened = self.open(None, &request, client).await;
        opened.map_err(|failure| host_error(&failure))
    }

    async fn load_session(
        &self,
        id: &str,
        request: NewSession,
        client: &Client,
    ) -> Result<OpenSession, HostError> {
        self.load(id, &request, client).await
    }

    async fn list_sessions(&self, request: SessionQuery) -> Result<SessionPage, HostError> {
        let sessions = self.host.sessions().await.map_err(|failure| host_error(&failure))?;
        let first: usize = match &request.cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_no_number| {
                HostError::Invalid(format!(
                    "there is no page `{cursor}`: expected a cursor of an earlier page"
                ))
            })?,
        };
        let all = sessions.list(&Filter::default(), &Page::default()).await;
        let all = all.map_err(|failure| host_error(&failure))?;
        let mut rows = Vec::new();
        for summary in all.into_iter().filter(|summary| summary.parent.is_none()) {
            let Ok(place) = SessionLocation::from_summary(&summary).to_choice(&summary.id) else { continue };
            let directory = place.directory.filter(|_| place.spec == EnvSpec::Local).unwrap_or_default();
            let is_wanted = request.directory.as_deref();
            if directory.as_os_str().is_empty()
                || is_wanted.is_some_and(|wanted| !self.host.process_env().is_same_path(&directory, wanted))
            {
                continue;
            }
            let title = Some(summary.title.clone()).filter(|title| !title.is_empty());
            let row = SessionSummary::new(summary.id.as_str(), directory).with_title(title);
            rows.push(row.with_updated_at(Some(summary.updated_at.to_string())));
        }
        let next = (rows.len() > first + PAGE).then(|| (first + PAGE).to_string());
        let page = rows.into_iter().skip(first).take(PAGE).collect();
        Ok(SessionPage::new(page).with_next(next))
    }
}

/// Returns the servers that the editor declares. They always run in the sandbox.
fn servers_of(request: &NewSession) -> Result<Vec<ServerSpec>, Failure> {
    request.mcp_servers.iter().map(server_of).collect()
}

fn server_of(declared: &McpServerSpec) -> Result<ServerSpec, Failure> {
    let wrong = format!("the editor's MCP server `{}` is wrong", declared.name);
    // Editors use display names.
    let name: String =
        declared.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name: ServerName = name.parse().or_usage(&wrong)?;
    let transport = match &declared.transport {
        McpTransport::Stdio { command, arguments, variables } => {
            let server = StdioServer::new(command, arguments);
            let with = |server: StdioServer, (name, value): &(String, String)| server.with_env(name, value);
            ServerTransport::Stdio(variables.iter().fold(server, with))
        }
        McpTransport::Http { url, headers } => {
            let server = HttpServer::new(url).or_usage(&wrong)?;
            let mut with_headers = server;
            for (name, value) in headers {
                with_headers = with_headers.with_header(name, value).or_usage(&wrong)?;
            }
            ServerTransport::Http(with_headers)
        }
    };
    Ok(ServerSpec::new(name, transport))
}

fn host_error(failure: &Failure) -> HostError {
    match failure.kind() {
        FailureKind::Credentials => HostError::AuthenticationRequired,
        FailureKind::Usage => HostError::Invalid(failure.message()),
        FailureKind::LimitReached
        | FailureKind::Denied
        | FailureKind::UnmatchedAnswer
        | FailureKind::Interrupted
        | FailureKind::Other => HostError::failed("the session cannot be opened", failure.message()),
    }
}
