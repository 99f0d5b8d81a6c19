//! Approval of a call between its preparation and its run, and the checks that a decision applies to this call.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_env::ExecutionEnvironment;
use pintle_llm::Fingerprint;
use pintle_tools::gate::{self, Judgement, JudgementStep, Permission, Verdict};
use pintle_tools::pipeline::{self, DryRun, Execution, Gate, PreparedCall};
use tracing::Instrument as _;

use super::call_slots::CallPreparationResult;
use super::report::ExactDecision;
use super::{Driver, Report};
use crate::approval::ApprovalRequest;
use crate::protocol::{CallKey, Decision, InputKind, SessionId, SubagentOrigin};

/// Time limit for a dry run, which shows the changes that a call would make.
const DRY_RUN_TIMEOUT: Duration = Duration::from_secs(5);

/// Reason to refuse a call for which a gate panicked.
const BROKEN_GATE: &str = "a gate before it is broken";

impl Driver {
    /// Publishes a request for approval and passes it to the approver, if there is one.
    pub(super) fn ask(&mut self, call: CallKey) -> Option<InputKind> {
        let Some((request, asked)) = self.calls.set_pending(call) else {
            // The machine asks only about calls that need approval. Any other call is denied.
            let reason = Some("it cannot be asked about".to_owned());
            return Some(InputKind::ApprovalDecided { call, approved: false, reason, by: None });
        };
        if let Some(approver) = self.approver.clone() {
            let reports = self.reports.clone();
            let task = async move {
                // Inside a separate future, since the approver may panic before it returns one.
                let deciding = AssertUnwindSafe(async { approver.decide(&request).await }).catch_unwind();
                let decision = tokio::select! {
                    biased;
                    () = asked.cancelled() => return,
                    decision = deciding => decision.unwrap_or_else(|_panic| approver_panicked(&request)),
                };
                let (call_id, exactly) = (request.call_id.clone(), request.fingerprint);
                let decided = ExactDecision { call_id, exactly, decision, by: approver.principal() };
                // If the driver is gone, the decision is no longer needed.
                let _ = reports.send(Report::Decided(Box::new(decided))).await;
            };
            self.spawn(task.instrument(self.trace.run()));
        }
        self.publish();
        None
    }

    /// Refuses a call that needs approval if the same call was denied before.
    pub(super) fn remember_denial(
        &self,
        key: CallKey,
        mut prepared: CallPreparationResult,
    ) -> CallPreparationResult {
        let Ok(judged) = &prepared.result else { return prepared };
        let Some(request) = judged.request() else { return prepared };
        if !self.machine.was_denied(key, &request.arguments) {
            return prepared;
        }
        let reason = include_str!("../../prompts/calls/denied_before.md").trim_ascii_end();
        let error = gate::denied(&request.tool_name, reason);
        prepared.judgement.push(JudgementStep::new("denials", Verdict::deny(reason)));
        prepared.result = Err(error);
        prepared
    }

    /// Applies a decision and returns the input for the machine; `None` if no such call is waiting for one.
    pub(super) fn decide(&mut self, decided: ExactDecision) -> Option<InputKind> {
        let ExactDecision { call_id, exactly, decision, by } = decided;
        let (approved, reason) = match decision {
            Decision::Approve => (true, None),
            Decision::Deny { reason } => (false, reason),
            Decision::Change { arguments } => {
                let call = self.calls.change(&call_id, exactly)?;
                return Some(InputKind::CallChanged { call, arguments, by });
            }
        };
        let call = self.calls.decide(&call_id, exactly, approved, by.clone())?;
        Some(InputKind::ApprovalDecided { call, approved, reason, by })
    }
}

fn approver_panicked(request: &ApprovalRequest) -> Decision {
    tracing::error!(tool = request.tool_name, "the approver panicked");
    Decision::Deny { reason: Some("the approver is broken".to_owned()) }
}

/// Returns the request for approval of a call of a session.
pub(super) async fn request(
    session: &SessionId,
    call: &PreparedCall,
    judgement: &Judgement,
    env: Arc<dyn ExecutionEnvironment>,
    origin: Option<SubagentOrigin>,
) -> Arc<ApprovalRequest> {
    let dry_run = dry_run(call, env).await;
    let mut request = ApprovalRequest::for_call(call).with_reason(judgement.reason()).with_dry_run(dry_run);
    request.suggested_rules = judgement.suggested_rules();
    request.fingerprint = ticket(session, call, judgement);
    Arc::new(request.with_origin(origin))
}

/// Returns the fingerprint that binds a decision to the session, the exact call, the locations of its paths, and the rules of
/// gates that bind it, such as the grant.
pub(super) fn ticket(session: &SessionId, call: &PreparedCall, judgement: &Judgement) -> Fingerprint {
    let binding = judgement.steps().iter().filter(|step| step.binds);
    let rules =
        binding.filter_map(|step| step.rule.as_deref()).map(|rule| Fingerprint::from_bytes(rule.as_bytes()));
    let bound = call.fingerprint().chain(Fingerprint::from_bytes(session.as_str().as_bytes()));
    rules.chain(redirections(call)).fold(bound, Fingerprint::chain)
}

/// Returns a hash of each path of a call whose locations differ from its name, with these locations. Without links there are no
/// such paths, so tickets in older journals remain valid.
fn redirections(call: &PreparedCall) -> impl Iterator<Item = Fingerprint> {
    let redirected =
        call.locations().filter(|(path, locations)| locations.iter().any(|location| location != *path));
    redirected.map(|(path, locations)| {
        locations.iter().map(|location| hash_path(location)).fold(hash_path(path), Fingerprint::chain)
    })
}

fn hash_path(path: &Path) -> Fingerprint {
    Fingerprint::from_bytes(path.as_os_str().as_encoded_bytes())
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
    /// Current judgement of the gates; empty if they are not the reason.
    pub(super) judgement: Judgement,
}

impl From<&str> for Objection {
    fn from(reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..Self::default() }
    }
}

/// Returns why a call must not run after all: another call was approved, its paths have other locations than at the
/// decision, or the situation has changed since its preparation and a gate objects now.
pub(super) async fn objection(
    gates: &[Arc<dyn Gate>],
    session: &SessionId,
    call: &PreparedCall,
    env: &dyn ExecutionEnvironment,
    (approved, answer): (Option<Fingerprint>, Option<&JudgementStep>),
) -> Option<Objection> {
    let Ok(mut judgement) = AssertUnwindSafe(gate::judge(gates, call)).catch_unwind().await else {
        return Some(Objection::from(BROKEN_GATE));
    };
    if let Some(answer) = answer {
        judgement.push(answer.clone());
    }
    if judgement.permission() != Permission::Deny
        && let Some(path) = call.find_redirected(env).await
    {
        return Some(gate::redirected(&path).as_str().into());
    }
    let reason = judgement.reason();
    match judgement.permission() {
        Permission::Allow | Permission::Ask
            if approved.is_some_and(|approved| approved != ticket(session, call, &judgement)) =>
        {
            let reason = "another call was approved, or this one under another grant".to_owned();
            Some(Objection { reason, judgement })
        }
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

/// Notifies the gates that a call is about to run. Returns an objection if one of them panics.
pub(super) async fn notify_before_run(gates: &[Arc<dyn Gate>], call: &PreparedCall) -> Option<Objection> {
    for gate in gates {
        let notifying = async { gate.before_run(call).await };
        if AssertUnwindSafe(notifying).catch_unwind().await.is_err() {
            tracing::error!(?gate, "a gate panicked");
            return Some(Objection::from(BROKEN_GATE));
        }
    }
    None
}

/// Passes the result of a call to the gates. If one of them ends the run, adds its reason to the result.
pub(super) async fn notify_gates(gates: &[Arc<dyn Gate>], call: &PreparedCall, execution: &mut Execution) {
    for gate in gates {
        let notifying = async {
            gate.ran(call, execution).await;
            gate.stop_after(call).await
        };
        match AssertUnwindSafe(notifying).catch_unwind().await {
            Ok(None) => {}
            Ok(Some(reason)) => end_run(execution, reason),
            Err(_panic) => tracing::error!(?gate, "a gate panicked"),
        }
    }
}

/// Ends the run with the round of this call, and notes this in the result.
pub(super) fn end_run(execution: &mut Execution, reason: String) {
    if let serde_json::Value::String(text) = &mut execution.result.content {
        text.push_str("\n\n[The run ends here: ");
        text.push_str(&reason);
        text.push(']');
    }
    execution.stop.get_or_insert(reason);
}
