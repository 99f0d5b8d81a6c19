//! What is kept of the calls of a round between their steps.

use std::collections::HashMap;
use std::sync::Arc;

use pintle_llm::Fingerprint;
use pintle_tools::pipeline::PreparedCall;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Driver;
use super::approval::Asking;
use crate::approval::ApprovalRequest;
use crate::id::CallKey;
use crate::turn::{InputKind, Timer};

/// The calls that are prepared, asked about or running.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// What ends the preparation of a call.
    preparing: HashMap<CallKey, DropGuard>,
    pub(super) prepared: HashMap<CallKey, PreparedCall>,
    /// What stops a running call.
    pub(super) running: HashMap<CallKey, CancellationToken>,
    /// What is asked about calls that are prepared and not yet being asked about.
    pub(super) requests: HashMap<CallKey, Arc<ApprovalRequest>>,
    /// Calls that wait for a decision, by the model's id.
    pub(super) asking: HashMap<String, Asking>,
    /// Calls that may run once because somebody agreed to exactly this.
    pub(super) approved: HashMap<CallKey, Fingerprint>,
}

impl Calls {
    /// Fires when a call that is being prepared will not run.
    pub(super) fn preparing(&mut self, call: CallKey) -> CancellationToken {
        let unwanted = CancellationToken::new();
        self.preparing.insert(call, unwanted.clone().drop_guard());
        unwanted
    }

    /// Keeps what came of a call's preparation, unless it came too late.
    pub(super) fn prepared(
        &mut self,
        call: CallKey,
        prepared: Option<PreparedCall>,
        request: Option<Arc<ApprovalRequest>>,
    ) {
        if self.preparing.remove(&call).is_none() {
            return;
        }
        if let Some(prepared) = prepared {
            self.prepared.insert(call, prepared);
        }
        if let Some(request) = request {
            self.requests.insert(call, request);
        }
    }

    /// Tells a running call to stop.
    pub(super) fn stop(&self, call: CallKey) {
        if let Some(cancel) = self.running.get(&call) {
            cancel.cancel();
        }
    }

    /// Drops what is kept for calls that have not started.
    pub(super) fn forget_waiting(&mut self) {
        self.asking.clear();
        self.forget_prepared();
    }

    /// Drops what is kept for calls that wait for nobody's decision.
    pub(super) fn forget_prepared(&mut self) {
        self.preparing.clear();
        self.prepared.clear();
        self.requests.clear();
        self.approved.clear();
    }
}

impl Driver {
    pub(super) fn forget_approval(&mut self, call: CallKey) {
        self.calls.asking.retain(|_, asking| asking.call != call);
        self.timers.forget(Timer::Approval(call));
    }

    /// Drops what is kept for calls that have not started and will not.
    pub(super) fn forget_waiting_calls(&mut self) {
        self.calls.forget_waiting();
        self.timers.forget_calls();
    }

    /// Drops what an input makes superfluous.
    pub(super) fn forget(&mut self, kind: &InputKind) {
        match kind {
            InputKind::ModelReplied { .. } | InputKind::ModelFailed { .. } => self.model = None,
            InputKind::ApprovalDecided { call, .. } => self.forget_approval(*call),
            InputKind::TimerFired { timer: Timer::Approval(call) } => {
                self.forget_approval(*call);
                self.calls.prepared.remove(call);
                self.calls.requests.remove(call);
            }
            InputKind::TimerFired { timer: timer @ Timer::Run(_) } => self.timers.forget(*timer),
            InputKind::ToolFinished { call, .. } | InputKind::ToolLost { call } => {
                self.calls.running.remove(call);
            }
            InputKind::Interrupt | InputKind::Abort | InputKind::Close => self.forget_waiting_calls(),
            InputKind::Opened { .. }
            | InputKind::Submit { .. }
            | InputKind::Steer { .. }
            | InputKind::FollowUp { .. }
            | InputKind::Configure { .. }
            | InputKind::ContextLoaded { .. }
            | InputKind::ContextFailed { .. }
            | InputKind::SegmentOpened { .. }
            | InputKind::SegmentClosed { .. }
            | InputKind::ModelRetrying { .. }
            | InputKind::CallPrepared { .. }
            | InputKind::ToolStarted { .. }
            | InputKind::ChildSpawned { .. }
            | InputKind::ChildSpent { .. }
            | InputKind::ChildEnded { .. }
            | InputKind::CleanedUp
            | InputKind::Unrecorded { .. }
            | InputKind::Resumed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;
    use pintle_llm::ToolCall;
    use pintle_tools::pipeline::{self, Preparation};

    use super::*;
    use crate::id::ModelCallId;
    use crate::profile::ProviderProfile;

    #[tokio::test]
    async fn what_is_prepared_for_a_call_that_is_not_wanted_any_more_is_not_kept() {
        let tools = ProviderProfile::anthropic("m").tool_registry;
        let tool_call = ToolCall::from_raw("a", "shell", r#"{"command":"true"}"#);
        let call = CallKey { model_call: ModelCallId(1), index: 0 };
        for is_wanted in [true, false] {
            let env = MemoryEnvironment::new("/project");
            let Preparation::Ready(prepared) = pipeline::prepare(&tools, &[], &env, &tool_call).await else {
                panic!("it may run")
            };
            let mut calls = Calls::default();
            let unwanted = calls.preparing(call);
            if !is_wanted {
                calls.forget_prepared();
            }
            assert_eq!(unwanted.is_cancelled(), !is_wanted);
            calls.prepared(call, Some(prepared), None);
            assert_eq!(calls.prepared.contains_key(&call), is_wanted);
        }
    }
}
