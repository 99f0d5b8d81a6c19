//! Traits that an application implements to be an agent: [`AgentHost`] and [`SessionControls`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Session, SessionEvent, SessionHandle, UserMessage};
use pintle_env::setters;

use crate::client::Client;
use crate::error::HostError;
use crate::settings::{Choice, OptionValue, SessionSettings};

/// Opens the sessions that a client asks for. Implemented by embedding applications.
///
/// Every method may be called for several sessions concurrently. Its future is dropped if the client cancels the request or
/// goes away; what was opened until then is the host's to close.
#[async_trait]
pub trait AgentHost: fmt::Debug + Send + Sync {
    /// Returns what the client is told about the agent.
    fn info(&self) -> AgentInfo;

    /// Authenticates the user by a method of [`AgentInfo::auth_methods`].
    ///
    /// # Errors
    ///
    /// A [`HostError`] if that failed. By default, no method is supported.
    async fn authenticate(&self, method: &str) -> Result<(), HostError> {
        Err(HostError::Invalid(format!("there is no authentication method `{method}`")))
    }

    /// Ends the authentication of the user, if [`AgentInfo::logs_out`]. Sessions that are open keep what they have.
    ///
    /// # Errors
    ///
    /// A [`HostError`] if the user is authenticated still. By default, it is not supported.
    async fn logout(&self) -> Result<(), HostError> {
        Err(HostError::Unsupported("logouts".to_owned()))
    }

    /// Creates a session.
    ///
    /// # Errors
    ///
    /// A [`HostError`], such as [`AuthenticationRequired`](HostError::AuthenticationRequired).
    async fn new_session(&self, request: NewSession, client: &Client) -> Result<OpenSession, HostError>;

    /// Opens a session that exists and that this connection does not have yet. A run that its record left unfinished is
    /// interrupted, since nobody asked for it to continue. The session should therefore be built last.
    ///
    /// # Errors
    ///
    /// [`NoSuchSession`](HostError::NoSuchSession), [`Held`](HostError::Held) if somebody else has it, and
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
    async fn list_sessions(&self, request: ListSessions) -> Result<SessionPage, HostError> {
        let _ = request;
        Err(HostError::Unsupported("lists of sessions".to_owned()))
    }

    /// Deletes a session, if [`AgentInfo::deletes_sessions`]. One that this connection had open was closed before.
    ///
    /// # Errors
    ///
    /// [`Held`](HostError::Held) if somebody else has it. [`NoSuchSession`](HostError::NoSuchSession) is no error for the
    /// client. By default, it is not supported.
    async fn delete_session(&self, id: &str) -> Result<(), HostError> {
        let _ = id;
        Err(HostError::Unsupported("deleting sessions".to_owned()))
    }
}

const _: fn(&dyn AgentHost) = |_| {};

/// Sets what a client can set of one session, and closes it. Implemented by embedding applications.
///
/// By default a session has no settings, and is suspended when it is closed.
#[async_trait]
pub trait SessionControls: fmt::Debug + Send + Sync {
    /// Returns the present settings. Read when the session is opened and whenever they may have changed.
    fn settings(&self) -> SessionSettings {
        SessionSettings::default()
    }

    /// Takes an event of the session or of one of its subagents, before the client is shown it. Those of a record come
    /// first. By default, nothing is done.
    fn observe(&self, event: &SessionEvent) {
        let _ = event;
    }

    /// Returns the cost of the session so far in US dollars, if it is known. It goes with what the client is told about
    /// tokens.
    fn cost(&self) -> Option<f64> {
        None
    }

    /// Returns the context window of the model in tokens, if it is known. Without it, the client is told about tokens only
    /// once the session says how full the window is, which it does at every tenth.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Sets the mode.
    ///
    /// # Errors
    ///
    /// [`HostError::Invalid`] if there is none with this id.
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

    /// Carries out a slash command of the settings. `input` is the text that follows its name. Dropped if the turn is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// A [`HostError`] if that failed.
    async fn run_command(
        &self,
        name: &str,
        input: &str,
        session: &SessionHandle,
    ) -> Result<CommandResult, HostError> {
        let _ = (input, session);
        Err(HostError::Invalid(format!("there is no command `{name}`")))
    }

    /// Allows calls like this one for the rest of the session, by the rules that the request suggests. The client offers it
    /// only if there are some.
    ///
    /// # Errors
    ///
    /// A [`HostError`] if the rules cannot be added. The call itself then runs all the same, once.
    async fn allow_always(&self, request: &ApprovalRequest) -> Result<(), HostError> {
        let _ = request;
        Err(HostError::Unsupported("rules".to_owned()))
    }

    /// Returns whether [`allow_always`](Self::allow_always) can be offered. Default false.
    fn can_allow_always(&self) -> bool {
        false
    }

    /// Closes the session, whose last turn has ended. By default it is suspended, so that it can be loaded again.
    async fn close(&self, session: Session) {
        session.suspend().await;
    }
}

const _: fn(&dyn SessionControls) = |_| {};

/// Description of the agent for its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Name for programs.
    pub name: String,
    /// Name for people.
    pub title: Option<String>,
    /// Version.
    pub version: String,
    /// Ways to authenticate. Default none.
    pub auth_methods: Vec<Choice>,
    /// Whether sessions can be loaded. Default false.
    pub loads_sessions: bool,
    /// Whether sessions can be listed. Default false.
    pub lists_sessions: bool,
    /// Whether sessions can be deleted. Default false.
    pub deletes_sessions: bool,
    /// Whether the user can log out. Default false.
    pub logs_out: bool,
    /// Whether the model may get images. Default true.
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
        /// Sets the name for people.
        pub fn with_title(title: impl Into<String>) => title = Some(title.into());
        /// Sets the ways to authenticate.
        pub fn with_auth_methods(methods: impl IntoIterator<Item = Choice>) => auth_methods = methods.into_iter().collect();
        /// Sets whether sessions can be loaded.
        pub fn with_loading(loads: bool) => loads_sessions = loads;
        /// Sets whether sessions can be listed.
        pub fn with_lists(lists: bool) => lists_sessions = lists;
        /// Sets whether sessions can be deleted.
        pub fn with_deletion(deletes: bool) => deletes_sessions = deletes;
        /// Sets whether the user can log out.
        pub fn with_logout(logs_out: bool) => logs_out = logs_out;
        /// Sets whether the model may get images.
        pub fn with_images(images: bool) => images = images;
        /// Sets whether MCP servers over HTTP are accepted.
        pub fn with_mcp_http(accepts: bool) => mcp_http = accepts;
    }
}

/// Circumstances in which a session is to work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewSession {
    /// Working directory, absolute, as the client names it.
    pub directory: PathBuf,
    /// MCP servers that the client wants the session to have.
    pub mcp_servers: Vec<McpServerSpec>,
}

/// MCP server that a client declares. It was not declared by the user's own configuration, so it needs the same trust as one
/// that a project declares.
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
        // Variables and headers hold keys.
        f.debug_struct("McpServerSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Transport of an MCP server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A process, over its standard input and output.
    Stdio {
        /// Program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Names and values of variables.
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
    /// Sets what the client can set, and closes the session.
    pub controls: Arc<dyn SessionControls>,
    /// Directory in which it works, absolute.
    pub directory: PathBuf,
}

impl OpenSession {
    /// Creates an open session. A client that asked for another directory is refused, and the session closed again.
    #[must_use]
    pub fn new(session: Session, controls: Arc<dyn SessionControls>, directory: impl Into<PathBuf>) -> Self {
        Self { session, controls, directory: directory.into() }
    }
}

/// Part of the sessions that a client wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListSessions {
    /// Only those that work in this directory.
    pub directory: Option<PathBuf>,
    /// [`SessionPage::next`] of the page before; `None` for the first page.
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
    /// Directory in which it works, absolute.
    pub directory: PathBuf,
    /// Title for people.
    pub title: Option<String>,
    /// Time of the last change, in RFC 3339.
    pub updated_at: Option<String>,
}

impl SessionSummary {
    /// Creates a summary without a title and a time.
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
    /// The model gets this message, and the turn is its response.
    Prompt(UserMessage),
    /// The turn ends with this text for the user. The model does not get it.
    Said(String),
}
