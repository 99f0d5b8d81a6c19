//! MCP servers of a session. A build without the feature `mcp` supports none.

#[cfg(feature = "mcp")]
mod with_servers {
    use std::sync::Arc;

    use pintle_agent::ProviderProfile;

    use crate::attendant::Attendant;
    use crate::env_spec::EnvSpec;
    use crate::environment::{Confinement, EnvSession};
    use crate::failure::Failure;
    use crate::grant_workspace;
    pub use crate::mcp::SessionServers;
    use crate::mcp::{OfflineGrant, ServerChoice, ServerStartContext};
    use crate::notice::Notice;
    use crate::policy::ProjectServerFile;
    use crate::process_env::ProcessEnv;
    use crate::spec::SessionSpec;
    use pintle_governance::Grant;
    pub use pintle_mcp::ServerSpec;
    use pintle_mcp::{ServerTransport, parse_declared_servers};
    use serde_json::{Map, Value, json};

    /// Servers that a run asks for, and the settings that they depend on.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ServerOptions {
        /// Servers besides those of the user and of projects.
        pub choice: ServerChoice,
        /// Limits of the session.
        pub confinement: Confinement,
        /// Environment of the session.
        pub environment: EnvSpec,
        /// Whether listings of servers are stored.
        pub keeps_state: bool,
    }

    impl ServerOptions {
        /// Returns the options of a session in this environment.
        pub fn new(spec: &SessionSpec, environment: &EnvSpec) -> Self {
            Self {
                choice: spec.into(),
                confinement: spec.into(),
                environment: environment.clone(),
                keeps_state: spec.persistence.keep,
            }
        }
    }

    /// Returns the servers that settings declare. They run in the sandbox.
    ///
    /// A wrong declaration is a usage failure.
    pub fn parse_declarations(
        spec: &SessionSpec,
        process_env: &ProcessEnv,
    ) -> Result<Vec<ServerSpec>, Failure> {
        if spec.tools.servers.is_empty() {
            return Ok(Vec::new());
        }
        let servers = spec.tools.servers.iter();
        let servers: Map<String, Value> =
            servers.map(|server| (server.name.clone(), server.declaration.clone())).collect();
        let text = json!({ "mcpServers": servers }).to_string();
        let declared = parse_declared_servers(&text, |name| process_env.variable(name));
        process_env.notices().report_all(declared.warnings.iter().map(|text| Notice::from(text.as_str())));
        if let Some(problem) = declared.problems.first() {
            return Err(Failure::usage(format!("tools.servers: {problem}")));
        }
        let mut specs = declared.servers;
        for spec in &mut specs {
            if let ServerTransport::Stdio(server) = &mut spec.transport {
                server.outside_sandbox = false;
            }
        }
        Ok(specs)
    }

    /// Adds the tools of the servers that files of projects and the client declare to the tools of a profile. Starts
    /// no server. A grant without network leaves out each server that would use the network.
    pub fn add_to_profile(
        profile: &mut ProviderProfile,
        declared: (&[ProjectServerFile], Vec<ServerSpec>),
        options: &ServerOptions,
        env_session: &EnvSession,
        grant: Option<&Grant>,
        attendant: &Arc<dyn Attendant>,
        process_env: &ProcessEnv,
    ) -> Result<SessionServers, Failure> {
        let context = ServerStartContext {
            offline: grant.filter(|grant| !grant.network.is_all()).map(|grant| OfflineGrant {
                id: grant.id.clone(),
                allows_hosts: grant.network.is_any(),
                sandbox_blocks_network: grant_workspace::blocks_network(
                    env_session.sandbox(),
                    &options.confinement,
                ),
            }),
            environment: env_session.server_environment(),
            name: &options.environment.to_string(),
            network: options.confinement.has_network(),
            hosts: env_session.hosts().cloned(),
            keeps_state: options.keeps_state,
        };
        let (files, more) = declared;
        SessionServers::add_to_profile(profile, files, more, &options.choice, context, attendant, process_env)
    }
}

#[cfg(not(feature = "mcp"))]
mod without_servers {
    use std::sync::Arc;

    use pintle_agent::{ProviderProfile, SessionHandle};

    use crate::attendant::Attendant;
    use crate::env_spec::EnvSpec;
    use crate::environment::EnvSession;
    use crate::failure::Failure;
    use crate::policy::ProjectServerFile;
    use crate::process_env::ProcessEnv;
    use crate::prompt_commands::{PromptCall, PromptCommand, PromptText};
    use crate::spec::SessionSpec;
    use pintle_governance::Grant;

    /// Uninhabited: this build has no servers.
    #[derive(Clone, Copy, Debug)]
    pub enum ServerSpec {}

    /// Nothing: a build without servers has no options for them.
    #[derive(Clone, Copy, Debug)]
    pub struct ServerOptions;

    impl ServerOptions {
        /// Returns no options.
        pub fn new(_spec: &SessionSpec, _environment: &EnvSpec) -> Self {
            Self
        }
    }

    /// No servers.
    #[derive(Clone, Debug)]
    pub struct SessionServers;

    impl SessionServers {
        /// Does nothing.
        pub async fn refresh(self, _handle: SessionHandle) {}

        /// Does nothing.
        pub async fn close(self) {}

        /// Returns no prompts.
        pub fn prompts(&self) -> Vec<PromptCommand> {
            Vec::new()
        }

        /// Fails: no server has a prompt.
        pub async fn prompt(&self, called: &PromptCall) -> Result<PromptText, String> {
            Err(format!("there is no server {}", called.server))
        }
    }

    /// Returns no servers. Fails if settings declare some.
    pub fn parse_declarations(
        spec: &SessionSpec,
        _process_env: &ProcessEnv,
    ) -> Result<Vec<ServerSpec>, Failure> {
        match spec.tools.servers.first() {
            None => Ok(Vec::new()),
            Some(server) => {
                Err(Failure::usage(format!("this build cannot start the MCP server `{}`", server.name)))
            }
        }
    }

    /// Leaves the profile unchanged. Never fails: only a build with servers can.
    pub fn add_to_profile(
        _profile: &mut ProviderProfile,
        _declared: (&[ProjectServerFile], Vec<ServerSpec>),
        _options: &ServerOptions,
        _env_session: &EnvSession,
        _grant: Option<&Grant>,
        _attendant: &Arc<dyn Attendant>,
        _process_env: &ProcessEnv,
    ) -> Result<SessionServers, Failure> {
        Ok(SessionServers)
    }
}

#[cfg(feature = "mcp")]
pub use self::with_servers::{ServerOptions, ServerSpec, SessionServers, add_to_profile, parse_declarations};
#[cfg(not(feature = "mcp"))]
pub use self::without_servers::{
    ServerOptions, ServerSpec, SessionServers, add_to_profile, parse_declarations,
};
