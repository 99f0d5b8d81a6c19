//! Hooks of the session: where they run, and how their answers become inputs.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_llm::{Error, ErrorKind, Retry};
use pintle_tools::gate::{Judgement, JudgementStep, Permission, Verdict};
use pintle_tools::pipeline::{Execution, PreparedCall};
use serde_json::Value;
use tokio::sync::{OnceCell, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::approval::end_run;
use super::{Command, Driver, Report, SentCommand};
use crate::approval::ApprovalRequest;
use crate::error::SessionError;
use crate::hooks::{CallAnswer, HookContext, HookSession, Hooks, ResultAnswer, SessionSource};
use crate::protocol::{CompactionTrigger, Decision, InputKind, SessionEndReason, add_context};

/// Hooks of a session, with the description of the session that they receive. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct HookPoint {
    hooks: Arc<dyn Hooks>,
    session: Arc<HookSession>,
    /// Runs the hook for the start once, however many inputs wait for it.
    started: Arc<OnceCell<()>>,
    /// Context that this hook adds to the first input.
    context: Arc<Mutex<Option<String>>>,
}

/// User input with the answer of its hooks.
#[derive(Debug)]
pub(super) struct HookedInput {
    input: UserInput,
    /// Reason, if the input is refused.
    refused: Option<String>,
}

/// Input of the user.
#[derive(Debug)]
pub(super) enum UserInput {
    /// Command of the embedding application.
    Command(SentCommand),
    /// Posted input.
    Posted(Box<super::posted::Delivery>),
}

impl UserInput {
    fn text(&mut self) -> Option<&mut String> {
        match self {
            Self::Command(SentCommand {
                command: Command::Submit { message, .. } | Command::Message { message, .. },
                ..
            }) => Some(&mut message.text),
            Self::Command(_) => None,
            Self::Posted(delivery) => delivery.text(),
        }
    }
}

impl HookPoint {
    pub(super) fn new(hooks: Arc<dyn Hooks>, session: HookSession) -> Self {
        Self { hooks, session: Arc::new(session), started: Arc::default(), context: Arc::default() }
    }

    pub(super) fn hooks(&self) -> Arc<dyn Hooks> {
        Arc::clone(&self.hooks)
    }

    async fn session_started(&self, source: SessionSource) {
        self.started
            .get_or_init(|| async {
                let HookContext(context) =
                    answer(async { self.hooks.session_started(&self.session, source).await }).await;
                *self.context.lock().unwrap_or_else(PoisonError::into_inner) = context;
            })
            .await;
    }

    pub(super) async fn session_ended(&self, reason: SessionEndReason) {
        answer(async { self.hooks.session_ended(&self.session, reason).await }).await;
    }

    /// Runs the hooks for an input. Returns why it is refused, or adds their context to it.
    async fn before_input(&self, text: &mut String, source: SessionSource) -> Option<String> {
        self.session_started(source).await;
        // The task of a subagent is not a user input.
        if self.session.origin.is_none() {
            let given = answer(async { self.hooks.before_input(&self.session, text).await }).await;
            if given.refused.is_some() {
                return given.refused;
            }
            add_context(text, given.context.as_deref());
        }
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner).take();
        add_context(text, context.as_deref());
        None
    }

    pub(super) async fn before_call(&self, call: &PreparedCall, judgement: &Judgement) -> CallAnswer {
        answer(async { self.hooks.before_call(&self.session, call, judgement).await }).await
    }

    /// Runs the hooks for a request for approval. Their decision counts like the decision of a hook before a call.
    pub(super) async fn before_approval(&self, request: &ApprovalRequest) -> CallAnswer {
        let decision = answer(async { self.hooks.before_approval(&self.session, request).await }).await;
        match decision {
            None => CallAnswer::default(),
            Some(Decision::Approve) => CallAnswer::judge(Permission::Allow, None),
            Some(Decision::Deny { reason }) => CallAnswer::judge(Permission::Deny, reason),
            Some(Decision::Change { arguments }) => {
                CallAnswer::judge(Permission::Allow, None).with_arguments(Some(arguments))
            }
        }
    }

    /// Runs the hooks for a result, and changes the text that the model reads.
    pub(super) async fn after_call(
        &self,
        call: &PreparedCall,
        execution: &mut Execution,
        duration: Duration,
    ) {
        let given =
            answer(async { self.hooks.after_call(&self.session, call, execution, duration).await }).await;
        let ResultAnswer { replacement, context, stop } = given;
        if let Some(replacement) = replacement {
            execution.result.content = Value::String(replacement);
        }
        if let Value::String(text) = &mut execution.result.content {
            add_context(text, context.as_deref());
        }
        if let Some(reason) = stop {
            end_run(execution, ended_by_hook(&reason));
        }
    }

    /// Runs the hooks before a run ends. Returns the remaining work for the model, if any.
    pub(super) async fn before_end(&self, text: &str, sent_on: u32) -> Option<String> {
        answer(async { self.hooks.before_end(&self.session, text, sent_on).await }).await.send_on
    }

    /// Runs the hooks before a compaction.
    ///
    /// # Errors
    ///
    /// The error of a model call that a hook prevents.
    pub(super) async fn before_compaction(&self, trigger: CompactionTrigger) -> Result<(), Error> {
        match answer(async { self.hooks.before_compaction(&self.session, trigger).await }).await {
            None => Ok(()),
            Some(reason) => {
                let message = format!("a hook does not let it happen: {reason}");
                Err(Error::new(ErrorKind::Configuration, message).with_retry(Retry::Never))
            }
        }
    }
}

/// Name of the steps of hooks in a judgement.
const STEP: &str = "hook";

/// Adds the verdict of a hook to a judgement.
pub(super) fn add_answer(judgement: &mut Judgement, given: &CallAnswer) {
    let permission = if given.stop.is_some() { Some(Permission::Deny) } else { given.permission };
    let Some(permission) = permission else { return };
    let reason = given.reason.clone().or_else(|| given.stop.clone());
    let reason = reason.unwrap_or_else(|| "a hook says so".to_owned());
    let verdict = match permission {
        Permission::Allow => Verdict::ALLOW.answering(),
        Permission::Ask => Verdict::ask(reason),
        Permission::Deny => match given.hook.as_ref().filter(|hook| !reason.contains(hook.as_str())) {
            Some(hook) => Verdict::deny(format!("{reason} (hook {hook})")),
            None => Verdict::deny(reason),
        },
    };
    let verdict = match &given.hook {
        Some(hook) => verdict.with_rule(hook),
        None => verdict,
    };
    judgement.push(JudgementStep::new(STEP, verdict));
}

/// Returns whether a step is the question of a hook.
pub(super) fn is_question(step: &JudgementStep) -> bool {
    step.gate == STEP && step.permission == Permission::Ask
}

/// Returns the answer of a hook; the default if it panics.
async fn answer<T: Default>(running: impl Future<Output = T>) -> T {
    AssertUnwindSafe(running).catch_unwind().await.unwrap_or_else(|_panic| {
        tracing::error!("a hook panicked");
        T::default()
    })
}

/// Returns why a run ends, for its outcome.
pub(super) fn ended_by_hook(reason: &str) -> String {
    format!("a hook ended the run: {reason}")
}

impl Driver {
    /// Runs the hooks for the start of the session. Only the first input waits for them.
    pub(super) fn start_hooks(&mut self) {
        if let Some(hooks) = self.hooks.clone() {
            let source = self.source();
            let task = async move { hooks.session_started(source).await };
            self.spawn(task.instrument(self.trace.session()));
        }
    }

    fn source(&self) -> SessionSource {
        if self.is_resuming {
            SessionSource::Resumed
        } else if self.machine.is_fork() {
            SessionSource::Forked
        } else {
            SessionSource::New
        }
    }

    /// Runs the hooks for a user input in a task, which reports the input with their answer. Returns the input if it
    /// has no hooks.
    pub(super) fn run_input_hooks(&mut self, mut input: UserInput) -> Option<UserInput> {
        let (Some(hooks), Some(_)) = (self.hooks.clone(), input.text()) else { return Some(input) };
        let (source, reports, stopped) = (self.source(), self.reports.clone(), self.hooked_inputs.clone());
        let task = async move {
            let refused = match input.text() {
                Some(text) => {
                    let answered = stopped.run_until_cancelled(hooks.before_input(text, source)).await;
                    answered.unwrap_or_else(|| {
                        Some("the session was stopped before a hook had answered".to_owned())
                    })
                }
                None => None,
            };
            let hooked = Box::new(HookedInput { input, refused });
            // If the driver is gone, the input is no longer needed.
            let _ = reports.send(Report::Hooked(hooked)).await;
        };
        self.spawn(task.instrument(self.trace.session()));
        None
    }

    /// Stops the hooks that run for inputs. These inputs are refused.
    pub(super) fn stop_input_hooks(&mut self) {
        std::mem::replace(&mut self.hooked_inputs, CancellationToken::new()).cancel();
    }

    /// Handles a user input after its hooks.
    pub(super) async fn take_hooked(&mut self, hooked: HookedInput) {
        let HookedInput { input, refused } = hooked;
        match (input, refused) {
            (UserInput::Command(command), None) => self.take_command(command).await,
            (UserInput::Posted(delivery), None) => self.take_posted(*delivery).await,
            (UserInput::Command(SentCommand { command, by }), Some(reason)) => {
                if let Command::Submit { run, owner, .. } = command {
                    self.runs.add(run, owner);
                    self.author = by.map(|by| *by);
                    self.step(InputKind::InputRefused { run: Some(run), reason }).await;
                } else if let Command::Message { accepted, .. } = command {
                    refuse(accepted, reason);
                }
            }
            (UserInput::Posted(delivery), Some(reason)) => self.refuse_posted(*delivery, reason).await,
        }
    }
}

fn refuse(accepted: oneshot::Sender<Result<(), SessionError>>, reason: String) {
    // A caller that has stopped waiting needs no answer.
    let _ = accepted.send(Err(SessionError::Refused(reason)));
}
