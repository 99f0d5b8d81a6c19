//! State of each open call: prepared, approved, running.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_llm::Fingerprint;
use pintle_tools::ToolError;
use pintle_tools::gate::Judgement;
use pintle_tools::pipeline::PreparedCall;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Driver;
use super::staged_call::{Asked, Judged, Released, StagedCall};
use crate::approval::ApprovalRequest;
use crate::protocol::{CallKey, ChangedArguments, HookAdditions, InputKind, Preparation, Principal, Timer};

/// Result of preparing a call.
#[derive(Debug)]
pub(super) struct CallPreparationResult {
    /// Judgement of the gates.
    pub(super) judgement: Judgement,
    pub(super) result: Result<StagedCall<Judged>, ToolError>,
    /// Arguments that a hook changed.
    pub(super) changed: Option<ChangedArguments>,
    /// Context and stop reason of the hooks.
    pub(super) additions: HookAdditions,
}

impl From<ToolError> for CallPreparationResult {
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

impl CallPreparationResult {
    /// Returns the preparation for the machine.
    pub(super) fn preparation(&self) -> Preparation {
        match &self.result {
            Ok(judged) => judged.preparation(),
            Err(error) => Preparation::Refused { error: error.kind(), message: error.for_model().to_owned() },
        }
    }
}

/// State of one call.
#[derive(Debug)]
enum CallSlot {
    /// Being prepared. Dropping the guard ends the preparation.
    Preparing { _cancel: DropGuard },
    /// Judged; it may need approval.
    Judged(Box<StagedCall<Judged>>),
    /// Waiting for a decision.
    Asked(Box<StagedCall<Asked>>),
    /// Approved.
    Released(Box<StagedCall<Released>>),
    /// Running. The token stops it.
    Running(CancellationToken),
}

impl CallSlot {
    /// Returns the request that waits for a decision.
    fn pending(&self) -> Option<&Arc<ApprovalRequest>> {
        match self {
            Self::Asked(call) => Some(call.request()),
            Self::Preparing { .. } | Self::Judged(_) | Self::Released(_) | Self::Running(_) => None,
        }
    }
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
    pub(super) fn set_prepared(&mut self, key: CallKey, result: Result<StagedCall<Judged>, ToolError>) {
        if !matches!(self.slots.get(&key), Some(CallSlot::Preparing { .. })) {
            return;
        }
        match result {
            Ok(judged) => {
                self.slots.insert(key, CallSlot::Judged(Box::new(judged)));
            }
            Err(_) => {
                self.slots.remove(&key);
            }
        }
    }

    /// Moves a prepared call that needs approval to the pending ones. Returns its request and the token that fires when
    /// the decision is no longer needed; `None` if the call needs no approval.
    pub(super) fn set_pending(&mut self, key: CallKey) -> Option<(Arc<ApprovalRequest>, CancellationToken)> {
        let (call, asked) = self.take_judged(key, true)?.ask()?;
        let request = Arc::clone(call.request());
        self.slots.insert(key, CallSlot::Asked(Box::new(call)));
        Some((request, asked))
    }

    /// Removes and returns the judged call with this key, if it needs approval or, respectively, does not.
    fn take_judged(&mut self, key: CallKey, needs_approval: bool) -> Option<StagedCall<Judged>> {
        let Some(CallSlot::Judged(call)) = self.slots.get(&key) else { return None };
        if call.request().is_some() != needs_approval {
            return None;
        }
        let Some(CallSlot::Judged(call)) = self.slots.remove(&key) else { return None };
        Some(*call)
    }

    /// Approves a prepared call that was approved before the session was resumed.
    pub(super) fn confirm(&mut self, key: CallKey, by: Option<Principal>) {
        if let Some(call) = self.take_judged(key, true).and_then(|call| call.confirm(by)) {
            self.slots.insert(key, CallSlot::Released(Box::new(call)));
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
        if let Some(CallSlot::Asked(call)) = self.slots.remove(&key)
            && approved
        {
            self.slots.insert(key, CallSlot::Released(Box::new(call.approve(by))));
        }
        Some(key)
    }

    /// Removes the pending call with this id and fingerprint, whose arguments a decision changes. It remains available for its
    /// next preparation. Returns its key, or `None` without such a call.
    pub(super) fn change(&mut self, call_id: &str, exactly: Fingerprint) -> Option<CallKey> {
        let key = self.find_pending(call_id, exactly)?;
        if let Some(CallSlot::Asked(call)) = self.slots.remove(&key) {
            let (call, _) = call.into_parts();
            self.changed.insert(key, call);
        }
        Some(key)
    }

    /// Removes and returns a call that a decision has [changed](Self::change), as it was shown.
    pub(super) fn take_changed(&mut self, key: CallKey) -> Option<PreparedCall> {
        self.changed.remove(&key)
    }

    /// Returns the key of the pending call with this id and fingerprint.
    fn find_pending(&self, call_id: &str, exactly: Fingerprint) -> Option<CallKey> {
        self.slots.iter().find_map(|(key, slot)| {
            let request = slot.pending()?;
            (request.call_id == call_id && request.fingerprint == exactly).then_some(*key)
        })
    }

    /// Returns whether the call with this id waits for a decision.
    pub(super) fn is_pending(&self, call_id: &str) -> bool {
        self.pending().any(|request| request.call_id == call_id)
    }

    /// Moves a call that may run to the running ones. Returns it and the token that stops it; `None` if there is no such
    /// call.
    pub(super) fn run(&mut self, key: CallKey) -> Option<(StagedCall<Released>, CancellationToken)> {
        let call = match self.take_judged(key, false) {
            Some(call) => call.release()?,
            None => self.take_released(key)?,
        };
        let cancel = CancellationToken::new();
        self.slots.insert(key, CallSlot::Running(cancel.clone()));
        Some((call, cancel))
    }

    fn take_released(&mut self, key: CallKey) -> Option<StagedCall<Released>> {
        if !matches!(self.slots.get(&key), Some(CallSlot::Released(_))) {
            return None;
        }
        let Some(CallSlot::Released(call)) = self.slots.remove(&key) else { return None };
        Some(*call)
    }

    /// Returns whether a call may start without a barrier: the call may run twice, or it declares its changes, and the
    /// declaration passes the barrier. An unknown call needs the barrier.
    pub(super) fn may_start_unsynced(&self, key: CallKey) -> bool {
        let may = |call: &PreparedCall| call.is_repeatable() || call.declares_changes();
        match self.slots.get(&key) {
            Some(CallSlot::Judged(call)) => may(call.call()),
            Some(CallSlot::Asked(call)) => may(call.call()),
            Some(CallSlot::Released(call)) => may(call.call()),
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
        if matches!(self.slots.get(&key), Some(CallSlot::Asked(_))) {
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
        self.slots.values().filter_map(CallSlot::pending)
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
    use pintle_tools::ToolErrorKind;

    use super::*;
    use crate::driver::staged_call::tests::{allowed, gated};
    use crate::protocol::ModelCallId;

    const KEY: CallKey = CallKey { model_call: ModelCallId(1), index: 0 };

    #[tokio::test]
    async fn unwanted_preparations_are_cancelled_and_dropped() {
        for is_wanted in [true, false] {
            let mut slots = CallSlots::default();
            let cancel = slots.prepare(KEY);
            if !is_wanted {
                slots.keep_running();
            }
            assert_eq!(cancel.is_cancelled(), !is_wanted);
            slots.set_prepared(KEY, Ok(allowed().await));
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
        let (call, cancel) = slots.run(KEY).unwrap();
        let (_, Released { approved, approved_by, .. }) = call.into_parts();
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
