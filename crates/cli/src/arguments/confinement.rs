//! Flags that confine tools.

use clap::{Args, ValueEnum};
use pintle_host::SandboxLevel;
use pintle_host::environment::Confinement;

use super::parsers::named;

/// Limits on commands and file tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct ConfinementArgs {
    /// Sandbox level for commands; `auto` is the strictest level that this machine supports
    #[arg(
        long,
        value_parser = named::<SandboxLevel>(),
        value_name = "LEVEL",
        default_value = "auto",
        conflicts_with = "no_sandbox"
    )]
    pub(crate) sandbox: SandboxLevel,
    /// Run commands with all permissions of the user, like `--sandbox off`
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Allow sandboxed commands and web tools to use the network [default: off in a sandbox, otherwise on]
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(crate) network: Option<Switch>,
    /// Restrict file tools to the working directory, symbolic links resolved; does not apply to commands
    #[arg(long)]
    pub(crate) confine: bool,
    /// Reject changes to files that the model has not read, or that changed after it read them
    #[arg(long)]
    pub(crate) read_before_write: bool,
}

/// Values of an on/off flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl From<&ConfinementArgs> for Confinement {
    fn from(args: &ConfinementArgs) -> Self {
        Self {
            level: if args.no_sandbox { SandboxLevel::Off } else { args.sandbox },
            network: args.network.map(|switch| switch == Switch::On),
            confine: args.confine,
        }
    }
}
