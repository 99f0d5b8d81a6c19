//! Permissions of a run, as each option states them.

use super::options::{ApprovalPolicy, ExecOptions, SandboxMode, WebSearchMode};
use crate::command_line::OptionError;

/// Permissions that the options of a command line give.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    pub(super) sandbox: Stated<SandboxMode>,
    pub(super) approval: Stated<ApprovalPolicy>,
    pub(super) network: Stated<bool>,
    pub(super) web_search: Stated<WebSearchMode>,
    /// Whether `--full-auto` sets the defaults.
    pub(super) is_full_auto: bool,
    /// Option that permits everything, as it was written.
    pub(super) bypass: Option<String>,
}

impl Permissions {
    /// Sets the options that concern permissions.
    ///
    /// An error if one option permits less than the one that applies.
    pub(super) fn apply(mut self, options: &mut ExecOptions) -> Result<(), OptionError> {
        if let Some(bypass) = self.bypass {
            if self.is_full_auto {
                return Err(OptionError::Conflict {
                    first: "--full-auto",
                    second: "--dangerously-bypass-approvals-and-sandbox",
                });
            }
            // Its place on the command line does not matter.
            self.sandbox.state(bypass.clone(), SandboxMode::DangerFullAccess);
            self.approval.state(bypass, ApprovalPolicy::Never);
        }
        let sandbox = self.sandbox.resolve()?;
        let approval = self.approval.resolve()?;
        let network = self.network.resolve()?;
        if let (Some((wider, SandboxMode::DangerFullAccess)), Some((narrower, false))) = (&sandbox, &network)
        {
            return Err(OptionError::Contradiction { wider: wider.clone(), narrower: narrower.clone() });
        }
        options.sandbox = sandbox.map(|(_, mode)| mode);
        options.approval = approval.map(|(_, policy)| policy);
        options.network = network.map(|(_, is_on)| is_on);
        options.web_search = self.web_search.resolve()?.map(|(_, mode)| mode);
        if self.is_full_auto {
            options.sandbox.get_or_insert(SandboxMode::WorkspaceWrite);
            options.approval.get_or_insert(ApprovalPolicy::OnRequest);
        }
        Ok(())
    }
}

/// Values of one permission, each with the option that states it.
#[derive(Debug)]
pub(super) struct Stated<T> {
    configured: Vec<(String, T)>,
    on_command_line: Vec<(String, T)>,
}

impl<T> Default for Stated<T> {
    fn default() -> Self {
        Self { configured: Vec::new(), on_command_line: Vec::new() }
    }
}

impl<T: Permission> Stated<T> {
    /// Adds the value of an option. `option` contains the value as well.
    pub(super) fn state(&mut self, option: String, value: T) {
        self.on_command_line.push((option, value));
    }

    /// Adds the value of a key of the configuration. `option` contains the value as well.
    pub(super) fn configure(&mut self, option: String, value: T) {
        self.configured.push((option, value));
    }

    /// Returns the value that applies, with its option: the last one on the command line, or the last key.
    ///
    /// An error if another one permits less: a program that passes it relies on it.
    fn resolve(self) -> Result<Option<(String, T)>, OptionError> {
        let mut all = self.configured;
        all.extend(self.on_command_line);
        let Some((option, value)) = all.pop() else { return Ok(None) };
        match all.into_iter().find(|(_, other)| other.extent() < value.extent()) {
            Some((narrower, _)) => Err(OptionError::Contradiction { wider: option, narrower }),
            None => Ok(Some((option, value))),
        }
    }
}

/// Value that permits more or less than others.
pub(super) trait Permission: Copy {
    /// Returns how much it permits, in comparison with other values of its type.
    fn extent(self) -> u8;
}

impl Permission for SandboxMode {
    fn extent(self) -> u8 {
        match self {
            Self::ReadOnly => 0,
            Self::WorkspaceWrite => 1,
            Self::DangerFullAccess => 2,
        }
    }
}

impl Permission for ApprovalPolicy {
    fn extent(self) -> u8 {
        match self {
            Self::Untrusted => 0,
            // The sandbox decides.
            Self::OnFailure | Self::OnRequest | Self::Never => 1,
        }
    }
}

impl Permission for bool {
    fn extent(self) -> u8 {
        u8::from(self)
    }
}

impl Permission for WebSearchMode {
    fn extent(self) -> u8 {
        match self {
            Self::Disabled => 0,
            Self::Cached => 1,
            Self::Live => 2,
        }
    }
}
