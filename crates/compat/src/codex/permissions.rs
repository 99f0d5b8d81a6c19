//! Permissions of a run, as stated by the options.

use super::options::{ApprovalPolicy, ExecOptions, SandboxMode, WebSearchMode};
use crate::command_line::OptionError;

/// Permissions that the options of a command line grant.
#[derive(Debug, Default)]
pub(super) struct StatedPermissions {
    pub(super) sandbox: StatedValues<SandboxMode>,
    pub(super) approval: StatedValues<ApprovalPolicy>,
    pub(super) network: StatedValues<bool>,
    pub(super) web_search: StatedValues<WebSearchMode>,
    /// Whether `--full-auto` sets the defaults.
    pub(super) is_full_auto: bool,
    /// Option that permits everything, as it was written.
    pub(super) bypass: Option<String>,
}

impl StatedPermissions {
    /// Sets the options that affect permissions. Adds a warning for a setting without effect in the sandbox mode.
    ///
    /// An error if one option permits less than the one that applies.
    pub(super) fn apply(
        mut self,
        options: &mut ExecOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(), OptionError> {
        if let Some(bypass) = self.bypass {
            if self.is_full_auto {
                return Err(OptionError::Conflict {
                    first: "--full-auto",
                    second: "--dangerously-bypass-approvals-and-sandbox",
                });
            }
            // Its position on the command line does not matter.
            self.sandbox.state(bypass.clone(), SandboxMode::DangerFullAccess);
            self.approval.state(bypass, ApprovalPolicy::Never);
        }
        let sandbox = self.sandbox.resolve()?;
        let approval = self.approval.resolve()?;
        let network = self.network.resolve()?;
        options.sandbox = sandbox.map(|(_, mode)| mode);
        options.approval = approval.map(|(_, policy)| policy);
        options.web_search = self.web_search.resolve()?.map(|(_, mode)| mode);
        if self.is_full_auto {
            options.sandbox.get_or_insert(SandboxMode::WorkspaceWrite);
            options.approval.get_or_insert(ApprovalPolicy::OnRequest);
        }
        options.network = network.and_then(|stated| network_in(options.sandbox, stated, warnings));
        Ok(())
    }
}

/// Returns whether commands have network access in a sandbox mode; `None` without a sandbox. The setting applies to
/// `workspace-write` only, so programs pass it with every mode. Adds a warning if the mode does the opposite.
fn network_in(
    mode: Option<SandboxMode>,
    (option, is_on): (String, bool),
    warnings: &mut Vec<String>,
) -> Option<bool> {
    let mut warn = |reason: &str| warnings.push(format!("option {option} has no effect: {reason}"));
    match mode {
        Some(SandboxMode::WorkspaceWrite) => Some(is_on),
        Some(SandboxMode::DangerFullAccess) => {
            if !is_on {
                warn("danger-full-access does not restrict the network");
            }
            None
        }
        None | Some(SandboxMode::ReadOnly) => {
            if is_on {
                warn("read-only has no network");
            }
            Some(false)
        }
    }
}

/// Values of one permission, each with the option that states it.
#[derive(Debug)]
pub(super) struct StatedValues<T> {
    configured: Vec<(String, T)>,
    on_command_line: Vec<(String, T)>,
}

impl<T> Default for StatedValues<T> {
    fn default() -> Self {
        Self { configured: Vec::new(), on_command_line: Vec::new() }
    }
}

impl<T: PermissionExtent> StatedValues<T> {
    /// Adds the value of an option. `option` includes the value.
    pub(super) fn state(&mut self, option: String, value: T) {
        self.on_command_line.push((option, value));
    }

    /// Adds the value of a key of the configuration. `option` includes the value.
    pub(super) fn configure(&mut self, option: String, value: T) {
        self.configured.push((option, value));
    }

    /// Returns the value that applies, with its option: the last one on the command line, or the last key.
    ///
    /// An error if another one permits less, since the program that passed it relies on it.
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
pub(super) trait PermissionExtent: Copy {
    /// Returns the extent of the permission, comparable with other values of its type.
    fn extent(self) -> u8;
}

impl PermissionExtent for SandboxMode {
    fn extent(self) -> u8 {
        match self {
            Self::ReadOnly => 0,
            Self::WorkspaceWrite => 1,
            Self::DangerFullAccess => 2,
        }
    }
}

impl PermissionExtent for ApprovalPolicy {
    fn extent(self) -> u8 {
        match self {
            Self::Untrusted => 0,
            // The sandbox decides.
            Self::OnFailure | Self::OnRequest | Self::Never => 1,
        }
    }
}

impl PermissionExtent for bool {
    fn extent(self) -> u8 {
        u8::from(self)
    }
}

impl PermissionExtent for WebSearchMode {
    fn extent(self) -> u8 {
        match self {
            Self::Disabled => 0,
            Self::Cached => 1,
            Self::Live => 2,
        }
    }
}
