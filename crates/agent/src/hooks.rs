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
/// A subagent is a session of its own, with the hooks of its parent and an [origin](HookSession::origin).
///
/// What a hook answers is on record, so a replay calls none. After a crash a hook may run a second time for the same thing.
/// A hook that panics has answered nothing. A session waits for its hooks, which should limit their time themselves; the
/// future is dropped when the turn is stopped.
///
/// A hook can narrow what the gates allow, and never widen it: it may answer the question of a mode, and neither that of a
/// rule nor a denial.
#[async_trait]
pub trait Hooks: fmt::Debug + Send + Sync {
    /// Runs when a session begins, or goes on. Its answer is added to the first input that follows.
    async fn session_started(&self, session: &HookSession, source: SessionSource) -> HookContext {
        let _ = (session, source);
        HookContext::default()
    }

    /// Runs when a session is closed, or left to go on later, after everything that it started has ended.
    async fn session_ended(&self, session: &HookSession, reason: SessionEndReason) {
        let _ = (session, reason);
    }

    /// Runs before an input of the user is taken: a prompt, a steering message, a follow-up. The task of a subagent is none.
    async fn before_input(&self, session: &HookSession, text: &str) -> InputAnswer {
        let _ = (session, text);
        InputAnswer::default()
    }

    /// Runs before a call, after the gates have judged it and did not deny it.
    async fn before_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        judgement: &Judgement,
    ) -> CallAnswer {
        let _ = (session, call, judgement);
        CallAnswer::default()
    }

    /// Runs before a person is asked about a call. An answer decides on it, in the place of that person, as far as
    /// [`before_call`](Self::before_call) could.
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

    /// Runs before a run ends because the model has answered. `sent_on` says how often hooks have sent the model on in this
    /// run; after [`TurnLimits::max_hook_continuations`](crate::TurnLimits) that is not possible any more.
    async fn before_end(&self, session: &HookSession, text: &str, sent_on: u32) -> EndAnswer {
        let _ = (session, text, sent_on);
        EndAnswer::default()
    }

    /// Runs before the older part of the conversation is summarised. Returns why it must not be, if it must not.
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
    /// Subagent that it is; `None` for the session that the embedding application built.
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

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionSource {
    /// It is new.
    New,
    /// It goes on from its record.
    Resumed,
    /// It has the history of another one.
    Forked,
}

/// Text that a hook adds for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookContext(pub Option<String>);

/// Answer of [`Hooks::before_input`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputAnswer {
    /// Why the input is not taken, if it is not.
    pub refused: Option<String>,
    /// Text that is added to the input.
    pub context: Option<String>,
}

/// Answer of [`Hooks::before_call`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CallAnswer {
    /// What the hook says about the call; nothing if `None`. [`Allow`](Permission::Allow) answers the question of a mode.
    pub permission: Option<Permission>,
    /// Reason of a question or a denial.
    pub reason: Option<String>,
    /// Arguments to run it with, an object. They are validated and judged as those of a new call, and hooks do not run again.
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
    /// What the model has still to do; the run ends if `None`.
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
    /// Says something about the call.
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
    /// Sends the model on.
    #[must_use]
    pub fn send_on(message: impl Into<String>) -> Self {
        Self { send_on: Some(message.into()) }
    }
}
