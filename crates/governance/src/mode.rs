//! Modes: what happens to calls that no rule names.

use std::fmt;
use std::str::FromStr;

use pintle_tools::Effect;
use pintle_tools::gate::Permission;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default for calls that no rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Calls only read. Commands run only where nothing can be changed.
    Plan,
    /// Calls that only read run; a person is asked about all others.
    Ask,
    /// Calls that change files in the workspace run as well; a person is asked about commands and the network.
    Edit,
    /// All calls run, and the sandbox holds them.
    Auto,
}

/// Properties of a call that a mode judges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallTraits {
    /// Effect of the call.
    pub effect: Effect,
    /// Whether all files that it changes are in the workspace.
    pub stays_in_workspace: bool,
    /// Whether it is confined so that it cannot change anything.
    pub is_held_to_reading: bool,
}

impl CallTraits {
    /// Creates the traits of an unconfined call that stays in the workspace.
    #[must_use]
    pub fn new(effect: Effect) -> Self {
        Self { effect, stays_in_workspace: true, is_held_to_reading: false }
    }

    /// Marks the call as changing files outside of the workspace.
    #[must_use]
    pub fn outside_workspace(mut self) -> Self {
        self.stays_in_workspace = false;
        self
    }

    /// Marks the call as confined so that it cannot change anything.
    #[must_use]
    pub fn held_to_reading(mut self) -> Self {
        self.is_held_to_reading = true;
        self
    }
}

impl Mode {
    /// All modes, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Edit, Self::Auto];

    /// Returns whether more calls run without a decision than in `other`.
    #[must_use]
    pub fn is_wider_than(self, other: Self) -> bool {
        self > other
    }

    /// Returns what happens to a call that no rule names.
    #[must_use]
    pub fn permission(self, call: CallTraits) -> Permission {
        match (self, call.effect) {
            (_, Effect::Read) | (Self::Auto, Effect::Execute | Effect::Network) => Permission::Allow,
            (Self::Plan, Effect::Execute) if call.is_held_to_reading => Permission::Allow,
            (Self::Plan, Effect::Write | Effect::Execute) => Permission::Deny,
            (Self::Edit | Self::Auto, Effect::Write) if call.stays_in_workspace => Permission::Allow,
            (
                Self::Plan | Self::Ask | Self::Edit | Self::Auto,
                Effect::Write | Effect::Execute | Effect::Network,
            ) => Permission::Ask,
        }
    }

    /// Returns the name, such as `edit`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Text that is not the name of a mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode, expected `plan`, `ask`, `edit` or `auto`")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Permission::{Allow, Ask, Deny};

    #[test]
    fn calls_without_a_rule_follow_the_mode() {
        let read = CallTraits::new(Effect::Read);
        let write = CallTraits::new(Effect::Write);
        let run = CallTraits::new(Effect::Execute);
        let fetch = CallTraits::new(Effect::Network);
        for (mode, expected) in [
            (Mode::Plan, [Allow, Deny, Deny, Deny, Allow, Ask]),
            (Mode::Ask, [Allow, Ask, Ask, Ask, Ask, Ask]),
            (Mode::Edit, [Allow, Allow, Ask, Ask, Ask, Ask]),
            (Mode::Auto, [Allow, Allow, Ask, Allow, Allow, Allow]),
        ] {
            let calls = [read, write, write.outside_workspace(), run, run.held_to_reading(), fetch];
            assert_eq!(calls.map(|call| mode.permission(call)), expected, "{mode}");
        }
    }

    #[test]
    fn modes_have_names() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!(
            "Auto".parse::<Mode>().unwrap_err().to_string(),
            "`Auto` is not a mode, expected `plan`, `ask`, `edit` or `auto`"
        );
    }
}
