//! Approval of a call between its preparation and its run: who decides, and that the decision applies to this call.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_env::ExecutionEnvironment;
use pintle_llm::Fingerprint;
use pintle_tools::gate::{self, Judgement, Permission};
use pintle_tools::pipeline::{self, DryRun, Execution, Gate, PreparedCall};
use tracing::Instrument as _;

use super::report::Decided;
use super::{Driver, Report};
use crate::approval::ApprovalRequest;
use crate::protocol::{CallKey, Decision, InputKind, SubagentOrigin};

/// Time limit for a dry run, which shows what a call would change.
const DRY_RUN_TIMEOUT: Duration = Duration::from_secs(5);

impl Driver {
    /// Publishes a request for approval and passes it to the approver, if there is one.
    pub(super) fn ask(&mut self, call: CallKey) -> Option<InputKind> {
        let Some((request, asked)) = self.calls.set_pending(call) else {
            // The machine only asks about calls that need approval. If it ever asked about another one, it would not run.
            let reason = Some("it cannot be asked about".to_owned());
            return Some(InputKind::ApprovalDecided { call, approved: false, reason });
        };
        if let Some(approver) = self.approver.clone() {
            let reports = self.reports.clone();
            let task = async move {
                // Inside a future of our own, since the approver may panic before it returns one.
                let deciding = AssertUnwindSafe(async { approver.decide(&request).await }).catch_unwind();
                let decision = tokio::select! {
                    biased;
                    () = asked.cancelled() => return,
                    decision = deciding => decision.unwrap_or_else(|_panic| approver_panicked(&request)),
                };
                let (call_id, exactly) = (request.call_id.clone(), request.fingerprint);
                let decided = Decided { call_id, exactly, decision };
                // If the driver is gone, nobody needs the decision.
                let _ = reports.send(Report::Decided(Box::new(decided))).await;
            };
            self.spawn(task.instrument(self.trace.run()));
        }
        self.publish();
        None
    }

    /// Applies a decision and returns the input for the machine; `None` if no such call is waiting for one.
    pub(super) fn decide(&mut self, decided: Decided) -> Option<InputKind> {
        let Decided { call_id, exactly, decision } = decided;
        let (approved, reason) = match decision {
            Decision::Approve => (true, None),
            Decision::Deny { reason } => (false, reason),
        };
        let call = self.calls.decide(&call_id, exactly, approved)?;
        Some(InputKind::ApprovalDecided { call, approved, reason })
    }
}

fn approver_panicked(request: &ApprovalRequest) -> Decision {
    tracing::error!(tool = request.tool_name, "the approver panicked");
    Decision::Deny { reason: Some("the approver is broken".to_owned()) }
}

/// Returns the request for approval of a call.
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
    // Without a result in time, approval is requested without one.
    tokio::time::timeout(DRY_RUN_TIMEOUT, running).await.ok()?.ok()?
}

/// Reason why a call that was ready must not run after all.
#[derive(Debug, Default)]
pub(super) struct Objection {
    pub(super) reason: String,
    /// What the gates say now; empty if they are not the reason.
    pub(super) judgement: Judgement,
}

impl From<&str> for Objection {
    fn from(reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..Self::default() }
    }
}

/// Returns why a call must not run after all: another one was approved, or the situation has changed since it was
/// prepared and a gate objects now.
pub(super) async fn objection(
    gates: &[Arc<dyn Gate>],
    call: &PreparedCall,
    approved: Option<Fingerprint>,
) -> Option<Objection> {
    if approved.is_some_and(|approved| approved != call.fingerprint()) {
        return Some("another call was approved".into());
    }
    let Ok(judgement) = AssertUnwindSafe(gate::judge(gates, call)).catch_unwind().await else {
        return Some("a gate before it is broken".into());
    };
    let reason = judgement.reason();
    match judgement.permission() {
        Permission::Allow => None,
        Permission::Ask if approved.is_some() => None,
        Permission::Ask => {
            let reason =
                format!("{reason}, which was not so when it was prepared; make it again to have it decided");
            Some(Objection { reason, judgement })
        }
        Permission::Deny => Some(Objection { reason, judgement }),
    }
}

/// Passes the result of a call to the gates.
pub(super) async fn notify_gates(gates: &[Arc<dyn Gate>], call: &PreparedCall, execution: &Execution) {
    for gate in gates {
        let notifying = AssertUnwindSafe(async { gate.ran(call, execution).await }).catch_unwind();
        if notifying.await.is_err() {
            tracing::error!(?gate, "a gate panicked");
        }
    }
}
