//! Hooks: code of an application that runs at certain points of a session (design of the layers above, section 2).

mod event;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use pintle_tools::gate::{Judgement, Permission};
use pintle_tools::pipeline::{Execution, PreparedCall};
use serde_json::Value;

pub use self::event::HookEvent;
use crate::approval::ApprovalRequest;
use crate::protocol::{CompactionTrigger, Decision, SessionEndReason, SessionId, SubagentOrigin};

/// Runs at certain points of a session. Every method does nothing by default.
///
/// A subagent is a separate session, with the hooks of its parent and an [origin](HookSession::origin).
///
/// The answers of hooks are recorded, so a replay calls no hook. After a crash, a hook may run a second time at the same
/// point. A hook that panics gives no answer. A session waits for its hooks, which should limit their own run time; the
/// future is dropped when the turn is stopped.
///
/// A hook can narrow the permissions of the gates, and never widen them. It may answer a question that a mode asks, but not
/// a question that a rule asks, and it cannot lift a denial.
#[async_trait]
pub trait Hooks: fmt::Debug + Send + Sync {
    /// Runs when a session starts or resumes. Its answer is added to the first input that follows.
    async fn session_started(&self, session: &HookSession, source: SessionSource) -> HookContext {
        let _ = (session, source);
        HookContext::default()
    }

    /// Runs when a session is closed or suspended, after all work that it started has ended.
    async fn session_ended(&self, session: &HookSession, reason: SessionEndReason) {
        let _ = (session, reason);
    }

    /// Runs before a user input is accepted: a prompt, a steering message or a follow-up. A subagent's task is not a user
    /// input.
    async fn before_input(&self, session: &HookSession, text: &str) -> InputAnswer {
        let _ = (session, text);
        InputAnswer::default()
    }

    /// Runs before a call, after the gates have judged it without denying it.
    async fn before_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        judgement: &Judgement,
    ) -> CallAnswer {
        let _ = (session, call, judgement);
        CallAnswer::default()
    }

    /// Runs before a user is asked about a call. An answer decides on the call instead of the user, within the limits of
    /// [`before_call`](Self::before_call).
    async fn before_approval(&self, session: &HookSession, request: &ApprovalRequest) -> Option<Decision> {
        let _ = (session, request);
        None
    }

    /// Runs after a call that ran for `duration`, whether it failed or not.
    async fn after_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        execution: &Execution,
        duration: Duration,
    ) -> ResultAnswer {
        let _ = (session, call, execution, duration);
        ResultAnswer::default()
    }

    /// Runs before a run ends because the model has answered. `sent_on` is how often hooks have continued this run. Once it
    /// reaches [`TurnLimits::max_hook_continuations`](crate::TurnLimits), hooks can no longer continue the run.
    async fn before_end(&self, session: &HookSession, text: &str, sent_on: u32) -> EndAnswer {
        let _ = (session, text, sent_on);
        EndAnswer::default()
    }

    /// Runs before the older part of the conversation is summarised. A returned reason prevents the compaction.
    async fn before_compaction(&self, session: &HookSession, trigger: CompactionTrigger) -> Option<String> {
        let _ = (session, trigger);
        None
    }
}

const _: fn(&dyn Hooks) = |_| {};

/// Session that a hook runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookSession {
    /// Id of the session.
    pub id: SessionId,
    /// Working directory of its tools.
    pub directory: std::path::PathBuf,
    /// Origin of a subagent; `None` for the session that the embedding application built.
    pub origin: Option<SubagentOrigin>,
}

impl HookSession {
    /// Creates the description of a session.
    #[must_use]
    pub fn new(
        id: SessionId,
        directory: impl Into<std::path::PathBuf>,
        origin: Option<SubagentOrigin>,
    ) -> Self {
        Self { id, directory: directory.into(), origin }
    }
}

/// How a session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionSource {
    /// The session is new.
    New,
    /// The session resumes from its record.
    Resumed,
    /// The session starts with the history of another session.
    Forked,
}

/// Text that a hook adds for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookContext(pub Option<String>);

/// Answer of [`Hooks::before_input`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputAnswer {
    /// Reason to refuse the input; `None` accepts it.
    pub refused: Option<String>,
    /// Text that is added to the input.
    pub context: Option<String>,
}

/// Answer of [`Hooks::before_call`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CallAnswer {
    /// Verdict of the hook; `None` for no verdict. [`Allow`](Permission::Allow) answers the question of a mode.
    pub permission: Option<Permission>,
    /// Reason of a question or a denial.
    pub reason: Option<String>,
    /// New arguments of the call, an object. They are validated and judged like a new call, and hooks do not run again.
    pub arguments: Option<Value>,
    /// Name of the hook, for the record.
    pub hook: Option<String>,
    /// Text that is added to the result of the call, also if the call is denied.
    pub context: Option<String>,
    /// Reason to end the run with this round. The call is denied; other calls of the round still run.
    pub stop: Option<String>,
}

/// Answer of [`Hooks::after_call`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultAnswer {
    /// Text for the model in place of the result.
    pub replacement: Option<String>,
    /// Text that is added to the result.
    pub context: Option<String>,
    /// Reason to end the run with this round.
    pub stop: Option<String>,
}

/// Answer of [`Hooks::before_end`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndAnswer {
    /// Message with the remaining work, which continues the run; `None` ends the run.
    pub send_on: Option<String>,
}

impl InputAnswer {
    /// Refuses the input.
    #[must_use]
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self { refused: Some(reason.into()), ..Self::default() }
    }

    /// Adds a text to the input.
    #[must_use]
    pub fn add(context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), ..Self::default() }
    }
}

impl CallAnswer {
    /// Gives a verdict on the call.
    #[must_use]
    pub fn judge(permission: Permission, reason: Option<String>) -> Self {
        Self { permission: Some(permission), reason, ..Self::default() }
    }

    /// Changes the arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Option<Value>) -> Self {
        self.arguments = arguments;
        self
    }

    /// Adds a text to the result.
    #[must_use]
    pub fn with_context(mut self, context: Option<String>) -> Self {
        self.context = context;
        self
    }

    /// Denies the call and ends the run.
    #[must_use]
    pub fn stop(reason: impl Into<String>) -> Self {
        Self { stop: Some(reason.into()), ..Self::default() }
    }

    /// Names the hook.
    #[must_use]
    pub fn with_hook(mut self, hook: impl Into<String>) -> Self {
        self.hook = Some(hook.into());
        self
    }
}

impl ResultAnswer {
    /// Replaces the result.
    #[must_use]
    pub fn replace(text: impl Into<String>) -> Self {
        Self { replacement: Some(text.into()), ..Self::default() }
    }

    /// Adds a text to the result.
    #[must_use]
    pub fn add(context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), ..Self::default() }
    }

    /// Ends the run.
    #[must_use]
    pub fn stop(reason: impl Into<String>) -> Self {
        Self { stop: Some(reason.into()), ..Self::default() }
    }
}

impl EndAnswer {
    /// Continues the run with a message to the model.
    #[must_use]
    pub fn send_on(message: impl Into<String>) -> Self {
        Self { send_on: Some(message.into()) }
    }
}
