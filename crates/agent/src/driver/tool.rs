//! One tool call: prepared, then run in a task of its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::poll_immediate;
use pintle_env::{EnvError, ExecutionEnvironment, Output};
use pintle_llm::{Fingerprint, ToolCall, ToolResult};
use pintle_tools::pipeline::{self, Execution, Gate, PreparedCall};
use pintle_tools::{ToolContext, ToolErrorKind, ToolRegistry, TruncationLimits, gate};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::context::Readiness;
use super::report::Prepared;
use super::{Driver, Report, approval, output, trace};
use crate::id::CallKey;
use crate::subagent_info::SubagentOrigin;
use crate::turn::{CallPlan, FinishedCall, InputKind, Preparation};

/// How long a call that is told to stop may take to bring what it does to an end, such as writing a file, before it
/// is dropped.
const STOP_GRACE: Duration = Duration::from_millis(500);

impl Driver {
    /// Prepares a call: at once if nothing has to be waited for, as with most calls, else in a task of its own, so that
    /// neither the session nor the other calls of the round wait for a gate that asks somebody.
    pub(super) async fn prepare_call(&mut self, call: CallKey, tool_call: ToolCall) -> Option<InputKind> {
        let preparing = Preparing {
            call,
            tool_call,
            registry: self.tools.clone(),
            gates: Arc::clone(&self.gates),
            env: Arc::clone(&self.place),
            readiness: self.readiness(),
            origin: self.lineage.origin.clone(),
        };
        let span = self.trace.run();
        let mut preparing = Box::pin(preparing.run().instrument(span.clone()));
        let unwanted = self.calls.preparing(call);
        if let Some(prepared) = poll_immediate(&mut preparing).await {
            return Some(self.prepared(prepared));
        }
        let reports = self.reports.clone();
        let task = async move {
            let prepared = preparing.await;
            // Without a driver nobody waits for the call.
            let _ = reports.send(Report::Prepared(Box::new(prepared))).await;
        };
        // A gate may wait for somebody, who need not answer when the turn has been stopped.
        let task = async move { unwanted.run_until_cancelled(task).await };
        self.spawn(task.map(drop).instrument(span));
        None
    }

    /// Keeps what came of a call's preparation, and says what the machine is told of it.
    pub(super) fn prepared(&mut self, over: Prepared) -> InputKind {
        let Prepared { call, preparation, prepared, request } = over;
        self.calls.prepared(call, prepared, request);
        InputKind::CallPrepared { call, preparation }
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
        self.reserve_subagent(&prepared);
        let cancel = CancellationToken::new();
        let mut cx = ToolContext::new(Arc::clone(&self.place), prepared.call_id())
            .with_cancel(cancel.clone())
            .with_timeouts(self.config.command_timeouts)
            .with_background(self.background.clone())
            .with_files(self.files.clone());
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

/// What a call's preparation needs.
struct Preparing {
    call: CallKey,
    tool_call: ToolCall,
    registry: ToolRegistry,
    gates: Arc<[Arc<dyn Gate>]>,
    env: Arc<dyn ExecutionEnvironment>,
    readiness: Readiness,
    origin: Option<SubagentOrigin>,
}

impl Preparing {
    /// Prepares the call. A tool or a gate that panics is the call's failure, and nobody else's.
    async fn run(self) -> Prepared {
        let (call, name) = (self.call, self.tool_call.name.clone());
        AssertUnwindSafe(self.judged()).catch_unwind().await.unwrap_or_else(|_panic| {
            tracing::error!(tool = name, "preparing a call panicked");
            let message = format!(
                "The call of {name} could not be prepared: the tool itself, or a gate before it, is broken"
            );
            refused(call, ToolErrorKind::Failed, message)
        })
    }

    async fn judged(self) -> Prepared {
        let Self { call, tool_call, registry, gates, env, readiness, origin } = self;
        if let Err(error) = readiness.reach().await {
            return unusable(call, &error);
        }
        match pipeline::prepare(&registry, &gates, env.as_ref(), &tool_call).await {
            pipeline::Preparation::Ready(prepared) => {
                let preparation = Preparation::Ready(plan(&prepared));
                Prepared { call, preparation, prepared: Some(prepared), request: None }
            }
            pipeline::Preparation::Ask { call: prepared, reason } => {
                let request = approval::request(&prepared, &reason, env, origin).await;
                let preparation = ask(&prepared, reason);
                Prepared { call, preparation, prepared: Some(prepared), request: Some(request) }
            }
            pipeline::Preparation::Refused(error) => {
                refused(call, error.kind(), error.for_model().to_owned())
            }
        }
    }
}

/// Ready when a call that was told to stop has had its time to do so.
async fn stopped(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

/// What became of a call that was told to stop before its tool was called.
pub(super) fn unmade(key: CallKey) -> InputKind {
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
            timed_out: execution.timed_out,
            changes: execution.changes,
            question: execution.question,
        },
        None => panicked(call),
    };
    InputKind::ToolFinished { call: key, finished: Box::new(finished) }
}

/// A call whose place cannot be made ready does not run.
fn unusable(call: CallKey, error: &EnvError) -> Prepared {
    let message = format!("The place where tools run cannot be used: {error}");
    refused(call, ToolErrorKind::EnvironmentLost, message)
}

/// A call that will not run.
fn refused(call: CallKey, error: ToolErrorKind, message: String) -> Prepared {
    let preparation = Preparation::Refused { error, message };
    Prepared { call, preparation, prepared: None, request: None }
}

/// What became of a call that a gate refused after all.
fn denied(key: CallKey, call: &PreparedCall, reason: &str) -> InputKind {
    let error = gate::denied(call.name(), reason);
    let finished = FinishedCall {
        result: ToolResult::new(call.call_id(), error.for_model(), true),
        output: Output::from(error.for_model().to_owned()),
        error: Some(error.kind()),
        timed_out: None,
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
        timed_out: None,
        changes: Vec::new(),
        question: None,
    }
}
