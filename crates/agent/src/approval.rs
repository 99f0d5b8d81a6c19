//! Approval of tool calls (design, sections 4 and 7).

mod function;

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use pintle_env::setters;
use pintle_llm::Fingerprint;
use pintle_tools::pipeline::DryRun;
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, SandboxSide};
use serde_json::{Map, Value};

pub use self::function::{
    ApprovalReceiver, ApproverFn, ChannelApprover, PendingDecision, approver_channel, approver_fn,
};
use crate::protocol::{Decision, Principal, SubagentOrigin};

/// A tool call that waits for a decision: its exact arguments and expected effects.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The model's id of the call, unique within the session.
    pub call_id: String,
    /// Name of the tool, as the model calls it.
    pub tool_name: String,
    /// Canonical kind of the tool, such as `shell` for `Bash`.
    pub tool_kind: String,
    /// Arguments after all repairs.
    pub arguments: Value,
    /// Effect of the tool.
    pub effect: Effect,
    /// Side of the sandbox on which the command would run; `None` without a sandbox, and for calls that are not
    /// commands.
    pub sandbox: Option<SandboxSide>,
    /// Absolute paths of the files that it may change.
    pub writes: Vec<PathBuf>,
    /// Reason why a decision is needed.
    pub reason: String,
    /// Rules that together match exactly calls like this one. The user may add them with the decision.
    pub suggested_rules: Vec<String>,
    /// Changes that the call would make to files now, where a dry run is possible.
    pub dry_run: Option<DryRun>,
    /// Fingerprint of the call. A decision is bound to it and holds once.
    pub fingerprint: Fingerprint,
    /// Subagent that makes the call; `None` for the session that the embedding application built.
    pub origin: Option<SubagentOrigin>,
}

impl ApprovalRequest {
    /// Creates a request of a tool that runs programs, without arguments, a reason, written files or a dry run. For tests of an
    /// [`Approver`]; sessions create their own requests.
    #[must_use]
    pub fn new(call_id: impl Into<String>, tool_name: impl Into<String>, fingerprint: Fingerprint) -> Self {
        let tool_name = tool_name.into();
        Self {
            call_id: call_id.into(),
            tool_kind: tool_name.clone(),
            tool_name,
            arguments: Value::Object(Map::new()),
            effect: Effect::Execute,
            sandbox: None,
            writes: Vec::new(),
            reason: String::new(),
            suggested_rules: Vec::new(),
            dry_run: None,
            fingerprint,
            origin: None,
        }
    }

    /// Creates the request for a prepared call, without a reason and a dry run.
    #[must_use]
    pub fn for_call(call: &PreparedCall) -> Self {
        let mut request = Self::new(call.call_id(), call.name(), call.fingerprint())
            .with_effect(call.effect())
            .with_arguments(call.arguments().clone());
        request.tool_kind = call.kind().to_owned();
        request.writes = call.writes().to_vec();
        request.sandbox = call.sandbox();
        request
    }

    setters! {
        /// Sets the effect of the tool.
        pub fn with_effect(effect: Effect) => effect = effect;
        /// Sets the arguments.
        pub fn with_arguments(arguments: Value) => arguments = arguments;
        /// Sets the reason why a decision is needed.
        pub fn with_reason(reason: impl Into<String>) => reason = reason.into();
        /// Sets the result of the dry run.
        pub fn with_dry_run(dry_run: Option<DryRun>) => dry_run = dry_run;
        /// Sets the subagent that makes the call.
        pub fn with_origin(origin: Option<SubagentOrigin>) => origin = origin;
    }
}

/// Decides on the calls that a gate asks about. Implemented by embedding applications.
///
/// Several calls may wait concurrently. The future is dropped when the decision is no longer needed: after the turn was
/// stopped, after the time-out, or after a decision through [`SessionHandle::decide`](crate::SessionHandle::decide). A
/// panic counts as a denial.
///
/// [`approver_fn`] makes one from a closure, and [`approver_channel`] one that sends the calls to another task.
///
/// ```
/// use pintle_agent::{ApprovalRequest, Approver, Decision, async_trait};
/// use pintle_llm::Fingerprint;
/// use pintle_tools::Effect;
///
/// /// Approves changes of files, and no commands.
/// #[derive(Debug)]
/// struct FilesOnly;
///
/// #[async_trait]
/// impl Approver for FilesOnly {
///     async fn decide(&self, request: &ApprovalRequest) -> Decision {
///         match request.effect {
///             Effect::Read | Effect::Write => Decision::Approve,
///             _ => Decision::Deny { reason: Some(format!("{} is not approved here", request.tool_name)) },
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let request = ApprovalRequest::new("call_1", "write_file", Fingerprint::from_bytes(b"call_1"));
/// assert_eq!(FilesOnly.decide(&request.with_effect(Effect::Write)).await, Decision::Approve);
/// # }
/// ```
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync {
    /// Decides on one call.
    async fn decide(&self, request: &ApprovalRequest) -> Decision;

    /// Returns the principal that decides, for the record. The default is `None`.
    fn principal(&self) -> Option<Principal> {
        None
    }
}

const _: fn(&dyn Approver) = |_| {};

#[cfg(test)]
mod tests;
