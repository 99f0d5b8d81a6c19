//! The servers of one session.

use std::fmt;
use std::sync::{Arc, Mutex as StdMutex, OnceLock, PoisonError};

use pintle_env::{ExecutionEnvironment, OutputSink};
use pintle_tools::DefinitionError;
use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::auth::TokenStore;
use crate::connection::ServerConnection;
use crate::elicitation::{DismissAll, Elicitor};
use crate::error::{ServerError, ServerErrorKind};
use crate::listing::{OfferedTool, ToolListing};
use crate::spec::{ServerName, ServerSpec, ServerTransport};
use crate::start_check::StartCheck;
use crate::tool_names;

/// Maximum number of failed starts in a row before a server is not tried again.
const MAX_FAILURES: u32 = 3;

/// The servers of one session. Cheap to clone; clones share the servers.
///
/// A server is started at its first use, in the execution environment of the session, and again after it has died.
/// [`close`](Self::close) ends all servers. Dropping the last clone or cleaning the environment up also ends their
/// processes, and so does the death of this process.
///
/// ```
/// use std::sync::Arc;
/// use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
/// use pintle_mcp::{McpServers, parse_declared_servers};
/// use pintle_tools::ToolRegistry;
///
/// let file = r#"{"mcpServers": {
///     "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]}
/// }}"#;
/// let declared = parse_declared_servers(file, |name| std::env::var(name).ok());
/// assert!(declared.problems.is_empty());
///
/// let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/project"));
/// let servers = McpServers::new(env, declared.servers);
/// // For a session: the `tool_registry` of its profile. Definitions above 20,000 bytes in total are deferred.
/// let mut tools = ToolRegistry::new();
/// assert!(servers.register(&mut tools, 20_000).is_empty(), "all tools are accepted");
/// // The server is not started yet, so the model has tools that search and call its tools.
/// assert_eq!(tools.names().collect::<Vec<_>>(), ["search_tools", "call_tool"]);
/// ```
#[derive(Clone)]
pub struct McpServers {
    shared: Arc<ServersShared>,
}

struct ServersShared {
    env: Arc<dyn ExecutionEnvironment>,
    elicitor: Arc<dyn Elicitor>,
    tokens: Option<Arc<dyn TokenStore>>,
    start_check: OnceLock<Arc<dyn StartCheck>>,
    servers: Vec<ServerEntry>,
}

struct ServerEntry {
    spec: Arc<ServerSpec>,
    state: Mutex<ConnectionState>,
    /// The known tools, from this session or an earlier one.
    known: StdMutex<Option<Arc<KnownTools>>>,
}

/// Tools of a server, as it lists them and as a model is offered them.
pub(crate) struct KnownTools {
    listing: ToolListing,
    pub(crate) offered: Vec<OfferedTool>,
    /// Number of changes that the server had reported before.
    changes: u64,
}

impl KnownTools {
    pub(crate) fn has_resources(&self) -> bool {
        self.listing.has_resources()
    }

    /// Returns the malformed tools, which cannot be offered.
    pub(crate) fn malformed(&self, spec: &ServerSpec) -> Vec<DefinitionError> {
        let wanted = self.listing.malformed().filter(|(name, _)| spec.filter.allows(name));
        let prefix = tool_names::server_prefix(spec.name.as_str());
        wanted.map(|(name, reason)| DefinitionError::refused(format!("{prefix}{name}"), reason)).collect()
    }
}

enum ConnectionState {
    Idle { failures: u32 },
    Running(Arc<ServerConnection>),
    Closed,
}

impl McpServers {
    /// Creates the servers of a session without starting them. Questions of servers to a user are dismissed.
    ///
    /// Of two declarations with the same name, the later one counts.
    #[must_use]
    pub fn new(env: Arc<dyn ExecutionEnvironment>, specs: impl IntoIterator<Item = ServerSpec>) -> Self {
        Self::with_elicitor(env, specs, Arc::new(DismissAll))
    }

    /// As [`new`](Self::new), with a handler of the questions of servers.
    #[must_use]
    pub fn with_elicitor(
        env: Arc<dyn ExecutionEnvironment>,
        specs: impl IntoIterator<Item = ServerSpec>,
        elicitor: Arc<dyn Elicitor>,
    ) -> Self {
        Self::build(env, specs, elicitor, None)
    }

    /// As [`with_elicitor`](Self::with_elicitor), with the tokens of the servers that users have [logged
    /// in](crate::login()) to. Expiring tokens are renewed. No login is started: a server that refuses the tokens fails
    /// with [`ServerErrorKind::LoginRequired`], and is tried again when it is next used.
    #[must_use]
    pub fn with_tokens(
        env: Arc<dyn ExecutionEnvironment>,
        specs: impl IntoIterator<Item = ServerSpec>,
        elicitor: Arc<dyn Elicitor>,
        tokens: Arc<dyn TokenStore>,
    ) -> Self {
        Self::build(env, specs, elicitor, Some(tokens))
    }

    fn build(
        env: Arc<dyn ExecutionEnvironment>,
        specs: impl IntoIterator<Item = ServerSpec>,
        elicitor: Arc<dyn Elicitor>,
        tokens: Option<Arc<dyn TokenStore>>,
    ) -> Self {
        let mut servers: Vec<ServerEntry> = Vec::new();
        for spec in specs {
            servers.retain(|server| server.spec.name != spec.name);
            servers.push(ServerEntry::new(spec));
        }
        servers.sort_by(|one, other| one.spec.name.cmp(&other.spec.name));
        Self {
            shared: Arc::new(ServersShared { env, elicitor, tokens, start_check: OnceLock::new(), servers }),
        }
    }

    /// Sets the check that decides right before each start of a process whether it may start. Default: every start is
    /// allowed. Only the first check that is set counts, for all clones.
    #[must_use]
    pub fn with_start_check(self, check: Arc<dyn StartCheck>) -> Self {
        self.shared.start_check.get_or_init(|| check);
        self
    }

    /// Returns the declarations, sorted by name.
    pub fn specs(&self) -> impl Iterator<Item = &ServerSpec> {
        self.shared.servers.iter().map(|server| server.spec.as_ref())
    }

    /// Sets the tools of a server that an earlier session has [listed](Self::list), so that listing them requires no
    /// start. Does nothing if the server is not declared.
    pub fn remember(&self, server: &ServerName, listing: ToolListing) {
        if let Some(server) = self.find(server) {
            server.set_known_tools(listing, 0);
        }
    }

    /// Returns the known tools of a server; `None` before its first start, unless they were [remembered](Self::remember).
    #[must_use]
    pub fn listing(&self, server: &ServerName) -> Option<ToolListing> {
        Some(self.find(server)?.known_tools()?.listing.clone())
    }

    /// Lists the tools of a server. Starts the server if it does not run.
    ///
    /// # Errors
    ///
    /// The server cannot be started or does not answer.
    pub async fn list(&self, server: &ServerName) -> Result<ToolListing, ServerError> {
        let (server, connection) = self.connection(server).await?;
        Ok(server.list(&connection).await?.listing.clone())
    }

    /// Lists the tools of the servers that have reported changed tools, and returns whether some tools differ. Requests
    /// that continue a conversation begin with its tools, so call this between two runs, and
    /// [register](McpServers::register) the tools again.
    pub async fn refresh(&self) -> bool {
        let mut has_changed = false;
        for server in &self.shared.servers {
            let before = server.known_tools();
            // A server that does not answer keeps its known tools.
            let _ = server.list_again().await;
            has_changed |= match (before, server.known_tools()) {
                (Some(before), Some(after)) => {
                    before.offered != after.offered || before.has_resources() != after.has_resources()
                }
                (before, after) => before.is_some() != after.is_some(),
            };
        }
        has_changed
    }

    /// Returns the tools of a server that a model is offered. Starts the server if they are unknown.
    pub(crate) async fn offered_tools(&self, name: &ServerName) -> Result<Vec<OfferedTool>, ServerError> {
        if let Some(server) = self.find(name)
            && let Some(known) = server.known_tools()
        {
            return Ok(server.list_again().await?.unwrap_or(known).offered.clone());
        }
        let (server, connection) = self.connection(name).await?;
        Ok(server.list(&connection).await?.offered.clone())
    }

    /// Returns the declaration of each server, with the tools that a model is offered if they are known.
    pub(crate) fn offers(&self) -> impl Iterator<Item = (&ServerSpec, Option<Arc<KnownTools>>)> {
        self.shared.servers.iter().map(|server| (server.spec.as_ref(), server.known_tools()))
    }

    /// Returns the names of the servers that are known to have resources.
    pub(crate) fn with_resources(&self) -> impl Iterator<Item = &ServerName> {
        let known = |server: &&ServerEntry| server.known_tools().is_some_and(|known| known.has_resources());
        self.shared.servers.iter().filter(known).map(|server| &server.spec.name)
    }

    /// Returns whether a server runs now.
    pub async fn is_running(&self, server: &ServerName) -> bool {
        let Some(server) = self.find(server) else { return false };
        matches!(&*server.state.lock().await, ConnectionState::Running(connection) if !connection.is_closed())
    }

    /// Ends all servers: their input is closed, and those that have not exited two seconds later are terminated. No server is
    /// started afterwards.
    pub async fn close(&self) {
        let closing = self.shared.servers.iter().map(|server| async {
            let state = std::mem::replace(&mut *server.state.lock().await, ConnectionState::Closed);
            if let ConnectionState::Running(connection) = state {
                connection.close().await;
            }
        });
        futures_util::future::join_all(closing).await;
    }

    pub(crate) async fn call(
        &self,
        server: &ServerName,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
        progress: Option<&OutputSink>,
    ) -> Result<CallToolResult, ServerError> {
        self.connect(server, cancel).await?.call(tool, arguments, cancel, progress).await
    }

    /// Returns the connection to a server, unless `cancel` stops the wait for it.
    pub(crate) async fn connect(
        &self,
        server: &ServerName,
        cancel: &CancellationToken,
    ) -> Result<Arc<ServerConnection>, ServerError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                Err(ServerError::new(server, ServerErrorKind::Cancelled, "was not started: the call was stopped"))
            }
            connected = self.connection(server) => Ok(connected?.1),
        }
    }

    /// Returns the connections to the servers that run now.
    pub(crate) async fn running_connections(&self) -> Vec<Arc<ServerConnection>> {
        let mut running = Vec::new();
        for server in &self.shared.servers {
            if let ConnectionState::Running(connection) = &*server.state.lock().await {
                running.push(Arc::clone(connection));
            }
        }
        running
    }

    fn find(&self, name: &ServerName) -> Option<&ServerEntry> {
        self.shared.servers.iter().find(|server| server.spec.name == *name)
    }

    /// Returns the connection to a server. Starts the server if it does not run. Concurrent callers wait for the same
    /// start.
    async fn connection(
        &self,
        name: &ServerName,
    ) -> Result<(&ServerEntry, Arc<ServerConnection>), ServerError> {
        let failed = |what: &str| ServerError::new(name, ServerErrorKind::Start, what);
        let server = self.find(name).ok_or_else(|| failed("is not declared"))?;
        let mut state = server.state.lock().await;
        let failures = match &*state {
            ConnectionState::Running(connection) if !connection.is_closed() => {
                return Ok((server, Arc::clone(connection)));
            }
            ConnectionState::Running(_) => 0,
            ConnectionState::Idle { failures } => *failures,
            ConnectionState::Closed => return Err(failed("was ended with its session")),
        };
        if failures >= MAX_FAILURES {
            let what =
                format!("has failed to start {MAX_FAILURES} times and is not tried again in this session");
            return Err(failed(&what));
        }
        let ServersShared { env, elicitor, tokens, start_check, .. } = self.shared.as_ref();
        if let Some(check) = start_check.get()
            && let ServerTransport::Stdio(_) = server.spec.transport
        {
            let checked = check.check(&server.spec, env.as_ref()).await;
            // The check runs again when the server is next used.
            checked.map_err(|reason| failed(&format!("cannot be started: {reason}")))?;
        }
        match ServerConnection::open(&server.spec, env.as_ref(), elicitor, tokens.as_ref()).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = ConnectionState::Running(Arc::clone(&connection));
                drop(state);
                Ok((server, connection))
            }
            Err(error) => {
                // A login solves this, regardless of the number of attempts without a login.
                let counts = error.kind() != ServerErrorKind::LoginRequired;
                *state = ConnectionState::Idle { failures: if counts { failures + 1 } else { 0 } };
                Err(error)
            }
        }
    }
}

impl ServerEntry {
    fn new(spec: ServerSpec) -> Self {
        Self {
            spec: Arc::new(spec),
            state: Mutex::new(ConnectionState::Idle { failures: 0 }),
            known: StdMutex::default(),
        }
    }

    fn known_tools(&self) -> Option<Arc<KnownTools>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_known_tools(&self, listing: ToolListing, changes: u64) -> Arc<KnownTools> {
        let known = Arc::new(KnownTools { offered: listing.offered_tools(&self.spec), listing, changes });
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&known));
        known
    }

    async fn list(&self, connection: &ServerConnection) -> Result<Arc<KnownTools>, ServerError> {
        // A change during the listing counts as a later change.
        let changes = connection.changes();
        let has_resources = connection.capabilities().resources.is_some();
        Ok(self.set_known_tools(ToolListing::new(connection.tools().await?, has_resources), changes))
    }

    /// Lists the tools again if the server runs and has reported changed tools.
    async fn list_again(&self) -> Result<Option<Arc<KnownTools>>, ServerError> {
        let running = match &*self.state.lock().await {
            ConnectionState::Running(connection) if !connection.is_closed() => Arc::clone(connection),
            ConnectionState::Running(_) | ConnectionState::Idle { .. } | ConnectionState::Closed => {
                return Ok(None);
            }
        };
        if self.known_tools().is_some_and(|known| known.changes == running.changes()) {
            return Ok(None);
        }
        self.list(&running).await.map(Some)
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.specs().map(|spec| spec.name.as_str()).collect();
        f.debug_struct("McpServers").field("servers", &names).finish_non_exhaustive()
    }
}
