//! Changes of a session's permissions.

use pintle_tools::gate::Permission;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Principal;

/// Change of a session's permissions, made by the layer that judges its calls. The session does not judge calls. It records
/// the change, which explains later verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct PolicyChange {
    /// Mode for calls that no rule names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Rules that were added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
    /// Level of the sandbox in which commands run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The grant, complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Value>,
    /// Principal that made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
}

/// Rule that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRule {
    /// Verdict for the calls that it names.
    pub permission: Permission,
    /// The rule, as it was written.
    pub rule: String,
    /// Origin, such as a file with a line, an option or an approval.
    pub source: String,
}

impl PolicyChange {
    /// Creates a change of the mode.
    #[must_use]
    pub fn mode(mode: impl Into<String>) -> Self {
        Self { mode: Some(mode.into()), ..Self::default() }
    }

    /// Creates an additional rule.
    #[must_use]
    pub fn rule(rule: PolicyRule) -> Self {
        Self { rules: vec![rule], ..Self::default() }
    }

    /// Sets the principal that makes the change.
    #[must_use]
    pub fn with_principal(mut self, principal: Option<Principal>) -> Self {
        self.by = principal;
        self
    }
}
