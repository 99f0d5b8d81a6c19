//! Gates: rules that decide whether a call may run (design, section 7).
//!
//! A call passes a chain of gates. One denial refuses the call, and one question makes a person decide. The ready-made
//! gates judge by effect ([`EffectGate`]), by tool ([`ToolGate`]), by path ([`PathGate`]), by protected directories
//! ([`ProtectedDirectoryGate`]), by command ([`CommandGate`]), and by what the model has read ([`ReadBeforeWrite`]).
//!
//! A gate judges what a call declares. Only an execution environment can confine what a command does once it runs: see
//! [`Confined`](pintle_env::Confined) and the other wrappers.

mod command;
mod effect;
#[cfg(test)]
pub(crate) mod harness;
mod path;
mod protected;
mod read_before_write;
mod tool;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use self::command::{CommandGate, CommandLine, CommandPattern, PatternError};
pub use self::effect::EffectGate;
pub use self::path::PathGate;
pub use self::protected::ProtectedDirectoryGate;
pub use self::read_before_write::ReadBeforeWrite;
pub use self::tool::ToolGate;
use crate::call::{Execution, PreparedCall};
use crate::error::{ToolError, ToolErrorKind};

/// Decides whether a call may run.
///
/// Applications implement it for rules of their own. A gate must not run the call, and should answer soon, because the
/// turn waits for it. It must not block its thread, which may be the one that the session runs on.
#[async_trait]
pub trait Gate: fmt::Debug + Send + Sync {
    /// Returns the verdict on one call.
    ///
    /// A session lets each call be judged twice: when it is prepared, and right before it runs, since another call of
    /// the same round may have changed the world in between. The second time a denial counts as before, and a question
    /// refuses the call unless a person has approved it.
    async fn check(&self, call: &PreparedCall) -> Verdict;

    /// Observes the result of a call that ran. Does nothing by default.
    async fn ran(&self, call: &PreparedCall, execution: &Execution) {
        let _ = (call, execution);
    }
}

const _: fn(&dyn Gate) = |_| {};

/// The decision of a gate about one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run, unless another gate objects.
    Allow,
    /// The call must not run, whatever the other gates decide.
    Deny {
        /// The reason, for the model.
        reason: String,
    },
    /// A person decides, unless another gate denies the call.
    Ask {
        /// The reason, for that person.
        reason: String,
    },
}

/// The action of a rule of a ready-made gate on the calls that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// The calls may run.
    Allow,
    /// A person decides on each call.
    Ask,
    /// The calls must not run.
    Deny,
}

impl Permission {
    fn verdict(self, reason: impl FnOnce() -> String) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Ask => Verdict::Ask { reason: reason() },
            Self::Deny => Verdict::Deny { reason: reason() },
        }
    }
}

/// Returns the verdict of a chain: the first denial, else all questions joined, else permission.
pub async fn judge(gates: &[Arc<dyn Gate>], call: &PreparedCall) -> Verdict {
    let mut questions: Vec<String> = Vec::new();
    for gate in gates {
        match gate.check(call).await {
            Verdict::Allow => {}
            denial @ Verdict::Deny { .. } => return denial,
            Verdict::Ask { reason } if questions.contains(&reason) => {}
            Verdict::Ask { reason } => questions.push(reason),
        }
    }
    if questions.is_empty() { Verdict::Allow } else { Verdict::Ask { reason: questions.join("; ") } }
}

/// Returns the error that the model reads for a denied call.
#[must_use]
pub fn denied(tool: &str, reason: &str) -> ToolError {
    ToolError::new(ToolErrorKind::Denied, format!("The call of {tool} was denied: {reason}"))
}

#[cfg(test)]
mod tests;
