//! Between the preparation of a call and its run: who decides, and that the decision is about this call.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_env::ExecutionEnvironment;
use pintle_llm::Fingerprint;
use pintle_tools::gate;
use pintle_tools::pipeline::{self, DryRun, Execution, Gate, PreparedCall, Verdict};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::report::Decided;
use super::{Driver, Report};
use crate::approval::ApprovalRequest;
use crate::id::CallKey;
use crate::session::Decision;
use crate::subagent_info::SubagentOrigin;
use crate::turn::InputKind;

/// The time limit of a dry run.
const DRY_RUN: Duration = Duration::from_secs(5);

/// A call that waits for a decision.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) call: CallKey,
    pub(super) request: Arc<ApprovalRequest>,
    /// Ends the approver's deliberation when the decision is not wanted any more.
    _asked: DropGuard,
}

impl Driver {
    /// Has the approver decide, if there is one, and lets the host see what is asked.
    pub(super) fn ask(&mut self, call: CallKey, call_id: String) -> Option<InputKind> {
        let Some(request) = self.calls.requests.remove(&call) else {
            // The machine asks about calls that were prepared so; should it ever ask about another, it does not run.
            let reason = Some("it cannot be asked about".to_owned());
            return Some(InputKind::ApprovalDecided { call, approved: false, reason });
        };
        let asked = CancellationToken::new();
        if let Some(approver) = self.approver.clone() {
            let (asked, request) = (asked.clone(), Arc::clone(&request));
            let reports = self.reports.clone();
            let task = async move {
                // Within a future of our own, since a host's function may panic before it has made one.
                let deciding = AssertUnwindSafe(async { approver.decide(&request).await }).catch_unwind();
                let decision = tokio::select! {
                    biased;
                    () = asked.cancelled() => return,
                    decision = deciding => decision.unwrap_or_else(|_panic| broken(&request)),
                };
                let (call_id, exactly) = (request.call_id.clone(), request.fingerprint);
                let decided = Decided { call_id, exactly, decision };
                // Without a driver nobody waits for the decision.
                let _ = reports.send(Report::Decided(Box::new(decided))).await;
            };
            self.spawn(task.instrument(self.trace.run()));
        }
        self.calls.asking.insert(call_id, Asking { call, request, _asked: asked.drop_guard() });
        self.show();
        None
    }

    /// What a decision means for the machine; nothing if no such call waits for one.
    pub(super) fn decided(
        &mut self,
        call_id: &str,
        exactly: Fingerprint,
        decision: Decision,
    ) -> Option<InputKind> {
        let asking = self.calls.asking.get(call_id).filter(|asking| asking.request.fingerprint == exactly)?;
        let call = asking.call;
        let (approved, reason) = match decision {
            Decision::Approve => (true, None),
            Decision::Deny { reason } => (false, reason),
        };
        if approved {
            self.calls.approved.insert(call, exactly);
        } else {
            self.calls.prepared.remove(&call);
        }
        Some(InputKind::ApprovalDecided { call, approved, reason })
    }
}

fn broken(request: &ApprovalRequest) -> Decision {
    tracing::error!(tool = request.tool_name, "the approver panicked");
    Decision::Deny { reason: Some("the approver is broken".to_owned()) }
}

/// What is asked about a call.
pub(super) async fn request(
    call: &PreparedCall,
    reason: &str,
    env: Arc<dyn ExecutionEnvironment>,
    origin: Option<SubagentOrigin>,
) -> Arc<ApprovalRequest> {
    let dry_run = dry_run(call, env).await;
    let request = ApprovalRequest::for_call(call).with_reason(reason).with_dry_run(dry_run);
    Arc::new(request.with_origin(origin))
}

async fn dry_run(call: &PreparedCall, env: Arc<dyn ExecutionEnvironment>) -> Option<DryRun> {
    let running = AssertUnwindSafe(pipeline::dry_run(call, env)).catch_unwind();
    // What cannot be shown in time is asked about without it.
    tokio::time::timeout(DRY_RUN, running).await.ok()?.ok()?
}

/// Why a call must not run after all: another one was approved, or the world has changed since it was prepared and a
/// gate objects now.
pub(super) async fn objection(
    gates: &[Arc<dyn Gate>],
    call: &PreparedCall,
    approved: Option<Fingerprint>,
) -> Option<String> {
    if approved.is_some_and(|approved| approved != call.fingerprint()) {
        return Some("another call was approved".to_owned());
    }
    match AssertUnwindSafe(gate::judge(gates, call)).catch_unwind().await {
        Ok(Verdict::Allow) => None,
        Ok(Verdict::Ask { .. }) if approved.is_some() => None,
        Ok(Verdict::Ask { reason }) => {
            Some(format!("{reason}, which was not so when it was prepared; make it again to have it decided"))
        }
        Ok(Verdict::Deny { reason }) => Some(reason),
        Err(_panic) => Some("a gate before it is broken".to_owned()),
    }
}

/// Tells the gates what became of a call.
pub(super) async fn tell(gates: &[Arc<dyn Gate>], call: &PreparedCall, execution: &Execution) {
    for gate in gates {
        let telling = AssertUnwindSafe(async { gate.ran(call, execution).await }).catch_unwind();
        if telling.await.is_err() {
            tracing::error!(?gate, "a gate panicked");
        }
    }
}
