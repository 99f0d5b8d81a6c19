//! What reaches a session from anywhere.

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::{Client, Fingerprint, ReasoningEffort};
use pintle_tools::ToolRegistry;
use tokio::sync::{mpsc, watch};

use super::MAX_COMMANDS;
use crate::approval::ApprovalRequest;
use crate::config::TurnLimits;
use crate::driver::{Command, Decided};
use crate::error::SessionError;
use crate::id::SessionId;
use crate::profile::ProviderProfile;
use crate::record::{Record, Recorder};
use crate::subagent::Tree;
use crate::turn::{SessionState, Turn};

/// Reaches a session from anywhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) shared: watch::Receiver<Shared>,
    pub(crate) client: Client,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) tree: Arc<Tree>,
}

/// What the driver shows of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) state: SessionState,
    pub(crate) history: Vec<Turn>,
    /// How often entries of it were replaced.
    pub(crate) repairs: u64,
    /// The calls that wait for a decision.
    pub(crate) asking: Vec<Arc<ApprovalRequest>>,
}

/// A person's word on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may run, once.
    Approve,
    /// It may not; the reason goes to the model.
    Deny {
        /// Why.
        reason: Option<String>,
    },
}

impl SessionHandle {
    /// Gives the model a message after the current round of tool calls; with the next input if the session is idle.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn steer(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.send(Command::Steer(text.into()))
    }

    /// Queues an input for after the current one.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn follow_up(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.send(Command::FollowUp(text.into()))
    }

    /// Stops the current turn, and an input that waits for its end; the session goes on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn interrupt(&self) -> Result<(), SessionError> {
        self.send(Command::Interrupt)
    }

    /// Stops everything and closes the session (loop specification, appendix B).
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn abort(&self) -> Result<(), SessionError> {
        self.send(Command::Abort)
    }

    /// Changes how much the model reasons, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_reasoning_effort(&self, effort: Option<ReasoningEffort>) -> Result<(), SessionError> {
        self.send(Command::SetReasoningEffort(effort))
    }

    /// Changes the model within the profile, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_model(&self, model: impl Into<String>) -> Result<(), SessionError> {
        self.send(Command::SetModel(model.into()))
    }

    /// Changes the profile, and with it model, tools and prompt, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Profile`] if the client has no provider of the profile's name, else as for the others.
    pub fn set_profile(&self, profile: ProviderProfile) -> Result<(), SessionError> {
        self.client.adapter(Some(&profile.provider)).map_err(SessionError::Profile)?;
        self.send(Command::SetProfile(Box::new(profile)))
    }

    /// Changes the tools within the profile, from the next request on. Calls of an answer that was asked for before mean
    /// the tools that it was offered.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_tools(&self, tools: ToolRegistry) -> Result<(), SessionError> {
        self.send(Command::SetTools(tools))
    }

    /// Has tools run behind other wrappers of the place, from the next request on. What the prompt says of the place is
    /// gathered anew if the working directory is another one.
    ///
    /// The session takes care of the place that it was built with and of no other: one that is not around it is the
    /// host's to initialise and to clean up. Commands in the background go on where they run.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_environment(&self, env: Arc<dyn ExecutionEnvironment>) -> Result<(), SessionError> {
        self.send(Command::SetEnvironment(env))
    }

    /// Changes the limits, from now on. A run that a limit has paused goes on with the next input.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_limits(&self, limits: TurnLimits) -> Result<(), SessionError> {
        self.send(Command::SetLimits(Box::new(limits)))
    }

    /// The calls that wait for a decision, in no order.
    #[must_use]
    pub fn approvals(&self) -> Vec<Arc<ApprovalRequest>> {
        self.shared.borrow().asking.clone()
    }

    /// Decides on a call that waits for it. The first decision counts, and it counts once.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchApproval`] if none of this id waits, else as for the others.
    pub fn decide(&self, call_id: &str, decision: Decision) -> Result<(), SessionError> {
        let waiting = self.approvals().into_iter().find(|request| request.call_id == call_id);
        let request = waiting.ok_or_else(|| SessionError::NoSuchApproval(call_id.to_owned()))?;
        self.send_decision(&request.call_id, request.fingerprint, decision)
    }

    /// As [`SessionHandle::decide`], for whoever has seen the arguments elsewhere: it counts only for a call with this
    /// very [fingerprint](ApprovalRequest::fingerprint).
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::decide`].
    pub fn decide_exactly(
        &self,
        call_id: &str,
        fingerprint: Fingerprint,
        decision: Decision,
    ) -> Result<(), SessionError> {
        let is_this =
            |request: &Arc<ApprovalRequest>| request.call_id == call_id && request.fingerprint == fingerprint;
        if !self.approvals().iter().any(is_this) {
            return Err(SessionError::NoSuchApproval(call_id.to_owned()));
        }
        self.send_decision(call_id, fingerprint, decision)
    }

    /// A handle of a session in the same tree: of a subagent, whose session's id an event has told. `None` once it
    /// takes no commands any more. With it a host decides on the calls of a subagent, and steers or stops it.
    #[must_use]
    pub fn of_session(&self, id: &SessionId) -> Option<Self> {
        self.tree.handle(id)
    }

    /// As [`Session::record`](crate::Session::record).
    ///
    /// # Errors
    ///
    /// As for [`Session::record`](crate::Session::record).
    pub fn record(&self) -> Result<Record, SessionError> {
        self.recorder.as_ref().and_then(|recorder| recorder.record()).ok_or(SessionError::NotRecorded)
    }

    /// As [`Session::tree_records`](crate::Session::tree_records): of the whole tree, whichever of its sessions this reaches.
    ///
    /// # Errors
    ///
    /// As for [`Session::record`](crate::Session::record).
    pub fn tree_records(&self) -> Result<Vec<Record>, SessionError> {
        let records = self.tree.records();
        if records.is_empty() { Err(SessionError::NotRecorded) } else { Ok(records) }
    }

    fn send_decision(
        &self,
        call_id: &str,
        exactly: Fingerprint,
        decision: Decision,
    ) -> Result<(), SessionError> {
        let decided = Decided { call_id: call_id.to_owned(), exactly, decision };
        self.send(Command::Decide(Box::new(decided)))
    }

    pub(crate) fn send(&self, command: Command) -> Result<(), SessionError> {
        self.commands.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SessionError::Full(MAX_COMMANDS),
            mpsc::error::TrySendError::Closed(_) => SessionError::Closed,
        })
    }
}
