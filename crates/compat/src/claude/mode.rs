//! Permission modes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Permission mode of Claude Code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Calls that no rule names need an approval.
    #[default]
    Default,
    /// Changes of files run; commands need an approval.
    AcceptEdits,
    /// All calls run.
    BypassPermissions,
    /// Calls that change anything do not run.
    Plan,
    /// Calls that would need an approval are denied.
    DontAsk,
    /// Calls that are judged to be harmless run.
    Auto,
}

/// Names of the modes.
pub(super) const MODES: &[(&str, PermissionMode)] = &[
    ("default", PermissionMode::Default),
    ("acceptEdits", PermissionMode::AcceptEdits),
    ("bypassPermissions", PermissionMode::BypassPermissions),
    ("plan", PermissionMode::Plan),
    ("dontAsk", PermissionMode::DontAsk),
    ("auto", PermissionMode::Auto),
];

impl PermissionMode {
    /// Returns the name, as on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        MODES.iter().find(|(_, mode)| *mode == self).map_or("default", |(name, _)| name)
    }

    /// Returns the mode with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
