//! Gates: rules that decide whether a call may run (design, section 7).
//!
//! A call passes a chain of gates. One denial refuses the call, and one question makes a person decide. The ready-made
//! gates judge by effect ([`EffectGate`]), by protected files ([`ProtectedPathGate`]), and by what the model has read
//! ([`ReadBeforeWrite`]). Gates with rules, modes and grants are in `pintle-governance`.
//!
//! A gate judges what a call declares. Only an execution environment can confine what a command does once it runs: see
//! [`Confined`](pintle_env::Confined) and the other wrappers.

mod command;
mod effect;
mod protected;
mod read_before_write;
mod verdict;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

pub use self::command::{CommandLine, CommandMention, CommandPattern, PatternError, matches_wildcard};
pub use self::effect::EffectGate;
pub use self::protected::{ProtectedPathGate, protected_target};
pub use self::read_before_write::ReadBeforeWrite;
pub use self::verdict::{Judgement, JudgementStep, Permission, Verdict};
use crate::call::{Execution, PreparedCall};
use crate::error::{ToolError, ToolErrorKind};
use crate::outside_sandbox::SandboxSide;
pub use crate::write_locations::write_locations;

/// Decides whether a call may run.
///
/// Applications implement it for rules of their own. A gate must not run the call, and should answer soon, because the
/// turn waits for it. It must not block its thread, which may be the one that the session runs on.
#[async_trait]
pub trait Gate: fmt::Debug + Send + Sync {
    /// Returns the name of this step of a judgement, such as `grant`. By default `gate`.
    fn name(&self) -> &'static str {
        "gate"
    }

    /// Returns the verdict on one call.
    ///
    /// A session lets each call be judged twice: when it is prepared, and right before it runs, since another call of
    /// the same round may have changed the world in between. The second time a denial counts as before, and a question
    /// refuses the call unless a person has approved it.
    async fn check(&self, call: &PreparedCall) -> Verdict;

    /// Returns the gate that judges the calls of a subagent: one that allows nothing that this one does not, or `None` if this
    /// one does it. By default this one does.
    ///
    /// # Errors
    ///
    /// The reason why there may be no subagent, in words for the model.
    fn for_subagent(&self, subagent: &Delegate<'_>) -> Result<Option<Arc<dyn Gate>>, String> {
        let _ = subagent;
        Ok(None)
    }

    /// Returns the authority that it holds calls to, such as a grant, for the record of a session. By default none.
    fn authority(&self) -> Option<Value> {
        None
    }

    /// Returns why the run has to end after a call that ran, because of what it did. By default it goes on.
    ///
    /// The model reads it with the result of the call, and the run fails with it once all calls of its round have ended.
    async fn stop_after(&self, call: &PreparedCall) -> Option<String> {
        let _ = call;
        None
    }

    /// Returns why a run that is about to end must fail, such as for changes by background commands. `None` by default.
    ///
    /// Called when the model has answered without a tool call.
    async fn stop_at_end(&self) -> Option<String> {
        None
    }

    /// Observes the result of a call that ran. Does nothing by default.
    async fn ran(&self, call: &PreparedCall, execution: &Execution) {
        let _ = (call, execution);
    }
}

const _: fn(&dyn Gate) = |_| {};

/// Subagent to which a session delegates work.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Delegate<'a> {
    /// Its name among the subagents of the session.
    pub name: &'a str,
    /// Id of its own session.
    pub session: &'a str,
}

impl<'a> Delegate<'a> {
    /// Creates the description of a subagent.
    #[must_use]
    pub fn new(name: &'a str, session: &'a str) -> Self {
        Self { name, session }
    }
}

/// Returns the judgement of a chain. It ends at the first denial.
///
/// A call that runs [outside of the sandbox](SandboxSide::Outside) is always asked about, unless it is denied: what a gate
/// allows by the words of a command, it allows in the sandbox.
pub async fn judge(gates: &[Arc<dyn Gate>], call: &PreparedCall) -> Judgement {
    let mut judgement = Judgement::new();
    for gate in gates {
        let verdict = gate.check(call).await;
        let is_denied = verdict.permission() == Permission::Deny;
        judgement.push(JudgementStep::new(gate.name(), verdict));
        if is_denied {
            break;
        }
    }
    if call.sandbox() == Some(SandboxSide::Outside) && judgement.permission() != Permission::Deny {
        let step = JudgementStep::new("sandbox", outside_sandbox());
        if !judgement.steps().iter().any(|asked| asked.reason == step.reason) {
            judgement.push(step);
        }
    }
    judgement
}

/// Returns the question about a call that runs outside of the sandbox. No hook answers it.
#[must_use]
pub fn outside_sandbox() -> Verdict {
    Verdict::ask("it runs outside of the sandbox").with_rule("outside of the sandbox")
}

/// Returns the reason to refuse a call after a decision on it, because `path` has another location than at the decision.
#[must_use]
pub fn redirected(path: &Path) -> String {
    let path = path.display();
    format!(
        "{path} now leads to another location than when the call was decided on; repeat the call for a new decision"
    )
}

/// Returns the error that the model reads for a denied call.
#[must_use]
pub fn denied(tool: &str, reason: &str) -> ToolError {
    ToolError::new(ToolErrorKind::Denied, format!("The call of {tool} was denied: {reason}"))
}

#[cfg(test)]
mod tests;
