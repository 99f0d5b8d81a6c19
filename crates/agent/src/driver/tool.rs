//! Tool calls: preparation, and execution in separate tasks.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::poll_immediate;
use pintle_env::{ExecutionEnvironment, Redactions};
use pintle_llm::{Fingerprint, ToolCall};
use pintle_tools::gate::{self, JudgementStep};
use pintle_tools::pipeline::{self, Execution, Gate, PreparedCall};
use pintle_tools::{ToolContext, ToolError, ToolErrorKind, ToolRegistry, TruncationLimits};
use serde_json::Map;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::approval::Objection;
use super::call_slots::CallPreparationResult;
use super::checkpointer::Checkpointer;
use super::environment::EnvironmentInit;
use super::hooks::{self, HookPoint};
use super::reconciling::RecordedIntents;
use super::redacting::redact_execution;
use super::staged_call::{Released, StagedCall};
use super::{Driver, Report, approval, output, trace};
use crate::hooks::CallAnswer;
use crate::protocol::{
    CallKey, ChangedArguments, HookAdditions, InputKind, Principal, SessionId, SubagentOrigin,
};
use crate::record::Fence;
use crate::turn;

/// Grace period in which a stopped call may finish its current work, such as writing a file, before it is dropped.
const STOP_GRACE: Duration = Duration::from_millis(500);

impl Driver {
    /// Prepares a call. Most calls are ready at once. Any other call is prepared in a separate task, so that neither
    /// the session nor the other calls of the round wait for a slow gate.
    pub(super) async fn prepare_call(
        &mut self,
        key: CallKey,
        tool_call: ToolCall,
        changed: bool,
    ) -> Option<InputKind> {
        let preparing = CallPreparation {
            session: self.log.session_id().clone(),
            tool_call,
            registry: self.tools.clone(),
            gates: Arc::clone(&self.gates),
            env: Arc::clone(self.environment.requested()),
            init: self.environment.initialization(),
            origin: self.lineage.origin.clone(),
            // The user or hook that changed the arguments has decided on them.
            hooks: if changed { None } else { self.hooks.clone() },
            changed: if changed { self.calls.take_changed(key) } else { None },
        };
        let span = self.trace.run();
        let mut preparing = Box::pin(preparing.run().instrument(span.clone()));
        let cancelled = self.calls.prepare(key);
        if let Some(prepared) = poll_immediate(&mut preparing).await {
            return Some(self.set_prepared(key, prepared));
        }
        let reports = self.reports.clone();
        let task = async move {
            let prepared = Box::new(preparing.await);
            // If the driver is gone, the call is no longer needed.
            let _ = reports.send(Report::Prepared { key, prepared }).await;
        };
        // A gate may wait for a user, whose answer is not needed once the turn is stopped.
        let task = async move { cancelled.run_until_cancelled(task).await };
        self.spawn(task.map(drop).instrument(span));
        None
    }

    /// Stores a prepared call and returns the input for the machine.
    pub(super) fn set_prepared(&mut self, key: CallKey, prepared: CallPreparationResult) -> InputKind {
        let prepared = self.remember_denial(key, prepared);
        let preparation = prepared.preparation();
        let CallPreparationResult { judgement, result, changed, additions } = prepared;
        self.calls.set_prepared(key, result);
        InputKind::CallPrepared { call: key, preparation, judgement, changed, additions }
    }

    /// Runs a prepared call in a separate task. Its start is in the log. Returns the result of a call that cannot run.
    pub(super) fn run_tool(&mut self, key: CallKey) -> Option<InputKind> {
        // The machine runs only prepared calls. For any other call, the model gets the result of a stopped call.
        let Some((released, cancel)) = self.calls.run(key) else { return Some(not_run(key)) };
        let (call, Released { approved, approved_by, answer }) = released.into_parts();
        self.reserve_subagent(&call);
        let mut cx = ToolContext::new(Arc::clone(self.environment.requested()), call.call_id())
            .with_cancel(cancel)
            .with_timeouts(self.config.command_timeouts)
            .with_background(self.background.clone())
            .with_files(self.files.clone())
            .with_approved_by(approved_by.map(|by| by.as_str().to_owned()));
        if self.recording.is_active() {
            let (reports, fence) = (self.reports.clone(), self.recording.fence());
            cx = cx.with_intents(Arc::new(RecordedIntents { call: key, reports, fence }));
        }
        if let Some(writer) = self.segments.of_call(call.call_id()) {
            cx = cx.with_on_output(output::sink(writer));
        }
        let limits = self.profile.tool_output_limits(&self.config.tool_output);
        let effects = Effects {
            session: self.log.session_id().clone(),
            gates: Arc::clone(&self.gates),
            approved,
            answer,
            checkpoints: self.checkpoints.clone(),
            redactions: self.config.redactions.clone(),
            fence: self.recording.fence(),
            hooks: self.hooks.clone(),
            reports: self.reports.clone(),
        };
        let reports = self.reports.clone();
        let span = self.trace.tool_call(&call);
        let inside = span.clone();
        let task = async move {
            let kind = effects.run_call(key, &call, &cx, &limits).await;
            trace::record_end(&span, &kind);
            // If the driver is gone, the result is no longer needed.
            let _ = reports.send(Report::input(kind)).await;
        };
        self.spawn(task.instrument(inside));
        None
    }
}

/// Everything around the execution of a call.
struct Effects {
    session: SessionId,
    gates: Arc<[Arc<dyn Gate>]>,
    /// Fingerprint of the call that was approved, if approval was needed.
    approved: Option<Fingerprint>,
    /// Answer of a hook that replaces an approval.
    answer: Option<JudgementStep>,
    checkpoints: Checkpointer,
    redactions: Redactions,
    fence: Fence,
    hooks: Option<HookPoint>,
    reports: mpsc::Sender<Report>,
}

impl Effects {
    /// Judges a call again. Unless a gate objects, takes the checkpoint before it and notifies the gates.
    async fn judge_again(&self, call: &PreparedCall, cx: &ToolContext) -> Result<PreparedCall, Objection> {
        let call = match call.hold(cx.env.as_ref()).await {
            Ok(call) => call,
            Err(error) => return Err(Objection::from(error.to_string().as_str())),
        };
        let decided = (self.approved, self.answer.as_ref());
        let judged = approval::objection(&self.gates, &self.session, &call, cx.env.as_ref(), decided);
        if let Some(objection) = judged.await {
            return Err(objection);
        }
        self.checkpoints.before(&call, cx.env.as_ref(), &self.reports).await;
        match approval::notify_before_run(&self.gates, &call).await {
            Some(objection) => Err(objection),
            None => Ok(call),
        }
    }

    /// Judges a call again and, unless a gate objects, runs it.
    async fn run_call(
        &self,
        key: CallKey,
        call: &PreparedCall,
        cx: &ToolContext,
        limits: &TruncationLimits,
    ) -> InputKind {
        // Gates and checkpoints may be slow; a stopped turn does not wait for them.
        let judging = self.judge_again(call, cx);
        let call = match cx.cancel.run_until_cancelled(judging).await {
            Some(Err(Objection { reason, judgement })) => {
                if !judgement.is_empty() {
                    let judged = InputKind::CallJudged { call: key, judgement };
                    // If the driver is gone, the report is no longer needed.
                    let _ = self.reports.send(Report::input(judged)).await;
                }
                return finished(key, denied(call, &reason));
            }
            Some(Ok(call)) if !cx.cancel.is_cancelled() => call,
            Some(Ok(_)) | None => return not_run(key),
        };
        let (call, env) = (&call, Arc::clone(call.judged_in(&cx.env)));
        let mut cx = cx.clone();
        cx.env = env;
        let cx = &cx;
        // Nothing may wait between this check and the effect.
        if let Err(error) = self.fence.check() {
            return finished(key, denied(call, &error.to_string()));
        }
        let running = async {
            let started = tokio::time::Instant::now();
            let mut execution =
                AssertUnwindSafe(pipeline::execute(call, cx, limits)).catch_unwind().await.ok();
            let duration = started.elapsed();
            if let Some(execution) = &mut execution {
                approval::notify_gates(&self.gates, call, execution).await;
                if let Some(hooks) = &self.hooks {
                    hooks.after_call(call, execution, duration).await;
                }
            }
            let execution = match execution {
                Some(execution) => {
                    let limits = cx.env.output_limits();
                    Some(redact_execution(&self.redactions, execution, limits).await)
                }
                None => None,
            };
            result_of(key, call, execution, cx.cancel.is_cancelled())
        };
        let kind = tokio::select! {
            // A call that has ended is not lost, even if it ends late.
            biased;
            kind = running => kind,
            // Dropping the call stops it; the environment ends its processes.
            () = grace_elapsed(&cx.cancel) => InputKind::ToolLost { call: key },
        };
        // A stopped call does not wait for this checkpoint: the next call takes one before it changes files.
        let after = self.checkpoints.after(call, cx.env.as_ref(), &self.reports);
        cx.cancel.run_until_cancelled(after).await;
        kind
    }
}

/// Everything that the preparation of a call needs.
struct CallPreparation {
    session: SessionId,
    tool_call: ToolCall,
    registry: ToolRegistry,
    gates: Arc<[Arc<dyn Gate>]>,
    env: Arc<dyn ExecutionEnvironment>,
    init: EnvironmentInit,
    origin: Option<SubagentOrigin>,
    hooks: Option<HookPoint>,
    /// The call that was shown, if a decision changed its arguments.
    changed: Option<PreparedCall>,
}

impl CallPreparation {
    /// Prepares the call. A panic of the tool or of a gate only fails this call.
    async fn run(self) -> CallPreparationResult {
        let name = self.tool_call.name.clone();
        AssertUnwindSafe(self.prepare()).catch_unwind().await.unwrap_or_else(|_panic| {
            tracing::error!(tool = name, "preparing a call panicked");
            let message = format!(
                "The call of {name} could not be prepared: the tool itself, or a gate before it, is broken"
            );
            ToolError::failed(message).into()
        })
    }

    async fn prepare(self) -> CallPreparationResult {
        if let Err(error) = self.init.ensure().await {
            let message = format!("The execution environment cannot be used: {error}");
            return ToolError::new(ToolErrorKind::EnvironmentLost, message).into();
        }
        let judged = pipeline::prepare(&self.registry, &self.gates, self.env.as_ref(), &self.tool_call).await;
        match &self.hooks {
            Some(hooks) => self.hooked(hooks, judged).await,
            None => self.prepared(judged).await,
        }
    }

    /// Runs the hooks for a call that the gates have judged.
    async fn hooked(&self, hooks: &HookPoint, judged: pipeline::JudgedCall) -> CallPreparationResult {
        let judged = self.locate_paths(judged).await;
        let (pipeline::JudgedCall::Ready { call, judgement } | pipeline::JudgedCall::Ask { call, judgement }) =
            &judged
        else {
            return self.prepared(judged).await;
        };
        let given = hooks.before_call(call, judgement).await;
        let additions = HookAdditions {
            context: given.context.clone(),
            stop: given.stop.as_deref().map(hooks::ended_by_hook),
        };
        let prepared = CallPreparationResult { additions, ..self.answered(given, judged).await };
        let Ok(asking) = &prepared.result else { return prepared };
        let Some(request) = asking.request() else { return prepared };
        let given = hooks.before_approval(request).await;
        if given == CallAnswer::default() {
            return prepared;
        }
        let judged = pipeline::JudgedCall::Ask { call: asking.call().clone(), judgement: prepared.judgement };
        let again = self.answered(given, judged).await;
        let changed = again.changed.or(prepared.changed);
        CallPreparationResult { changed, additions: prepared.additions, ..again }
    }

    /// Applies the answer of a hook to a call that the gates have judged. Changed arguments are judged again. Questions
    /// of hooks that ran before remain, since those hooks do not run again.
    async fn answered(&self, given: CallAnswer, judged: pipeline::JudgedCall) -> CallPreparationResult {
        let (judged, changed) = match &given.arguments {
            None => (judged, None),
            Some(arguments) => {
                let mut tool_call = ToolCall::new(&self.tool_call.id, &self.tool_call.name, Map::new());
                tool_call.arguments = arguments.clone().into();
                let by = given.hook.as_ref().map(|hook| Principal::new(format!("hook {hook}")));
                let again =
                    pipeline::prepare(&self.registry, &self.gates, self.env.as_ref(), &tool_call).await;
                let mut again = self.locate_paths(with_questions_of_hooks(again, &judged)).await;
                if let Some(shown) = judged.call() {
                    again = refuse_redirected(again, shown);
                }
                (again, Some(ChangedArguments { arguments: arguments.clone(), by }))
            }
        };
        let judged = match judged {
            pipeline::JudgedCall::Ready { call, mut judgement }
            | pipeline::JudgedCall::Ask { call, mut judgement } => {
                hooks::add_answer(&mut judgement, &given);
                pipeline::JudgedCall::from_judgement(call, judgement)
            }
            refused @ pipeline::JudgedCall::Refused { .. } => refused,
        };
        CallPreparationResult { changed, ..self.prepared(judged).await }
    }

    async fn prepared(&self, judged: pipeline::JudgedCall) -> CallPreparationResult {
        let mut judged = self.locate_paths(judged).await;
        if let Some(shown) = &self.changed {
            judged = refuse_redirected(judged, shown);
        }
        let (judgement, result) = match judged {
            pipeline::JudgedCall::Ready { call, judgement } => {
                let answer = judgement.steps().iter().find(|step| step.answers).cloned();
                // Its paths are resolved again right before it runs.
                (judgement, Ok(StagedCall::allowed(call.release(), answer)))
            }
            pipeline::JudgedCall::Ask { call, judgement } => {
                let (env, origin) = (Arc::clone(&self.env), self.origin.clone());
                let request = approval::request(&self.session, &call, &judgement, env, origin).await;
                (judgement, Ok(StagedCall::gated(call.release(), request)))
            }
            pipeline::JudgedCall::Refused { error, judgement } => (judgement, Err(error)),
        };
        CallPreparationResult { judgement, result, changed: None, additions: HookAdditions::default() }
    }

    /// Records the locations of a call's paths if a user or a hook decides on it, so that the decision applies only to
    /// these files.
    async fn locate_paths(&self, judged: pipeline::JudgedCall) -> pipeline::JudgedCall {
        use pipeline::JudgedCall::{Ask, Ready, Refused};
        let env = self.env.as_ref();
        match judged {
            Ask { call, judgement } => Ask { call: call.locate(env).await, judgement },
            Ready { call, judgement } if self.hooks.is_some() || self.changed.is_some() => {
                Ready { call: call.locate(env).await, judgement }
            }
            judged @ (Ready { .. } | Refused { .. }) => judged,
        }
    }
}

/// Refuses a call with changed arguments if a path has another location than when the call was `shown`.
fn refuse_redirected(judged: pipeline::JudgedCall, shown: &PreparedCall) -> pipeline::JudgedCall {
    use pipeline::JudgedCall::{Ask, Ready, Refused};
    let Some(call) = judged.call() else { return judged };
    let is_redirected = |path: &Path, locations: &[PathBuf]| {
        call.locations().any(|(now, found)| now == path && found != locations)
    };
    let redirected = shown.locations().find(|(path, locations)| is_redirected(path, locations));
    let Some((path, _)) = redirected else { return judged };
    let error = gate::denied(call.name(), &gate::redirected(path));
    match judged {
        Ready { judgement, .. } | Ask { judgement, .. } => Refused { error, judgement },
        refused @ Refused { .. } => refused,
    }
}

/// Adds the questions of hooks in an earlier judgement to a new one.
fn with_questions_of_hooks(
    judged: pipeline::JudgedCall,
    earlier: &pipeline::JudgedCall,
) -> pipeline::JudgedCall {
    use pipeline::JudgedCall::{Ask, Ready, Refused};
    let (Ready { judgement: asked, .. } | Ask { judgement: asked, .. } | Refused { judgement: asked, .. }) =
        earlier;
    match judged {
        Ready { call, mut judgement } | Ask { call, mut judgement } => {
            asked
                .steps()
                .iter()
                .filter(|step| hooks::is_question(step))
                .for_each(|step| judgement.push(step.clone()));
            pipeline::JudgedCall::from_judgement(call, judgement)
        }
        refused @ Refused { .. } => refused,
    }
}

/// Completes when the grace period of a stopped call is over.
async fn grace_elapsed(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}

fn finished(key: CallKey, finished: Execution) -> InputKind {
    InputKind::ToolFinished { call: key, finished: Box::new(finished) }
}

/// Returns the result of a call that was stopped before its tool ran.
pub(super) fn not_run(key: CallKey) -> InputKind {
    finished(key, turn::not_run())
}

/// Returns the result of a call whose execution ended within the grace period; `None` means that it panicked.
fn result_of(
    key: CallKey,
    call: &PreparedCall,
    execution: Option<Execution>,
    was_stopped: bool,
) -> InputKind {
    match execution {
        // The tool reports only its cancellation, for which the machine has one text for all tools.
        Some(Execution { error: Some(ToolErrorKind::Cancelled), .. }) if was_stopped => {
            InputKind::ToolLost { call: key }
        }
        Some(execution) => finished(key, execution),
        None => finished(key, panicked(call)),
    }
}

/// Returns the result of a call that a gate refused when it was judged again.
fn denied(call: &PreparedCall, reason: &str) -> Execution {
    Execution::failed(call.call_id(), &gate::denied(call.name(), reason))
}

/// Returns the result of a call that panicked. The pipeline catches panics of the tool's call itself; this is for all
/// other parts of a tool.
fn panicked(call: &PreparedCall) -> Execution {
    tracing::error!(tool = call.name(), "a tool panicked");
    let message = format!("Tool error ({}): the tool panicked", call.name());
    Execution::failed(call.call_id(), &ToolError::failed(message))
}
