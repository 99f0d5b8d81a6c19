//! Flags that confine tools.

use clap::{Args, ValueEnum};

/// Limits on commands and file tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct ConfinementArgs {
    /// Run commands in a Linux kernel sandbox and hold file tools to the same write limits
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "off")]
    pub(crate) sandbox: SandboxName,
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

/// Values of `--sandbox`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxName {
    /// No sandbox: commands have the user's permissions
    #[default]
    Off,
    /// Writes only below the working directory and in a private temporary directory
    Workspace,
    /// Writes only in a private temporary directory
    ReadOnly,
}

/// Values of an on/off flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl ConfinementArgs {
    /// Returns whether sandboxed commands and web tools may use the network.
    pub(crate) fn has_network(&self) -> bool {
        match self.network {
            Some(switch) => switch == Switch::On,
            None => self.sandbox == SandboxName::Off,
        }
    }
}
