//! Values of flags as the types of the parts that use them.

use clap::ValueEnum;
use pintle_agent::Toolset;

use super::{EnvArgs, ModelArgs, RunArgs};
use crate::env_spec::EnvironmentChoice;
use crate::environment::Confinement;
use crate::policy::grant::GrantSource;
use crate::route::ModelChoice;
use crate::servers::ServerOptions;
use crate::session_limits::SessionLimits;
use crate::toolset::ToolsetChoice;

/// Values of `--toolset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolsetName {
    /// Tools that the provider's models were trained on
    Native,
    /// Tools of the loop specification
    Spec,
}

impl From<ToolsetName> for Toolset {
    fn from(name: ToolsetName) -> Self {
        match name {
            ToolsetName::Native => Self::Native,
            ToolsetName::Spec => Self::Spec,
        }
    }
}

impl RunArgs {
    /// Returns the source of the grant that the session is opened under.
    pub(crate) fn grant_source(&self) -> GrantSource<'_> {
        match (&self.requested_grant, &self.grant) {
            (Some(grant), _) => GrantSource::Request(grant),
            (None, Some(file)) => GrantSource::File(file),
            (None, None) => GrantSource::Record,
        }
    }
}

impl From<&ModelArgs> for ModelChoice {
    fn from(args: &ModelArgs) -> Self {
        Self {
            provider: args.provider,
            model: args.model.clone(),
            base_url: args.base_url.clone(),
            script: args.script.clone(),
            dialect: args.dialect,
            profile: args.profile.clone(),
            catalog: args.catalog.catalog.clone(),
        }
    }
}

impl From<&EnvArgs> for EnvironmentChoice {
    fn from(args: &EnvArgs) -> Self {
        Self { spec: args.env.clone(), directory: args.dir.clone() }
    }
}

impl From<EnvironmentChoice> for EnvArgs {
    fn from(choice: EnvironmentChoice) -> Self {
        Self { env: choice.spec, dir: choice.directory }
    }
}

impl From<&RunArgs> for ToolsetChoice {
    fn from(args: &RunArgs) -> Self {
        Self {
            toolset: args.toolset.into(),
            mode: args.policy.mode,
            has_denials: !args.policy.deny.is_empty(),
            network: Confinement::from(&args.confinement).has_network(),
        }
    }
}

impl From<&RunArgs> for SessionLimits {
    fn from(args: &RunArgs) -> Self {
        Self {
            max_turns: args.max_turns,
            max_tool_rounds: args.max_tool_rounds,
            compact_at: args.compact_at,
            model_timeout: args.model.timeout,
        }
    }
}

impl From<&RunArgs> for ServerOptions {
    #[cfg(feature = "mcp")]
    fn from(args: &RunArgs) -> Self {
        Self {
            choice: (&args.servers).into(),
            confinement: (&args.confinement).into(),
            environment: args.environment.env.clone(),
            keeps_state: !args.session.no_session,
        }
    }

    #[cfg(not(feature = "mcp"))]
    fn from(_args: &RunArgs) -> Self {
        Self
    }
}
