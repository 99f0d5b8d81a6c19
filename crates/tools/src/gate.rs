//! Gates: what decides, before a call runs, whether it may (design, section 7).
//!
//! Gates stand in a chain and every one of them is heard: one denial is enough to refuse a call, one question is
//! enough to have a person decide. The ready ones judge by effect ([`EffectGate`]), by tool ([`ToolGate`]), by path
//! ([`PathGate`]), by protected directories ([`ProtectedDirectoryGate`]), by command ([`CommandGate`]), and by what the model has read ([`ReadBeforeWrite`]).
//!
//! A gate judges what a call says of itself. What a command does once it runs, only an environment can hold: see
//! [`Confined`](pintle_env::Confined) and its sisters.

mod command;
mod effect;
mod path;
mod protected;
mod read_before_write;
mod rehearsal;
mod tool;
#[cfg(test)]
mod workbench;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use self::command::{CommandGate, PatternError};
pub use self::effect::EffectGate;
pub use self::path::PathGate;
pub use self::protected::ProtectedDirectoryGate;
pub use self::read_before_write::ReadBeforeWrite;
pub use self::rehearsal::{Rehearsal, rehearse};
pub use self::tool::ToolGate;
use crate::error::{ToolError, ToolErrorKind};
use crate::pipeline::{Execution, PreparedCall};

/// Decides whether a call may run, before it does.
///
/// Implemented by hosts for their own rules. It must not run the call and should answer soon; the turn waits for it. What
/// takes long is awaited, and never done on the thread that asks, which may be the one that the session listens on.
#[async_trait]
pub trait Gate: fmt::Debug + Send + Sync {
    /// The verdict on one call. A session has each call judged twice: when it is prepared, and again right before it
    /// runs, since the world may have changed meanwhile, by another call of the same round perhaps. The second time a
    /// denial counts as before; a question refuses the call, unless a person has approved it.
    async fn check(&self, call: &PreparedCall) -> Verdict;

    /// Learns what became of a call that ran. Does nothing by default.
    async fn ran(&self, call: &PreparedCall, execution: &Execution) {
        let _ = (call, execution);
    }
}

const _: fn(&dyn Gate) = |_| {};

/// What a gate says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run, unless another gate objects.
    Allow,
    /// It may not, whatever the others say.
    Deny {
        /// Goes to the model.
        reason: String,
    },
    /// A person decides, unless another gate denies.
    Ask {
        /// Goes to that person.
        reason: String,
    },
}

/// What a ready gate does with the calls that a rule of it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// They may run.
    Allow,
    /// A person decides on each.
    Ask,
    /// They may not run.
    Deny,
}

impl Ruling {
    fn verdict(self, reason: impl FnOnce() -> String) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Ask => Verdict::Ask { reason: reason() },
            Self::Deny => Verdict::Deny { reason: reason() },
        }
    }
}

/// The verdict of a whole chain: the first denial, else all questions in one, else leave to run.
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

/// What the model reads of a call that is denied.
#[must_use]
pub fn denied(tool: &str, reason: &str) -> ToolError {
    ToolError::new(ToolErrorKind::Denied, format!("The call of {tool} was denied: {reason}"))
}

#[cfg(test)]
mod tests;
