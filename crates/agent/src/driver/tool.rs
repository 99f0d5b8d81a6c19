//! One tool call: prepared, then run, in tasks of their own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_env::{EnvError, Output};
use pintle_llm::{Fingerprint, ToolCall, ToolResult};
use pintle_tools::pipeline::{self, Execution, Gate, PreparedCall};
use pintle_tools::{ToolContext, ToolErrorKind, TruncationLimits, gate};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::report::Prepared;
use super::{Driver, Report, approval, output, trace};
use crate::id::CallKey;
use crate::turn::{CallPlan, FinishedCall, InputKind, Preparation};

/// How long a call that is told to stop may take to bring what it does to an end, such as writing a file, before it
/// is dropped.
const STOP_GRACE: Duration = Duration::from_millis(500);

impl Driver {
    pub(super) fn prepare_call(&mut self, call: CallKey, tool_call: ToolCall) {
        let registry = self.tools.clone();
        let origin = self.lineage.origin.clone();
        let gates = Arc::clone(&self.gates);
        let env = Arc::clone(&self.place);
        let reports = self.reports.clone();
        let unwanted = self.calls.preparing(call);
        let readiness = self.readiness();
        let task = async move {
            if let Err(error) = readiness.reach().await {
                let preparation = unusable(&error);
                let over = Prepared { call, preparation, prepared: None, request: None };
                // As below.
                let _ = reports.send(Report::Prepared(Box::new(over))).await;
                return;
            }
            let preparing = pipeline::prepare(&registry, &gates, env.as_ref(), &tool_call);
            let mut request = None;
            let (preparation, prepared) = match AssertUnwindSafe(preparing).catch_unwind().await {
                Ok(pipeline::Preparation::Ready(call)) => (Preparation::Ready(plan(&call)), Some(call)),
                Ok(pipeline::Preparation::Ask { call, reason }) => {
                    let asked = approval::request(&call, &reason, Arc::clone(&env), origin);
                    request = Some(asked.await);
                    (ask(&call, reason), Some(call))
                }
                Ok(pipeline::Preparation::Refused(error)) => {
                    let message = error.for_model().to_owned();
                    (Preparation::Refused { error: error.kind(), message }, None)
                }
                Err(_) => {
                    tracing::error!(tool = tool_call.name, "preparing a call panicked");
                    let message = format!(
                        "The call of {} could not be prepared: the tool itself, or a gate before it, is broken",
                        tool_call.name
                    );
                    (Preparation::Refused { error: ToolErrorKind::Failed, message }, None)
                }
            };
            // Without a driver nobody waits for the call.
            let over = Prepared { call, preparation, prepared, request };
            let _ = reports.send(Report::Prepared(Box::new(over))).await;
        };
        // A gate may wait for somebody, who need not answer when the turn has been stopped.
        let task = async move { unwanted.run_until_cancelled(task).await };
        self.spawn(task.map(drop).instrument(self.trace.run()));
    }

    /// Runs a call whose start is in the log.
    pub(super) fn start_tool(&mut self, key: CallKey) {
        let reports = self.reports.clone();
        let Some(prepared) = self.calls.prepared.remove(&key) else {
            // The machine runs prepared calls only; should it ever ask for another, the model is told.
            self.spawn(async move {
                let _ = reports.send(Report::input(unmade(key))).await;
            });
            return;
        };
        self.order_subagent(&prepared);
        let cancel = CancellationToken::new();
        let mut cx = ToolContext::new(Arc::clone(&self.place), prepared.call_id())
            .with_cancel(cancel.clone())
            .with_timeouts(self.config.command_timeouts)
            .with_background(self.background.clone());
        if let Some(start) = self.begun.call(prepared.call_id()) {
            cx = cx.with_on_output(output::sink(Arc::clone(&self.log), self.clock.clone(), start));
        }
        let limits = self.profile.tool_output_limits(&self.config.tool_output);
        let gates = Arc::clone(&self.gates);
        let approved = self.calls.approved.remove(&key);
        self.calls.running.insert(key, cancel);
        let span = self.trace.tool_call(&prepared);
        let inside = span.clone();
        let task = async move {
            let kind = made(key, &prepared, &cx, &limits, &gates, approved).await;
            trace::ended(&span, &kind);
            // Without a driver nobody waits for the result.
            let _ = reports.send(Report::input(kind)).await;
        };
        self.spawn(task.instrument(inside));
    }
}

/// Has a call judged once more, and made if nothing speaks against it.
async fn made(
    key: CallKey,
    call: &PreparedCall,
    cx: &ToolContext,
    limits: &TruncationLimits,
    gates: &[Arc<dyn Gate>],
    approved: Option<Fingerprint>,
) -> InputKind {
    // A gate may take its time, for which nobody waits who wants everything stopped.
    match cx.cancel.run_until_cancelled(approval::objection(gates, call, approved)).await {
        Some(Some(reason)) => return denied(key, call, &reason),
        Some(None) if !cx.cancel.is_cancelled() => {}
        Some(None) | None => return unmade(key),
    }
    let running = async {
        let execution = AssertUnwindSafe(pipeline::execute(call, cx, limits)).catch_unwind().await.ok();
        if let Some(execution) = &execution {
            approval::tell(gates, call, execution).await;
        }
        ended(key, call, execution, cx.cancel.is_cancelled())
    };
    tokio::select! {
        // What has come to its end is not lost, however late.
        biased;
        kind = running => kind,
        // Dropping the call is what stops it; the environment ends its processes.
        () = stopped(&cx.cancel) => InputKind::ToolLost { call: key },
    }
}

/// Ready when a call that was told to stop has had its time to do so.
async fn stopped(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

/// What became of a call that was told to stop before its tool was called.
fn unmade(key: CallKey) -> InputKind {
    InputKind::ToolFinished { call: key, finished: Box::new(FinishedCall::unmade()) }
}

/// What became of a call that came to its end by itself; `None` if it panicked.
fn ended(key: CallKey, call: &PreparedCall, execution: Option<Execution>, stopped: bool) -> InputKind {
    let finished = match execution {
        // It says only that it was stopped, which the machine words alike for all tools.
        Some(Execution { error: Some(ToolErrorKind::Cancelled), .. }) if stopped => {
            return InputKind::ToolLost { call: key };
        }
        Some(execution) => FinishedCall {
            result: execution.result,
            output: execution.output,
            error: execution.error,
            changes: execution.changes,
            question: execution.question,
        },
        None => panicked(call),
    };
    InputKind::ToolFinished { call: key, finished: Box::new(finished) }
}

/// A call whose place cannot be made ready does not run.
fn unusable(error: &EnvError) -> Preparation {
    let message = format!("The place where tools run cannot be used: {error}");
    Preparation::Refused { error: ToolErrorKind::EnvironmentLost, message }
}

/// What became of a call that a gate refused after all.
fn denied(key: CallKey, call: &PreparedCall, reason: &str) -> InputKind {
    let error = gate::denied(call.name(), reason);
    let finished = FinishedCall {
        result: ToolResult::new(call.call_id(), error.for_model(), true),
        output: Output::from(error.for_model().to_owned()),
        error: Some(error.kind()),
        changes: Vec::new(),
        question: None,
    };
    InputKind::ToolFinished { call: key, finished: Box::new(finished) }
}

fn ask(call: &PreparedCall, reason: String) -> Preparation {
    let (arguments, fingerprint) = (call.arguments().clone(), call.fingerprint());
    Preparation::Ask { plan: plan(call), arguments, reason, fingerprint }
}

fn plan(call: &PreparedCall) -> CallPlan {
    CallPlan {
        effect: call.effect(),
        repeatable: call.is_repeatable(),
        writes: call.targets().to_vec(),
        repairs: call.repairs().to_vec(),
    }
}

/// The pipeline catches what a tool's call does; this is for whatever else of a tool may panic.
fn panicked(call: &PreparedCall) -> FinishedCall {
    tracing::error!(tool = call.name(), "a tool panicked");
    let text = format!("Tool error ({}): the tool panicked", call.name());
    FinishedCall {
        result: ToolResult::new(call.call_id(), text.clone(), true),
        output: Output::from(text),
        error: Some(ToolErrorKind::Failed),
        changes: Vec::new(),
        question: None,
    }
}
