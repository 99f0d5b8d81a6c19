//! State of each open call: prepared, approved, running.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_llm::Fingerprint;
use pintle_tools::ToolError;
use pintle_tools::gate::{Judgement, JudgementStep};
use pintle_tools::pipeline::PreparedCall;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Driver;
use crate::approval::ApprovalRequest;
use crate::protocol::{
    CallKey, CallPlan, ChangedArguments, HookAdditions, InputKind, Preparation, Principal, Timer,
};

/// A call that may run, at once or after approval.
#[derive(Debug)]
pub(super) struct ReadyCall {
    pub(super) call: PreparedCall,
    /// Request for approval, if a gate asks for it.
    pub(super) request: Option<Arc<ApprovalRequest>>,
    /// Answer of a hook to a question that was asked only because no rule names the call.
    pub(super) answer: Option<JudgementStep>,
}

/// A call that may start.
#[derive(Debug)]
pub(super) struct Released {
    pub(super) call: PreparedCall,
    /// Fingerprint that was approved, if approval was needed.
    pub(super) approved: Option<Fingerprint>,
    /// Principal that approved it, if known.
    pub(super) approved_by: Option<Principal>,
    /// Answer of a hook that replaces an approval.
    pub(super) answer: Option<JudgementStep>,
    /// Stops it.
    pub(super) cancel: CancellationToken,
}

/// Result of preparing a call.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Judgement of the gates.
    pub(super) judgement: Judgement,
    pub(super) result: Result<ReadyCall, ToolError>,
    /// Arguments that a hook changed.
    pub(super) changed: Option<ChangedArguments>,
    /// Context and stop reason of the hooks.
    pub(super) additions: HookAdditions,
}

impl From<ToolError> for Prepared {
    /// Returns the result of a call that no gate has judged.
    fn from(error: ToolError) -> Self {
        Self {
            judgement: Judgement::new(),
            result: Err(error),
            changed: None,
            additions: HookAdditions::default(),
        }
    }
}

/// Converts the result of preparing a call for the machine.
pub(super) fn preparation(result: &Result<ReadyCall, ToolError>) -> Preparation {
    let ReadyCall { call, request, .. } = match result {
        Ok(ready) => ready,
        Err(error) => {
            return Preparation::Refused { error: error.kind(), message: error.for_model().to_owned() };
        }
    };
    let plan = CallPlan {
        effect: call.effect(),
        repeatable: call.is_repeatable(),
        declares_changes: call.declares_changes(),
        writes: call.targets().to_vec(),
        repairs: call.repairs().to_vec(),
    };
    match request {
        None => Preparation::Ready(plan),
        Some(request) => Preparation::Ask {
            plan,
            arguments: request.arguments.clone(),
            reason: request.reason.clone(),
            fingerprint: request.fingerprint,
            sandbox: request.sandbox,
        },
    }
}

/// State of one call.
#[derive(Debug)]
enum CallSlot {
    /// Being prepared. Dropping the guard ends the preparation.
    Preparing { _cancel: DropGuard },
    /// Prepared.
    Ready(Box<ReadyCall>),
    /// Waiting for a decision. Dropping the guard ends the approver's work.
    Pending { call: Box<PreparedCall>, request: Arc<ApprovalRequest>, _asked: DropGuard },
    /// Approved; it may run once, with exactly these arguments.
    Approved { call: Box<PreparedCall>, fingerprint: Fingerprint, by: Option<Principal> },
    /// Running. The token stops it.
    Running(CancellationToken),
}

/// The open calls of a round.
#[derive(Debug, Default)]
pub(super) struct CallSlots {
    slots: BTreeMap<CallKey, CallSlot>,
    /// Calls whose arguments a decision has changed, as they were shown. They are not prepared again yet.
    changed: BTreeMap<CallKey, PreparedCall>,
}

impl CallSlots {
    /// Adds a call that is being prepared. The token fires when it will not run.
    pub(super) fn prepare(&mut self, key: CallKey) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.slots.insert(key, CallSlot::Preparing { _cancel: cancel.clone().drop_guard() });
        cancel
    }

    /// Stores a prepared call, or removes one that was refused. Does nothing for a call that is no longer needed.
    pub(super) fn set_prepared(&mut self, key: CallKey, result: Result<ReadyCall, ToolError>) {
        if !matches!(self.slots.get(&key), Some(CallSlot::Preparing { .. })) {
            return;
        }
        match result {
            Ok(ready) => {
                self.slots.insert(key, CallSlot::Ready(Box::new(ready)));
            }
            Err(_) => {
                self.slots.remove(&key);
            }
        }
    }

    /// Moves a prepared call that needs approval to the pending ones. Returns its request and the token that fires when
    /// the decision is no longer needed; `None` if the call needs no approval.
    pub(super) fn set_pending(&mut self, key: CallKey) -> Option<(Arc<ApprovalRequest>, CancellationToken)> {
        let Some(CallSlot::Ready(ready)) = self.slots.get(&key) else { return None };
        let (call, request) = (Box::new(ready.call.clone()), ready.request.clone()?);
        let asked = CancellationToken::new();
        let guard = asked.clone().drop_guard();
        let slot = CallSlot::Pending { call, request: Arc::clone(&request), _asked: guard };
        self.slots.insert(key, slot);
        Some((request, asked))
    }

    /// Approves a prepared call that was approved before the session was resumed.
    pub(super) fn confirm(&mut self, key: CallKey, by: Option<Principal>) {
        if let Some(CallSlot::Ready(ready)) = self.slots.get(&key)
            && let Some(request) = &ready.request
        {
            let (call, fingerprint) = (Box::new(ready.call.clone()), request.fingerprint);
            self.slots.insert(key, CallSlot::Approved { call, fingerprint, by });
        }
    }

    /// Applies a decision to the pending call with this id and fingerprint. Returns its key, or `None` without such a call.
    pub(super) fn decide(
        &mut self,
        call_id: &str,
        exactly: Fingerprint,
        approved: bool,
        by: Option<Principal>,
    ) -> Option<CallKey> {
        let key = self.find_pending(call_id, exactly)?;
        if let Some(CallSlot::Pending { call, .. }) = self.slots.remove(&key)
            && approved
        {
            self.slots.insert(key, CallSlot::Approved { call, fingerprint: exactly, by });
        }
        Some(key)
    }

    /// Removes the pending call with this id and fingerprint, whose arguments a decision changes. It remains available for its
    /// next preparation. Returns its key, or `None` without such a call.
    pub(super) fn change(&mut self, call_id: &str, exactly: Fingerprint) -> Option<CallKey> {
        let key = self.find_pending(call_id, exactly)?;
        if let Some(CallSlot::Pending { call, .. }) = self.slots.remove(&key) {
            self.changed.insert(key, *call);
        }
        Some(key)
    }

    /// Removes and returns a call that a decision has [changed](Self::change), as it was shown.
    pub(super) fn take_changed(&mut self, key: CallKey) -> Option<PreparedCall> {
        self.changed.remove(&key)
    }

    /// Returns the key of the pending call with this id and fingerprint.
    fn find_pending(&self, call_id: &str, exactly: Fingerprint) -> Option<CallKey> {
        self.slots.iter().find_map(|(key, slot)| match slot {
            CallSlot::Pending { request, .. }
                if request.call_id == call_id && request.fingerprint == exactly =>
            {
                Some(*key)
            }
            CallSlot::Preparing { .. }
            | CallSlot::Ready(_)
            | CallSlot::Pending { .. }
            | CallSlot::Approved { .. }
            | CallSlot::Running(_) => None,
        })
    }

    /// Returns whether the call with this id waits for a decision.
    pub(super) fn is_pending(&self, call_id: &str) -> bool {
        self.pending().any(|request| request.call_id == call_id)
    }

    /// Moves a call that may run to the running ones. Returns `None` if there is no such call.
    pub(super) fn run(&mut self, key: CallKey) -> Option<Released> {
        let (call, approved, approved_by, answer) = match self.slots.remove(&key)? {
            CallSlot::Ready(ready) if ready.request.is_none() => (ready.call, None, None, ready.answer),
            CallSlot::Approved { call, fingerprint, by } => (*call, Some(fingerprint), by, None),
            other @ (CallSlot::Preparing { .. }
            | CallSlot::Ready(_)
            | CallSlot::Pending { .. }
            | CallSlot::Running(_)) => {
                self.slots.insert(key, other);
                return None;
            }
        };
        let cancel = CancellationToken::new();
        self.slots.insert(key, CallSlot::Running(cancel.clone()));
        Some(Released { call, approved, approved_by, answer, cancel })
    }

    /// Returns whether a call may start without a barrier: the call may run twice, or it declares its changes, and the
    /// declaration passes the barrier. An unknown call needs the barrier.
    pub(super) fn may_start_unsynced(&self, key: CallKey) -> bool {
        let may = |call: &PreparedCall| call.is_repeatable() || call.declares_changes();
        match self.slots.get(&key) {
            Some(CallSlot::Ready(ready)) => may(&ready.call),
            Some(CallSlot::Pending { call, .. } | CallSlot::Approved { call, .. }) => may(call),
            Some(CallSlot::Preparing { .. } | CallSlot::Running(_)) | None => false,
        }
    }

    /// Stops a running call.
    pub(super) fn stop(&self, key: CallKey) {
        if let Some(CallSlot::Running(cancel)) = self.slots.get(&key) {
            cancel.cancel();
        }
    }

    /// Removes a call.
    pub(super) fn remove(&mut self, key: CallKey) {
        self.slots.remove(&key);
    }

    /// Removes a call that waits for a decision.
    pub(super) fn remove_pending(&mut self, key: CallKey) {
        if matches!(self.slots.get(&key), Some(CallSlot::Pending { .. })) {
            self.slots.remove(&key);
        }
    }

    /// Removes all calls that do not run.
    pub(super) fn keep_running(&mut self) {
        self.changed.clear();
        self.slots.retain(|_, slot| matches!(slot, CallSlot::Running(_)));
    }

    /// Removes all calls.
    pub(super) fn clear(&mut self) {
        self.changed.clear();
        self.slots.clear();
    }

    /// Returns the requests that wait for a decision, in the order of their calls.
    pub(super) fn pending(&self) -> impl Iterator<Item = &Arc<ApprovalRequest>> {
        self.slots.values().filter_map(|slot| match slot {
            CallSlot::Pending { request, .. } => Some(request),
            CallSlot::Preparing { .. }
            | CallSlot::Ready(_)
            | CallSlot::Approved { .. }
            | CallSlot::Running(_) => None,
        })
    }

    /// Returns whether these are the requests that wait for a decision.
    pub(super) fn pending_are(&self, requests: &[Arc<ApprovalRequest>]) -> bool {
        self.pending().count() == requests.len()
            && self.pending().all(|pending| requests.iter().any(|request| request.call_id == pending.call_id))
    }
}

impl Driver {
    /// Removes a request for approval and its timer.
    pub(super) fn withdraw_approval(&mut self, call: CallKey) {
        self.calls.remove_pending(call);
        self.timers.cancel(Timer::Approval(call));
    }

    /// Removes the calls that have not started and will not.
    pub(super) fn drop_waiting_calls(&mut self) {
        self.calls.keep_running();
        self.timers.cancel_approvals();
    }

    /// Removes the state that an input makes obsolete.
    pub(super) fn drop_obsolete(&mut self, kind: &InputKind) {
        match kind {
            InputKind::ModelReplied { .. } | InputKind::ModelFailed { .. } => self.model = None,
            InputKind::ApprovalDecided { call, .. }
            | InputKind::CallChanged { call, .. }
            | InputKind::TimerFired { timer: Timer::Approval(call) } => self.withdraw_approval(*call),
            InputKind::TimerFired { timer: timer @ Timer::Run(_) } => self.timers.cancel(*timer),
            InputKind::ToolFinished { call, .. } | InputKind::ToolLost { call } => self.calls.remove(*call),
            InputKind::Interrupt | InputKind::Abort | InputKind::Close => self.drop_waiting_calls(),
            InputKind::Opened { .. }
            | InputKind::Submit { .. }
            | InputKind::InputRefused { .. }
            | InputKind::SentOn { .. }
            | InputKind::EndStopped { .. }
            | InputKind::Steer { .. }
            | InputKind::FollowUp { .. }
            | InputKind::Compact
            | InputKind::Rewind { .. }
            | InputKind::CheckpointTaken { .. }
            | InputKind::Configure { .. }
            | InputKind::DecisionRefused { .. }
            | InputKind::PolicyChanged { .. }
            | InputKind::ContextLoaded { .. }
            | InputKind::ContextFailed { .. }
            | InputKind::SegmentOpened { .. }
            | InputKind::SegmentClosed { .. }
            | InputKind::ArgumentsOpened { .. }
            | InputKind::ArgumentsClosed { .. }
            | InputKind::ModelRetrying { .. }
            | InputKind::CallPrepared { .. }
            | InputKind::CallJudged { .. }
            | InputKind::ToolStarted { .. }
            | InputKind::ChangesDeclared { .. }
            | InputKind::Reconciled { .. }
            | InputKind::ChildSpawned { .. }
            | InputKind::ChildSpent { .. }
            | InputKind::ChildAccount { .. }
            | InputKind::ChildAsked { .. }
            | InputKind::BudgetGranted { .. }
            | InputKind::ChildEnded { .. }
            | InputKind::CleanedUp
            | InputKind::Unrecorded { .. }
            | InputKind::TakenUp { .. }
            | InputKind::Resumed { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;
    use pintle_llm::ToolCall;
    use pintle_tools::ToolErrorKind;
    use pintle_tools::pipeline;

    use super::*;
    use crate::profile::ProviderProfile;
    use crate::protocol::ModelCallId;

    const KEY: CallKey = CallKey { model_call: ModelCallId(1), index: 0 };

    async fn ready() -> ReadyCall {
        let tools = ProviderProfile::anthropic("m").tool_registry;
        let tool_call = ToolCall::from_raw("a", "shell", r#"{"command":"true"}"#);
        let env = MemoryEnvironment::new("/project");
        let pipeline::Preparation::Ready { call, .. } =
            pipeline::prepare(&tools, &[], &env, &tool_call).await
        else {
            panic!("it may run")
        };
        ReadyCall { call, request: None, answer: None }
    }

    async fn gated() -> ReadyCall {
        let mut ready = ready().await;
        let fingerprint = ready.call.fingerprint();
        let request = ApprovalRequest::new("a", "shell", fingerprint);
        ready.request = Some(Arc::new(request));
        ready
    }

    #[tokio::test]
    async fn unwanted_preparations_are_cancelled_and_dropped() {
        for is_wanted in [true, false] {
            let mut slots = CallSlots::default();
            let cancel = slots.prepare(KEY);
            if !is_wanted {
                slots.keep_running();
            }
            assert_eq!(cancel.is_cancelled(), !is_wanted);
            slots.set_prepared(KEY, Ok(ready().await));
            assert_eq!(slots.run(KEY).is_some(), is_wanted);
        }
    }

    #[tokio::test]
    async fn refused_call_leaves_no_slot() {
        let mut slots = CallSlots::default();
        slots.prepare(KEY);
        slots.set_prepared(KEY, Err(ToolError::new(ToolErrorKind::Denied, "no")));
        assert!(slots.slots.is_empty());
    }

    #[tokio::test]
    async fn call_runs_once_and_only_after_exact_approval() {
        let mut slots = CallSlots::default();
        slots.prepare(KEY);
        slots.set_prepared(KEY, Ok(gated().await));
        assert!(slots.run(KEY).is_none(), "nobody was asked");
        let (request, asked) = slots.set_pending(KEY).unwrap();
        assert!(slots.run(KEY).is_none(), "nobody has decided");
        assert_eq!(slots.decide("a", Fingerprint::from_bytes(b"another"), true, None), None);
        assert_eq!(slots.decide("b", request.fingerprint, true, None), None);
        assert!(slots.pending_are(&[Arc::clone(&request)]) && !asked.is_cancelled());
        assert_eq!(slots.decide("a", request.fingerprint, true, Some(Principal::new("x"))), Some(KEY));
        assert!(slots.pending_are(&[]) && asked.is_cancelled());
        assert_eq!(slots.decide("a", request.fingerprint, false, None), None, "the first decision counts");
        let Released { approved, approved_by, cancel, .. } = slots.run(KEY).unwrap();
        assert_eq!((approved, approved_by), (Some(request.fingerprint), Some(Principal::new("x"))));
        assert!(slots.run(KEY).is_none());
        slots.stop(KEY);
        assert!(cancel.is_cancelled());
    }

    #[tokio::test]
    async fn changed_call_remains_for_its_next_preparation() {
        for stopped in [false, true] {
            let mut slots = CallSlots::default();
            slots.prepare(KEY);
            slots.set_prepared(KEY, Ok(gated().await));
            let (request, _) = slots.set_pending(KEY).unwrap();
            assert_eq!(slots.change("a", Fingerprint::from_bytes(b"another")), None);
            assert_eq!(slots.change("a", request.fingerprint), Some(KEY));
            if stopped {
                slots.keep_running();
            }
            assert_eq!(slots.take_changed(KEY).is_some(), !stopped);
            assert!(slots.take_changed(KEY).is_none() && slots.slots.is_empty());
        }
    }

    #[tokio::test]
    async fn denied_call_leaves_no_slot() {
        let mut slots = CallSlots::default();
        slots.prepare(KEY);
        slots.set_prepared(KEY, Ok(gated().await));
        let (request, _) = slots.set_pending(KEY).unwrap();
        assert_eq!(slots.decide("a", request.fingerprint, false, None), Some(KEY));
        assert!(slots.slots.is_empty());
    }
}
