//! Gates: rules that decide whether a call may run (design, section 7).
//!
//! A call passes a chain of gates. One denial refuses the call, and one question requires a user's decision. The
//! provided gates judge by effect ([`EffectGate`]), by protected files ([`ProtectedPathGate`]), and by the files that
//! the model has read ([`ReadBeforeWrite`]). Gates with rules, modes and grants are in `pintle-governance`.
//!
//! A gate judges the declarations of a call. Only an execution environment can confine a running command: see
//! [`ConfinedEnvironment`](pintle_env::ConfinedEnvironment) and the other wrappers.

mod command;
mod effect;
mod protected;
mod read_before_write;
mod verdict;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::setters;
use serde_json::Value;

pub use self::command::{CommandLine, CommandMention, CommandPattern, PatternError, matches_wildcard};
pub use self::effect::EffectGate;
pub use self::protected::{ProtectedPathGate, protected_target};
pub use self::read_before_write::ReadBeforeWrite;
pub use self::verdict::{Judgement, JudgementStep, Permission, Verdict};
use crate::call::Execution;
pub use crate::call::PreparedCall;
use crate::error::{ToolError, ToolErrorKind};
use crate::outside_sandbox::SandboxSide;
pub use crate::write_locations::write_locations;

/// Decides whether a call may run.
///
/// Applications implement it for custom rules. A gate must not run the call, and should answer soon, because the turn
/// waits for it. It must not block its thread, on which the session may run.
///
/// ```
/// use pintle_tools::gate::{Gate, PreparedCall, Verdict};
/// # use std::sync::Arc;
/// # use pintle_env::MemoryEnvironment;
/// # use pintle_llm::ToolCall;
/// # use pintle_tools::pipeline::{RunOptions, run};
/// # use pintle_tools::{ToolContext, ToolRegistry, builtin};
///
/// /// Denies changes of the manifest. `Verdict::ask` would leave the decision to a user.
/// #[derive(Debug)]
/// struct ManifestGate;
///
/// #[async_trait::async_trait]
/// impl Gate for ManifestGate {
///     async fn check(&self, call: &PreparedCall) -> Verdict {
///         // Paths are absolute and known before the call runs, for every tool that writes files.
///         match call.writes().iter().any(|path| path.ends_with("Cargo.toml")) {
///             true => Verdict::deny("a maintainer changes the manifest"),
///             false => Verdict::ALLOW,
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pintle_tools::DefinitionError> {
/// # let mut registry = ToolRegistry::new();
/// # builtin::register_core(&mut registry)?;
/// # let cx = ToolContext::new(Arc::new(MemoryEnvironment::new("/project")), "");
/// # let call = ToolCall::from_raw("c1", "write_file", r#"{"file_path": "/project/Cargo.toml", "content": ""}"#);
/// // A session takes it with `SessionBuilder::gate`.
/// let execution = run(&registry, &call, &cx, &RunOptions::new().with_gate(ManifestGate)).await;
/// let denial = "The call of write_file was denied: a maintainer changes the manifest";
/// assert_eq!(execution.result.text(), denial);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Gate: fmt::Debug + Send + Sync {
    /// Returns the name of this step of a judgement, such as `grant`. By default `gate`.
    fn name(&self) -> &'static str {
        "gate"
    }

    /// Returns the verdict on one call.
    ///
    /// A session has each call judged twice: when it is prepared, and right before it runs, since another call of the
    /// same round may have changed files in between. The second time, a denial still refuses the call, and a question
    /// refuses the call unless a user has approved it. Effects of the gate itself, such as a backup of files that the call
    /// may change, belong in [`before_run`](Self::before_run).
    async fn check(&self, call: &PreparedCall) -> Verdict;

    /// Prepares for a call that is about to run. Has no effect by default.
    ///
    /// A session calls it once per call that runs, in the order of the gates, after the last judgement and the checkpoint
    /// of the workspace. The call waits for it. Stopping the turn drops the future, and the call does not run.
    async fn before_run(&self, call: &PreparedCall) {
        let _ = call;
    }

    /// Returns the gate for the calls of a subagent. It must not allow anything that this gate does not. `None`, the
    /// default, selects this gate.
    ///
    /// # Errors
    ///
    /// The reason why the subagent is refused, as text for the model.
    fn for_subagent(&self, subagent: &Delegate<'_>) -> Result<Option<Arc<dyn Gate>>, String> {
        let _ = subagent;
        Ok(None)
    }

    /// Returns the authority that the gate enforces, such as a grant, for the record of a session. `None` by default.
    fn authority(&self) -> Option<Value> {
        None
    }

    /// Returns the reason why the run must end because of the effects of a call that ran. `None` by default.
    ///
    /// The model reads the reason with the result of the call. The run fails with it once all calls of its round have
    /// ended.
    async fn stop_after(&self, call: &PreparedCall) -> Option<String> {
        let _ = call;
        None
    }

    /// Returns the reason why a run that is about to end must fail, such as changes by background commands. `None` by
    /// default.
    ///
    /// Called when the model has answered without a tool call.
    async fn stop_at_end(&self) -> Option<String> {
        None
    }

    /// Observes the result of a call that ran. Has no effect by default.
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
    /// Id of its session.
    pub session: &'a str,
    /// Its permissions: `worker` for the permissions of the session, or `explorer` for one that must not change files.
    pub role: &'a str,
    /// Type that the application defined, if it has one.
    pub kind: Option<&'a str>,
    /// Its first task.
    pub task: &'a str,
    /// Its model.
    pub model: &'a str,
}

impl<'a> Delegate<'a> {
    /// Creates the description of a subagent with the permissions of the session, without a type, a task and a model.
    #[must_use]
    pub fn new(name: &'a str, session: &'a str) -> Self {
        Self { name, session, role: "worker", kind: None, task: "", model: "" }
    }

    setters! {
        /// Sets the permissions: `worker` or `explorer`.
        pub fn with_role(role: &'a str) => role = role;
        /// Sets the type.
        pub fn with_kind(kind: Option<&'a str>) => kind = kind;
        /// Sets the first task.
        pub fn with_task(task: &'a str) => task = task;
        /// Sets the model.
        pub fn with_model(model: &'a str) => model = model;
    }
}

/// Returns the judgement of a chain, which ends at the first denial.
///
/// A call that runs [outside of the sandbox](SandboxSide::Outside) always needs an approval, unless it is denied. A
/// gate that allows a command by its words allows it only in the sandbox.
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

/// Returns the question about a call that runs outside of the sandbox. Hooks cannot answer it.
#[must_use]
pub fn outside_sandbox() -> Verdict {
    Verdict::ask("it runs outside of the sandbox").with_rule("outside of the sandbox")
}

/// Returns the reason to refuse a call after its approval, because `path` no longer has the location that it had then.
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
