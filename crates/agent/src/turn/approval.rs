//! Requests for approval: their five endings, and the memory of denials.

use pintle_llm::Fingerprint;
use pintle_tools::ToolErrorKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::round::Stage;
use super::{Machine, Phase};
use crate::protocol::{Action, ApprovalEnding, CallKey, EventKind, PolicyChange, Principal, SessionState};

/// Calls that were denied, by tool and arguments, until the user's next message or a change of the rules. Without this,
/// the model would request the same call again and again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Denials(Vec<Fingerprint>);

impl Denials {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Identifies all calls of this tool with these arguments.
pub(super) fn content(tool_name: &str, arguments: &Value) -> Fingerprint {
    Fingerprint::from_bytes(tool_name.as_bytes()).chain(Fingerprint::from_display(arguments))
}

/// Decision on a call, or the expiry of its request.
#[derive(Clone, Debug)]
pub(super) struct ApprovalResult {
    pub(super) ending: ApprovalEnding,
    /// Reason of a denial, for the model.
    pub(super) reason: Option<String>,
    pub(super) by: Option<Principal>,
}

impl ApprovalResult {
    /// Returns the decision of a user.
    pub(super) fn decided(approved: bool, reason: Option<String>, by: Option<Principal>) -> Self {
        let ending = if approved { ApprovalEnding::Allowed } else { ApprovalEnding::Denied };
        Self { ending, reason, by }
    }

    /// Returns the end of a request that timed out.
    pub(super) fn expired() -> Self {
        let reason = Some("nobody decided in time".to_owned());
        Self { ending: ApprovalEnding::Expired, reason, by: None }
    }

    pub(super) fn event(&self, call_id: &str) -> Action {
        Action::emit(EventKind::ApprovalDecided {
            call_id: call_id.to_owned(),
            approved: self.ending == ApprovalEnding::Allowed,
            ending: Some(self.ending),
            reason: self.reason.clone(),
            by: self.by.clone(),
        })
    }
}

/// Returns the event for a request that ends without a decision.
pub(super) fn ended(call_id: &str, ending: ApprovalEnding) -> Action {
    ApprovalResult { ending, reason: None, by: None }.event(call_id)
}

impl Machine {
    pub(super) fn approval_decided(&mut self, key: CallKey, taken: ApprovalResult, out: &mut Vec<Action>) {
        if self.take_decision(key, taken, out) {
            self.advance_round(out);
        }
    }

    /// Applies the decision on a call. Returns whether it was expected.
    pub(super) fn take_decision(
        &mut self,
        key: CallKey,
        taken: ApprovalResult,
        out: &mut Vec<Action>,
    ) -> bool {
        let Phase::RunningTools(round) = &mut self.phase else { return false };
        let Some(state) = round.get_mut(key) else { return false };
        let Stage::Asking(plan) = &state.stage else { return false };
        let plan = plan.clone();
        out.push(taken.event(&state.call.id));
        if taken.ending == ApprovalEnding::Allowed {
            state.approved = true;
            state.approved_by = taken.by;
            state.stage = Stage::Ready(plan);
        } else {
            self.denials.0.extend(state.asked);
            let why = taken.reason.map_or_else(String::new, |reason| format!(": {reason}"));
            let message = format!("The call of {} was denied{why}", state.call.name);
            state.refuse(ToolErrorKind::Denied, &message, out);
        }
        true
    }

    /// Applies an approval with changed arguments: the call is prepared and judged again.
    pub(super) fn call_changed(
        &mut self,
        key: CallKey,
        arguments: Value,
        by: Option<Principal>,
        out: &mut Vec<Action>,
    ) {
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        if !matches!(state.stage, Stage::Asking(_)) {
            return;
        }
        let superseded = ApprovalResult { ending: ApprovalEnding::Superseded, reason: None, by: by.clone() };
        out.push(superseded.event(&state.call.id));
        state.change(arguments, by);
        out.push(state.prepare(key));
    }

    /// Returns whether a call of this tool with these arguments was denied, and the denial still applies.
    pub(crate) fn was_denied(&self, key: CallKey, arguments: &Value) -> bool {
        let Phase::RunningTools(round) = &self.phase else { return false };
        let Some(state) = round.get(key) else { return false };
        // A user who changes the arguments of a call has decided on it.
        !state.decided && self.denials.0.contains(&content(&state.call.name, arguments))
    }

    pub(super) fn decision_refused(
        &self,
        call_id: String,
        approved: bool,
        reason: String,
        out: &mut Vec<Action>,
    ) {
        // No event may follow the end of the session.
        if self.state != SessionState::Closed {
            out.push(Action::emit(EventKind::ApprovalLate { call_id, approved, reason }));
        }
    }

    /// Reports a change of the session's permissions, and forgets the denials.
    pub(super) fn policy_changed(&mut self, change: PolicyChange, out: &mut Vec<Action>) {
        self.denials.clear();
        // No event may follow the end of the session.
        if self.state != SessionState::Closed {
            out.push(Action::emit(EventKind::PolicyChanged(change)));
        }
    }

    /// Returns whether a decision on this call may still be needed.
    pub(crate) fn may_need_decision(&self, call_id: &str) -> bool {
        let Phase::RunningTools(round) = &self.phase else { return false };
        let state = round.calls.iter().find(|state| state.call.id == call_id);
        state.is_some_and(|state| matches!(state.stage, Stage::Preparing | Stage::Asking(_)))
    }
}
