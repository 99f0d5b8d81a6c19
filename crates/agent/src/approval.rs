//! A person, or whoever stands for one, who decides on calls (design, sections 4 and 7).

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use pintle_llm::Fingerprint;
use pintle_tools::Effect;
use pintle_tools::gate::Rehearsal;
use pintle_tools::pipeline::PreparedCall;
use serde_json::Value;

use crate::protocol::{Decision, SubagentOrigin};

/// One call that waits for a decision: what exactly would run, and what it would do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The model's id of the call; no other call of the session has it.
    pub call_id: String,
    /// The tool, as the model calls it.
    pub tool_name: String,
    /// The tool's canonical kind, such as `shell` for one that is called `Bash`.
    pub tool_kind: String,
    /// The arguments that it would run with.
    pub arguments: Value,
    /// What it does to the world.
    pub effect: Effect,
    /// The files that it may change, absolute.
    pub writes: Vec<PathBuf>,
    /// Why somebody is asked.
    pub reason: String,
    /// What it would change as things are, where that can be found out.
    pub rehearsal: Option<Rehearsal>,
    /// What tells this call from every other. A decision is bound to it and holds once.
    pub fingerprint: Fingerprint,
    /// The subagent whose call it is; `None` for the session that the host made.
    pub origin: Option<SubagentOrigin>,
}

impl ApprovalRequest {
    /// A request about a call of this tool, without a reason and with nothing to show but the arguments. Sessions make
    /// their own; this is for whoever tests an [`Approver`].
    #[must_use]
    pub fn new(
        call_id: impl Into<String>,
        tool_name: impl Into<String>,
        effect: Effect,
        arguments: Value,
        fingerprint: Fingerprint,
    ) -> Self {
        let tool_name = tool_name.into();
        Self {
            call_id: call_id.into(),
            tool_kind: tool_name.clone(),
            tool_name,
            arguments,
            effect,
            writes: Vec::new(),
            reason: String::new(),
            rehearsal: None,
            fingerprint,
            origin: None,
        }
    }

    /// What is asked about this call, but for the reason and the rehearsal.
    #[must_use]
    pub fn of(call: &PreparedCall) -> Self {
        let (name, arguments) = (call.name(), call.arguments().clone());
        let mut request = Self::new(call.call_id(), name, call.effect(), arguments, call.fingerprint());
        request.tool_kind = call.kind().to_owned();
        request.writes = call.writes().to_vec();
        request
    }

    /// With why somebody is asked.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// With what it would change.
    #[must_use]
    pub fn with_rehearsal(mut self, rehearsal: Option<Rehearsal>) -> Self {
        self.rehearsal = rehearsal;
        self
    }

    /// With the subagent that makes the call.
    #[must_use]
    pub fn with_origin(mut self, origin: Option<SubagentOrigin>) -> Self {
        self.origin = origin;
        self
    }
}

/// Decides on the calls that a gate asks about. Implemented by hosts.
///
/// Several calls may wait at the same time. When a decision is not wanted any more, because the turn was stopped, the
/// time ran out or somebody else decided, the future is dropped. One that panics counts as a denial.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync {
    /// The decision on one call.
    async fn decide(&self, request: &ApprovalRequest) -> Decision;
}

const _: fn(&dyn Approver) = |_| {};

#[cfg(test)]
mod tests;
