//! Grants: the authority of a session.

mod arguments;
mod attenuate;
mod budget;
mod paths;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use pintle_agent::protocol::InputKind;
use pintle_agent::{Limits, Record, SessionConfig, SessionId, Timestamp};
use pintle_tools::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::arguments::ArgumentScope;
pub use self::attenuate::{Attenuation, Axis};
pub use self::paths::PathScope;
use crate::network::NetworkScope;
use crate::pattern::Pattern;
use crate::signing_key::PublicKey;
use crate::tool_names::kind_of_tool;

/// Id of a grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GrantId(String);

impl GrantId {
    /// Creates an id. Use each id for one grant only.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for GrantId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<String> for GrantId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl FromStr for GrantId {
    type Err = Infallible;

    fn from_str(id: &str) -> Result<Self, Infallible> {
        Ok(Self::new(id))
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Authority of a session: operations, time and budget. A grant is plain data without a signature. The application that
/// stores it controls who may change it. A [`SignedChain`](crate::SignedChain) is verified into a grant.
///
/// [`Grant::none`] allows nothing, and each field widens one part. A subagent gets a grant by
/// [`attenuate`](Self::attenuate), which allows nothing that the parent's grant does not allow.
///
/// Unknown JSON fields are an error, because an unknown field could be a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grant {
    /// Version of the format, [`Grant::VERSION`].
    pub version: u32,
    /// Id, which identifies the grant for a revocation.
    pub id: GrantId,
    /// Grants that it was attenuated from, the oldest first. Revoking one of them revokes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<GrantId>,
    /// Keys that signed it and its ancestors, starting with the root; empty for an unsigned grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub issuers: Vec<PublicKey>,
    /// Text of the signed chain from which it was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Session that it applies to; any session if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub session: Option<SessionId>,
    /// Generation number. A revocation can apply to all older generations at once.
    #[serde(default)]
    pub epoch: u64,
    /// Tools that may be called, by name.
    pub tools: BTreeSet<Pattern>,
    /// Limits on arguments. A call must satisfy all limits for its tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ArgumentScope>,
    /// Files and directories that calls may read.
    pub reads: PathScope,
    /// Files that calls may change.
    pub writes: PathScope,
    /// Highest effect of a call.
    pub effect: EffectCeiling,
    /// Machines that tools may reach.
    #[schemars(with = "crate::network::NetworkForm")]
    pub network: NetworkScope,
    /// Whether commands may run outside of the sandbox of their environment, each after a user has allowed it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub outside_sandbox: bool,
    /// Environments in which tools may work, by name: `local`, `docker:IMAGE`, `ssh:HOST`.
    pub environments: BTreeSet<Pattern>,
    /// Spending limits.
    #[serde(default, with = "self::budget")]
    #[schemars(with = "self::budget::GrantBudget")]
    pub budget: Limits,
    /// Time window in which it is valid.
    #[serde(default)]
    pub window: Window,
    /// Subagents that may be started.
    #[serde(default)]
    pub delegation: Delegation,
}

/// Highest effect that calls may have. Network access is separate, since it combines with each effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EffectCeiling {
    /// Calls may only read.
    Read,
    /// Calls may change files that they name.
    Write,
    /// Calls may run programs.
    Execute,
}

impl EffectCeiling {
    /// Returns whether the ceiling allows this effect. The network is limited separately.
    #[must_use]
    pub fn contains(self, effect: Effect) -> bool {
        match effect {
            Effect::Read | Effect::Network => true,
            Effect::Write => self >= Self::Write,
            Effect::Execute => self >= Self::Execute,
        }
    }
}

/// Time window in which a grant is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Window {
    /// Start, inclusive; unlimited if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub not_before: Option<Timestamp>,
    /// End, exclusive; unlimited if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub not_after: Option<Timestamp>,
}

impl Window {
    /// Creates the window from one moment to another.
    #[must_use]
    pub fn new(not_before: Option<Timestamp>, not_after: Option<Timestamp>) -> Self {
        Self { not_before, not_after }
    }

    /// Returns whether a moment is within it.
    #[must_use]
    pub fn contains(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|start| start <= now) && self.not_after.is_none_or(|end| now < end)
    }
}

/// Subagents that may be started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Delegation {
    /// Generations of subagents below the session; 0 for no subagents.
    pub depth: u32,
    /// Maximum number of open subagents of one session.
    pub width: u32,
}

impl Delegation {
    /// Creates a limit.
    #[must_use]
    pub fn new(depth: u32, width: u32) -> Self {
        Self { depth, width }
    }
}

/// Reason why a text is not a grant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The text does not have the form of a grant.
    #[error("it is not a grant")]
    Form(#[source] serde_json::Error),
    /// The grant has another version.
    #[error("the grant has version {found}, expected {}", Grant::VERSION)]
    Version {
        /// Version of the grant.
        found: u64,
    },
    /// A path does not start at the root, or contains `.` or `..`.
    #[error(
        "`{path}` in `{field}` is not a canonical path: expected one that starts with `/`, without `.` and `..`"
    )]
    Path {
        /// The field.
        field: &'static str,
        /// The path.
        path: String,
    },
    /// The name of an argument is not a JSON pointer.
    #[error("`{0}` is not a JSON pointer: expected one such as `/url`")]
    Pointer(String),
}

impl Grant {
    /// Version of the form.
    pub const VERSION: u32 = 1;

    /// Creates a grant that allows nothing.
    #[must_use]
    pub fn none(id: GrantId) -> Self {
        Self {
            version: Self::VERSION,
            id,
            ancestors: Vec::new(),
            issuers: Vec::new(),
            chain: None,
            session: None,
            epoch: 0,
            tools: BTreeSet::new(),
            arguments: Vec::new(),
            reads: PathScope::none(),
            writes: PathScope::none(),
            effect: EffectCeiling::Read,
            network: NetworkScope::None,
            outside_sandbox: false,
            environments: BTreeSet::new(),
            budget: Limits::default(),
            window: Window::default(),
            delegation: Delegation::default(),
        }
    }

    /// Returns its label in records: its id and its epoch.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}@{}", self.id, self.epoch)
    }

    /// Creates a grant that allows everything, for an application that confines a session by other means.
    #[must_use]
    pub fn all(id: GrantId) -> Self {
        let any = || BTreeSet::from([Pattern::any()]);
        Self {
            tools: any(),
            reads: PathScope::all(),
            writes: PathScope::all(),
            effect: EffectCeiling::Execute,
            network: NetworkScope::All,
            outside_sandbox: true,
            environments: any(),
            delegation: Delegation::new(u32::MAX, u32::MAX),
            ..Self::none(id)
        }
    }

    /// Parses the JSON form.
    ///
    /// # Errors
    ///
    /// [`GrantError`].
    pub fn parse(text: &str) -> Result<Self, GrantError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        // The version comes first, since the other fields depend on it.
        let Version { version } = serde_json::from_str(text).map_err(GrantError::Form)?;
        if version != u64::from(Self::VERSION) {
            return Err(GrantError::Version { found: version });
        }
        let grant: Self = serde_json::from_str(text).map_err(GrantError::Form)?;
        grant.check()?;
        Ok(grant)
    }

    /// Returns the last grant on the record of a session; `None` if the session was unrestricted.
    ///
    /// # Errors
    ///
    /// [`GrantError`] if this version cannot read the grant.
    pub fn of_record(record: &Record) -> Result<Option<Self>, GrantError> {
        let grant = record.entries.iter().rev().find_map(|entry| {
            let InputKind::PolicyChanged { change } = &entry.input.kind else { return None };
            change.grant.as_ref()
        });
        grant.map(|grant| Self::parse(&grant.to_string())).transpose()
    }

    /// Checks conditions that the JSON form does not express.
    ///
    /// # Errors
    ///
    /// [`GrantError::Path`] and [`GrantError::Pointer`].
    pub fn check(&self) -> Result<(), GrantError> {
        self.reads.check("reads")?;
        self.writes.check("writes")?;
        let is_pointer = |pointer: &str| pointer.is_empty() || pointer.starts_with('/');
        match self.arguments.iter().find(|scope| !is_pointer(&scope.pointer)) {
            Some(wrong) => Err(GrantError::Pointer(wrong.pointer.clone())),
            None => Ok(()),
        }
    }

    /// Returns its JSON form.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Every value of a grant has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Lowers the limits of a session on spending and subagents to the limits of the grant.
    pub fn limit(&self, config: &mut SessionConfig) {
        config.limits.budget = config.limits.budget.lower(&self.budget);
        config.subagents.max_depth = config.subagents.max_depth.min(self.delegation.depth);
        let width = usize::try_from(self.delegation.width).unwrap_or(usize::MAX);
        config.subagents.max_open = config.subagents.max_open.min(width);
    }

    /// Returns whether it allows calls of a tool with this name, whatever they do.
    #[must_use]
    pub fn allows_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|pattern| pattern.matches(name))
    }

    /// Returns the names in `tools` that match no tool of `offered`. Each comes with the offered tool of the same kind
    /// that the grant does not allow.
    pub fn misnamed_tools<'a>(
        &'a self,
        offered: &'a [String],
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.tools.iter().filter_map(|pattern| {
            let kind = kind_of_tool(pattern.as_str())?;
            let is_offered = offered.iter().any(|name| pattern.matches(name));
            let same =
                offered.iter().find(|name| kind_of_tool(name) == Some(kind) && !self.allows_tool(name));
            same.filter(|_| !is_offered).map(|name| (pattern.as_str(), name.as_str()))
        })
    }

    /// Returns whether it allows work in an environment with this name.
    #[must_use]
    pub fn allows_environment(&self, name: &str) -> bool {
        self.environments.iter().any(|pattern| pattern.matches(name))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
