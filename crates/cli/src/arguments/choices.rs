//! Values of flags as the types of the parts that use them.

use clap::ValueEnum;
use pintle_agent::Toolset;
use pintle_host::BaseUrl;
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::route::ModelChoice;

use super::{EnvArgs, ModelArgs};

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

impl From<&ModelArgs> for ModelChoice {
    fn from(args: &ModelArgs) -> Self {
        Self {
            provider: args.provider,
            model: args.model.clone(),
            base_url: args.base_url.as_ref().map(BaseUrl::new),
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
