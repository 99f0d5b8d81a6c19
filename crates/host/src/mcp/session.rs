//! The servers of one session.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pintle_agent::{ProviderProfile, SessionHandle};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{GrantId, HostScope};
use pintle_mcp::{McpServers, ServerName, ServerSpec, ServerTransport, ToolListing};
use pintle_tools::ToolRegistry;

use super::declarations::{Declarations, DeclaredServer, ServerChoice, host_objection, network_objection};
use super::elicitor::AttendantElicitor;
use super::listings::ServerListings;
use super::prompts::{self, ServerPrompts};
use super::trusted_start::TrustedStart;
use crate::attendant::Attendant;
use crate::failure::Failure;
use crate::notice::Notices;
use crate::policy::ProjectServerFile;
use crate::process_env::ProcessEnv;
use crate::prompt_commands::{PromptCall, PromptCommand, PromptText};
use crate::server_tokens;

/// Approximate number of bytes per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Divisor for the part of the context window that tool definitions of servers may occupy before a search tool replaces
/// them.
const WINDOW_DIVISOR: u64 = 20;

/// Maximum time that a closing session waits for prompts that it has not listed yet.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// MCP servers of a session, and its other tools.
#[derive(Clone, Debug)]
pub struct SessionServers {
    servers: McpServers,
    /// Tools that are not provided by servers.
    others: ToolRegistry,
    /// Maximum number of bytes of definitions in requests.
    max_bytes: usize,
    listings: Option<ServerListings>,
    /// Listings of the servers, as they are stored.
    remembered: Arc<Mutex<BTreeMap<String, ToolListing>>>,
    /// Prompts of the servers, as they are stored.
    prompts: Arc<Mutex<ServerPrompts>>,
    notices: Notices,
}

/// Environment in which a session starts its servers, and the limits on them.
#[derive(Debug)]
pub(crate) struct ServerStartContext<'a> {
    pub(crate) environment: Arc<dyn ExecutionEnvironment>,
    /// Name of the environment.
    pub(crate) name: &'a str,
    /// Whether servers behind a URL may be called.
    pub(crate) network: bool,
    /// Hosts of the servers behind a URL that may be called; `None` without such a limit.
    pub(crate) hosts: Option<HostScope>,
    /// The grant of the session, if it does not allow the whole network.
    pub(crate) offline: Option<OfflineGrant>,
    /// Whether listings of servers are stored.
    pub(crate) keeps_state: bool,
}

/// Grant that does not allow the whole network.
#[derive(Debug)]
pub(crate) struct OfflineGrant {
    pub(crate) id: GrantId,
    /// Whether it allows some hosts.
    pub(crate) allows_hosts: bool,
    /// Whether programs in the sandbox of the session reach no hosts but those that it allows.
    pub(crate) sandbox_blocks_network: bool,
}

impl ServerStartContext<'_> {
    /// Returns why a server is left out; `None` if it may be called.
    fn objection(&self, transport: &ServerTransport) -> Option<String> {
        let is_held = |offline: &OfflineGrant| match transport {
            ServerTransport::Stdio(server) => offline.sandbox_blocks_network && !server.outside_sandbox,
            // The host of its URL is checked below.
            ServerTransport::Http(_) => offline.allows_hosts,
            // Another transport would use the network, too.
            _ => false,
        };
        match &self.offline {
            Some(offline) if !is_held(offline) => Some(format!(
                "grant {} does not allow the network, and no sandbox blocks it for this server",
                offline.id
            )),
            Some(_) | None => match &self.hosts {
                Some(hosts) => host_objection(transport, hosts),
                None => network_objection(transport, self.network).map(str::to_owned),
            },
        }
    }
}

impl SessionServers {
    /// Adds the tools of the declared servers to the tools of a profile. Starts no server.
    pub(crate) fn add_to_profile(
        profile: &mut ProviderProfile,
        files: &[ProjectServerFile],
        more: Vec<ServerSpec>,
        choice: &ServerChoice,
        context: ServerStartContext<'_>,
        attendant: &Arc<dyn Attendant>,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let mut declarations = match choice.is_off {
            true => Declarations::default(),
            false => Declarations::collect(files, choice, process_env)?,
        };
        if !choice.is_off {
            more.into_iter().for_each(|spec| declarations.declare(spec));
        }
        let notices = process_env.notices();
        let declared = declarations.problems.iter().chain(&declarations.warnings);
        declared.for_each(|problem| notices.report(problem.as_str()));
        let mut reachable: Vec<DeclaredServer> = Vec::new();
        for declared in declarations.servers {
            match context.objection(&declared.spec.transport) {
                None => reachable.push(declared),
                Some(objection) => {
                    notices.report(format!("server `{}` is left out: {objection}", declared.spec.name));
                }
            }
        }
        let programs = reachable
            .iter()
            .filter_map(|declared| Some((declared.spec.name.to_string(), declared.programs.clone()?)));
        let trusted_start = Arc::new(TrustedStart::new(programs.collect(), Arc::clone(attendant)));
        let specs = reachable.into_iter().map(|declared| declared.spec);
        let directory = context.environment.working_directory().to_string_lossy().into_owned();
        let asker = Arc::new(AttendantElicitor::new(Arc::clone(attendant)));
        let servers =
            McpServers::with_tokens(context.environment, specs, asker, server_tokens::store(process_env))
                .with_start_check(trusted_start);
        let listings = ServerListings::open(context.name, &directory, process_env);
        let (mut remembered, mut prompts) = (BTreeMap::new(), ServerPrompts::default());
        let names: Vec<ServerName> = servers.specs().map(|spec| spec.name.clone()).collect();
        for name in names {
            let spec = servers.specs().find(|spec| spec.name == name);
            let (Some(listings), Some(spec)) = (&listings, spec) else { continue };
            prompts.known.insert(name.to_string(), listings.read_prompts(spec));
            if let Some(listing) = listings.read(spec) {
                servers.remember(&name, listing.clone());
                remembered.insert(name.to_string(), listing);
            }
        }
        let bytes = profile.context_window_size.saturating_mul(BYTES_PER_TOKEN) / WINDOW_DIVISOR;
        let offered = Self {
            servers,
            others: profile.tool_registry.clone(),
            max_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            listings: listings.filter(|_| context.keeps_state),
            remembered: Arc::new(Mutex::new(remembered)),
            prompts: Arc::new(Mutex::new(prompts)),
            notices: notices.clone(),
        };
        profile.tool_registry = offered.registry();
        Ok(offered)
    }

    /// Offers the tools again if servers have changed theirs, and stores the new listings. Called between two runs: all
    /// requests of a run start with the same tools.
    pub async fn refresh(self, handle: SessionHandle) {
        // Lists that a search has loaded are stored as well.
        let _ = self.servers.refresh().await;
        if self.store_listings() {
            // Fails only if the session has ended.
            let _ = handle.set_tools(self.registry());
        }
        // Last, since tools are for the next run.
        self.store_prompts().await;
    }

    /// Stops the servers, and stores their listings.
    pub async fn close(self) {
        // A server that hangs must not block the exit.
        let _ = tokio::time::timeout(CLOSE_TIME, self.store_prompts()).await;
        self.store_listings();
        self.servers.close().await;
    }

    /// Returns the prompts of the servers that are known.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    /// Requests the text of a prompt from its server, which is started if it does not run.
    ///
    /// The error is the message of the server.
    pub async fn prompt(&self, called: &PromptCall) -> Result<PromptText, String> {
        prompts::fetch(&self.servers, called).await
    }

    /// Lists the prompts of running servers, and stores them for later sessions. It asks servers without a request in
    /// this session, and all servers if one has reported changed prompts.
    async fn store_prompts(&self) {
        let changes = self.servers.prompt_changes().await;
        for spec in self.servers.specs() {
            let is_asked = {
                let prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
                prompts.asked.get(spec.name.as_str()) == Some(&changes)
            };
            if is_asked || !self.servers.is_running(&spec.name).await {
                continue;
            }
            // A server that does not answer keeps the prompts that it had.
            let Ok(listed) = prompts::list_prompts(&self.servers, &spec.name).await else { continue };
            let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
            prompts.asked.insert(spec.name.to_string(), changes);
            if prompts.known.get(spec.name.as_str()) != Some(&listed) {
                if let Some(listings) = &self.listings {
                    let _ = listings.write_prompts(spec, &listed);
                }
                prompts.known.insert(spec.name.to_string(), listed);
            }
        }
    }

    fn registry(&self) -> ToolRegistry {
        let mut registry = self.others.clone();
        for refused in self.servers.register(&mut registry, self.max_bytes) {
            let reason = refused.source().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.notices.report(format!("a tool of a server is left out: {refused}{reason}"));
        }
        registry
    }

    /// Stores the current listings of servers for later sessions. Returns whether something has changed.
    fn store_listings(&self) -> bool {
        let mut has_changed = false;
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        for spec in self.servers.specs() {
            let Some(listing) = self.servers.listing(&spec.name) else { continue };
            let name = spec.name.to_string();
            if remembered.get(&name) == Some(&listing) {
                continue;
            }
            if let Some(listings) = &self.listings {
                // A session that does not know them searches for them.
                let _ = listings.write(spec, &listing);
            }
            remembered.insert(name, listing);
            has_changed = true;
        }
        has_changed
    }
}
