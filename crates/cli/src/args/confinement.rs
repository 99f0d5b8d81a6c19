//! Flags that confine tools.

use clap::{Args, ValueEnum};

/// Limits on commands and file tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct ConfinementArgs {
    /// Level of the sandbox that commands run in; `auto` is the strictest that this machine has
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "auto", conflicts_with = "no_sandbox")]
    pub(crate) sandbox: SandboxName,
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

/// Values of `--sandbox`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxName {
    /// The strictest level that this machine has
    Auto,
    /// Writes only in the directory; secrets hidden, git's settings protected, own processes and network
    Full,
    /// Writes only in the directory; everything can be read
    Writes,
    /// No sandbox: commands have the user's permissions
    Off,
}

/// Values of an on/off flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl ConfinementArgs {
    /// Returns the limits of commands of `pintle` that run no model.
    pub(crate) const fn none() -> Self {
        Self {
            sandbox: SandboxName::Off,
            no_sandbox: false,
            network: None,
            confine: false,
            read_before_write: false,
        }
    }

    /// Returns the requested level.
    pub(crate) fn level(&self) -> SandboxName {
        if self.no_sandbox { SandboxName::Off } else { self.sandbox }
    }

    /// Returns whether sandboxed commands and web tools may use the network.
    pub(crate) fn has_network(&self) -> bool {
        match self.network {
            Some(switch) => switch == Switch::On,
            None => self.level() == SandboxName::Off,
        }
    }
}
