//! Traits that an application implements to be an agent: [`AgentHost`] and [`SessionControls`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Money, Session, SessionEvent, SessionHandle, UserMessage};
use pintle_env::setters;

use crate::client::Client;
use crate::error::HostError;
use crate::settings::{NamedChoice, OptionValue, SessionSettings};

/// Opens the sessions that a client requests. Implemented by embedding applications.
///
/// Every method may be called for several sessions concurrently. Its future is dropped if the client cancels the request or
/// disconnects. The host then closes the resources that it opened until then.
#[async_trait]
pub trait AgentHost: fmt::Debug + Send + Sync {
    /// Returns the description of the agent for the client.
    fn info(&self) -> AgentInfo;

    /// Authenticates the user by a method of [`AgentInfo::auth_methods`].
    ///
    /// # Errors
    ///
    /// A [`HostError`] if authentication failed. No method is supported by default.
    async fn authenticate(&self, method: &str) -> Result<(), HostError> {
        Err(HostError::Invalid(format!("there is no authentication method `{method}`")))
    }

    /// Ends the authentication of the user, if [`AgentInfo::logs_out`]. Open sessions keep their credentials.
    ///
    /// # Errors
    ///
    /// A [`HostError`] if the user is still authenticated. Not supported by default.
    async fn logout(&self) -> Result<(), HostError> {
        Err(HostError::Unsupported("logouts".to_owned()))
    }

    /// Creates a session.
    ///
    /// # Errors
    ///
    /// A [`HostError`], such as [`AuthenticationRequired`](HostError::AuthenticationRequired).
    async fn new_session(&self, request: NewSession, client: &Client) -> Result<OpenSession, HostError>;

    /// Opens an existing session that is not open on this connection. An unfinished run of its record is interrupted,
    /// because the client did not ask to continue it. The host should therefore build the session last.
    ///
    /// # Errors
    ///
    /// [`NoSuchSession`](HostError::NoSuchSession), [`Held`](HostError::Held) if another process or connection has it, and
    /// [`OtherDirectory`](HostError::OtherDirectory) unless the session works in the directory of the request.
    async fn load_session(
        &self,
        id: &str,
        request: NewSession,
        client: &Client,
    ) -> Result<OpenSession, HostError> {
        let _ = (request, client);
        Err(HostError::NoSuchSession(id.to_owned()))
    }

    /// Lists sessions that can be loaded, the newest first.
    ///
    /// # Errors
    ///
    /// A [`HostError`], such as [`Invalid`](HostError::Invalid) for a cursor that does not come from an earlier page.
    async fn list_sessions(&self, request: SessionQuery) -> Result<SessionPage, HostError> {
        let _ = request;
        Err(HostError::Unsupported("lists of sessions".to_owned()))
    }

    /// Deletes a session, if [`AgentInfo::deletes_sessions`]. It is no longer open on this connection.
    ///
    /// # Errors
    ///
    /// [`Held`](HostError::Held) if another process or connection has it. [`NoSuchSession`](HostError::NoSuchSession) is
    /// not reported to the client as an error. Not supported by default.
    async fn delete_session(&self, id: &str) -> Result<(), HostError> {
        let _ = id;
        Err(HostError::Unsupported("deleting sessions".to_owned()))
    }
}

const _: fn(&dyn AgentHost) = |_| {};

/// Controls of one session: settings, slash commands and closing. Implemented by embedding applications.
///
/// By default, a session has no settings and is suspended when it is closed.
#[async_trait]
pub trait SessionControls: fmt::Debug + Send + Sync {
    /// Returns the current settings. Called when the session is opened and whenever the settings may have changed.
    fn settings(&self) -> SessionSettings {
        SessionSettings::default()
    }

    /// Observes an event of the session or of one of its subagents, before the client gets its updates. Events of the
    /// record come first. Does nothing by default.
    fn observe(&self, event: &SessionEvent) {
        let _ = event;
    }

    /// Returns the cost of the session so far, if it is known. Updates about token usage contain it.
    fn cost(&self) -> Option<Money> {
        None
    }

    /// Returns the context window of the model in tokens, if it is known. Without it, the client gets token usage only
    /// after the session reports how full the window is, which happens at every tenth.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Sets the mode.
    ///
    /// # Errors
    ///
    /// [`HostError::Invalid`] if there is no mode with this id.
    async fn set_mode(&self, mode: &str) -> Result<(), HostError> {
        Err(HostError::Invalid(format!("there is no mode `{mode}`")))
    }

    /// Sets an option.
    ///
    /// # Errors
    ///
    /// [`HostError::Invalid`] if there is no such option or value.
    async fn set_option(&self, id: &str, value: OptionValue) -> Result<(), HostError> {
        let _ = value;
        Err(HostError::Invalid(format!("there is no option `{id}`")))
    }

    /// Runs a slash command of the settings. `input` is the text after its name. The future is dropped if the turn is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// A [`HostError`] if the command failed.
    async fn run_command(
        &self,
        name: &str,
        input: &str,
        session: &SessionHandle,
    ) -> Result<CommandResult, HostError> {
        let _ = (input, session);
        Err(HostError::Invalid(format!("there is no command `{name}`")))
    }

    /// Allows similar calls for the rest of the session, by the rules that the request suggests. The client offers it only
    /// if the request suggests rules.
    ///
    /// # Errors
    ///
    /// A [`HostError`] if the rules cannot be added. The call itself still runs once.
    async fn allow_always(&self, request: &ApprovalRequest) -> Result<(), HostError> {
        let _ = request;
        Err(HostError::Unsupported("rules".to_owned()))
    }

    /// Returns whether [`allow_always`](Self::allow_always) can be offered. Default false.
    fn can_allow_always(&self) -> bool {
        false
    }

    /// Closes the session, whose last turn has ended. By default, detaches it, so that it can be loaded again.
    async fn close(&self, session: Session) {
        // Fails only if the session has ended.
        let _ = session.handle().stop_turn();
        session.detach().await;
    }
}

const _: fn(&dyn SessionControls) = |_| {};

/// Description of the agent for its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Name for programs.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Version.
    pub version: String,
    /// Authentication methods. Default none.
    pub auth_methods: Vec<NamedChoice>,
    /// Whether sessions can be loaded. Default false.
    pub loads_sessions: bool,
    /// Whether sessions can be listed. Default false.
    pub lists_sessions: bool,
    /// Whether sessions can be deleted. Default false.
    pub deletes_sessions: bool,
    /// Whether the user can log out. Default false.
    pub logs_out: bool,
    /// Whether prompts may contain images. Default true.
    pub images: bool,
    /// Whether MCP servers over HTTP are accepted. Default false.
    pub mcp_http: bool,
}

impl AgentInfo {
    /// Creates a description with the defaults.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            version: version.into(),
            auth_methods: Vec::new(),
            loads_sessions: false,
            lists_sessions: false,
            deletes_sessions: false,
            logs_out: false,
            images: true,
            mcp_http: false,
        }
    }

    setters! {
        /// Sets the display name.
        pub fn with_title(title: impl Into<String>) => title = Some(title.into());
        /// Sets the authentication methods.
        pub fn with_auth_methods(methods: impl IntoIterator<Item = NamedChoice>) => auth_methods = methods.into_iter().collect();
        /// Sets whether sessions can be loaded.
        pub fn with_loading(loads: bool) => loads_sessions = loads;
        /// Sets whether sessions can be listed.
        pub fn with_lists(lists: bool) => lists_sessions = lists;
        /// Sets whether sessions can be deleted.
        pub fn with_deletion(deletes: bool) => deletes_sessions = deletes;
        /// Sets whether the user can log out.
        pub fn with_logout(logs_out: bool) => logs_out = logs_out;
        /// Sets whether prompts may contain images.
        pub fn with_images(images: bool) => images = images;
        /// Sets whether MCP servers over HTTP are accepted.
        pub fn with_mcp_http(accepts: bool) => mcp_http = accepts;
    }
}

/// Working directory and MCP servers of a requested session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewSession {
    /// Absolute working directory, as the client specifies it.
    pub directory: PathBuf,
    /// MCP servers that the client requests for the session.
    pub mcp_servers: Vec<McpServerSpec>,
}

/// MCP server that a client declares. The user's own configuration does not declare it, so it needs the same trust as a
/// server that a project declares.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServerSpec {
    /// Name.
    pub name: String,
    /// Transport.
    pub transport: McpTransport,
}

impl fmt::Debug for McpServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Variables and headers contain keys.
        f.debug_struct("McpServerSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Transport of an MCP server.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpTransport {
    /// A process, over its standard input and output.
    Stdio {
        /// Program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Names and values of environment variables.
        variables: Vec<(String, String)>,
    },
    /// A URL, over streamable HTTP.
    Http {
        /// The URL.
        url: String,
        /// Names and values of headers.
        headers: Vec<(String, String)>,
    },
}

impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio",
            Self::Http { .. } => "Http",
        })
    }
}

/// Session that a host has opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenSession {
    /// The session. Its id is the one that the client uses.
    pub session: Session,
    /// Controls of the session.
    pub controls: Arc<dyn SessionControls>,
    /// Absolute working directory.
    pub directory: PathBuf,
}

impl OpenSession {
    /// Creates an open session. If the client requested another directory, it gets an error and the session is closed.
    #[must_use]
    pub fn new(session: Session, controls: Arc<dyn SessionControls>, directory: impl Into<PathBuf>) -> Self {
        Self { session, controls, directory: directory.into() }
    }
}

/// Query for a page of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionQuery {
    /// Only sessions that work in this directory.
    pub directory: Option<PathBuf>,
    /// [`SessionPage::next`] of the previous page; `None` for the first page.
    pub cursor: Option<String>,
}

/// Page of a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionPage {
    /// Sessions, the newest first.
    pub sessions: Vec<SessionSummary>,
    /// Cursor of the next page; `None` if this is the last one.
    pub next: Option<String>,
}

impl SessionPage {
    /// Creates the last page.
    #[must_use]
    pub fn new(sessions: Vec<SessionSummary>) -> Self {
        Self { sessions, next: None }
    }

    setters! {
        /// Sets the cursor of the next page.
        pub fn with_next(next: Option<String>) => next = next;
    }
}

/// Session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Id.
    pub id: String,
    /// Absolute working directory.
    pub directory: PathBuf,
    /// Display title.
    pub title: Option<String>,
    /// Time of the last change, in RFC 3339.
    pub updated_at: Option<String>,
}

impl SessionSummary {
    /// Creates a summary without title and time.
    #[must_use]
    pub fn new(id: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self { id: id.into(), directory: directory.into(), title: None, updated_at: None }
    }

    setters! {
        /// Sets the title.
        pub fn with_title(title: Option<String>) => title = title;
        /// Sets the time of the last change, in RFC 3339.
        pub fn with_updated_at(at: Option<String>) => updated_at = at;
    }
}

/// Result of a slash command.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CommandResult {
    /// The model gets this message. The turn ends with its response.
    Prompt(UserMessage),
    /// The turn ends with this text for the user. The model does not get it.
    Text(String),
}
