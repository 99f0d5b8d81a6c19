//! The flags that limit what tools may reach.

use clap::{Args, ValueEnum};

/// Limits on commands and file tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct ConfinementArgs {
    /// Hold commands in a sandbox of the Linux kernel, and file tools to the same limits on writing; off by default
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "off")]
    pub(crate) sandbox: SandboxName,
    /// Whether sandboxed commands and the web tools reach the network; by default off in a sandbox, else on
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(crate) network: Option<Switch>,
    /// Refuse file tools every path outside of the working directory, wherever links lead; commands are not held by it
    #[arg(long)]
    pub(crate) confine: bool,
    /// Refuse changes to files that the model has not read, or that have changed since
    #[arg(long)]
    pub(crate) read_before_write: bool,
}

/// The values of `--sandbox`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxName {
    /// None: commands can do what the user can.
    #[default]
    Off,
    /// Writes only below the working directory and in a private temporary directory.
    Workspace,
    /// Writes only in a private temporary directory.
    ReadOnly,
}

/// The values of a flag that turns something on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl ConfinementArgs {
    /// Whether commands and web tools reach the network.
    pub(crate) fn has_network(&self) -> bool {
        match self.network {
            Some(switch) => switch == Switch::On,
            None => self.sandbox == SandboxName::Off,
        }
    }
}
