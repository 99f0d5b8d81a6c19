//! Handle of a session.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::{AdapterTimeout, Client, Fingerprint, ReasoningEffort, RetryPolicy};
use pintle_tools::{CommandTimeouts, ToolRegistry, TruncationLimits};
use tokio::sync::{mpsc, oneshot, watch};

use super::{MAX_COMMANDS, QueuedInput};
use crate::approval::ApprovalRequest;
use crate::driver::{Command, ConfigChange, ExactDecision, InputOwner, MessageQueue, SentCommand};
use crate::error::SessionError;
use crate::profile::ProviderProfile;
use crate::protocol::{
    BudgetUsage, CompactionReport, Decision, PolicyChange, Principal, QueuedMessages, SessionId,
    SessionState, Turn, TurnLimits, UserMessage,
};
use crate::record::{Record, Recorder};
use crate::subagent::Tree;

/// Handle of a session, for use from other tasks. Cheap to clone.
///
/// ```
/// use pintle_agent::{ProviderProfile, Session, SessionError};
/// # use pintle_llm::{Client, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let adapter = FakeAdapter::new("anthropic").answer("Fixed.").answer("Listed.");
/// # let client = Client::builder().provider(adapter).build()?;
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// # let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env).build()?;
/// // A task of the user interface, for instance, gets a handle.
/// let handle = session.handle();
/// let queued = handle.follow_up("List the change in the changelog.").await?;
///
/// // The run handles its input, and then the queued one.
/// let outcome = session.submit("Fix the typo.").await?;
/// assert_eq!((outcome.model_calls, queued.await?.text.as_str()), (2, "Listed."));
///
/// session.close().await;
/// assert!(matches!(handle.stop_turn(), Err(SessionError::Closed)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SessionHandle {
    link: Arc<dyn ErasedLink>,
    /// Principal that acts through this handle.
    pub(crate) principal: Option<Principal>,
}

/// The parts that all clones of a handle share.
#[derive(Debug)]
pub(crate) struct SessionLink {
    pub(crate) commands: mpsc::Sender<SentCommand>,
    pub(crate) shared: watch::Receiver<PublishedState>,
    pub(crate) client: Client,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) tree: Arc<Tree>,
}

/// A [`SessionLink`] without its type, at which checks of auto traits stop.
///
/// For each future that holds a handle, rustc proves that everything in the handle is `Send`. The types `Command` and `Tree`
/// refer to each other, and it walked through both each time: `pintle` compiled in 84 s instead of 51 s.
trait ErasedLink: fmt::Debug + Send + Sync {
    fn as_link(&self) -> &SessionLink;
}

impl ErasedLink for SessionLink {
    fn as_link(&self) -> &SessionLink {
        self
    }
}

impl SessionHandle {
    pub(crate) fn new(link: SessionLink, principal: Option<Principal>) -> Self {
        Self { link: Arc::new(link), principal }
    }

    pub(crate) fn link(&self) -> &SessionLink {
        self.link.as_link()
    }
}

/// State that the driver publishes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PublishedState {
    pub(crate) state: SessionState,
    pub(crate) history: Vec<Turn>,
    /// Number of times that entries of the history were replaced.
    pub(crate) repairs: u64,
    /// Calls that wait for a decision.
    pub(crate) approvals: Vec<Arc<ApprovalRequest>>,
    pub(crate) queued: QueuedMessages,
    /// Amounts spent by the session and its subagents.
    pub(crate) spent: BudgetUsage,
    /// Amounts spent by the session's own model calls, by model.
    pub(crate) models: BTreeMap<String, BudgetUsage>,
}

impl SessionHandle {
    /// Injects a message after the current round of tool calls, or with the next input if the session is idle.
    ///
    /// Returns once the session has accepted the message: it is queued and, if the session is recorded, also recorded. If
    /// the future is dropped earlier, the message may or may not be accepted.
    ///
    /// # Errors
    ///
    /// [`SessionError::Refused`] if the message is empty or has the path of an image, or if too many messages wait,
    /// [`SessionError::Unrecorded`], [`SessionError::Closed`] or [`SessionError::Full`].
    pub async fn steer(&self, message: impl Into<UserMessage>) -> Result<(), SessionError> {
        self.queue(MessageQueue::Steering, message.into(), None).await
    }

    /// Queues an input to handle after the current input. Returns like [`steer`](Self::steer) once it is accepted, with a future of
    /// its outcome.
    ///
    /// # Errors
    ///
    /// As for [`steer`](Self::steer).
    pub async fn follow_up(&self, message: impl Into<UserMessage>) -> Result<QueuedInput, SessionError> {
        let (owner, outcome) = oneshot::channel();
        self.queue(MessageQueue::FollowUps, message.into(), Some(owner)).await?;
        Ok(QueuedInput { outcome })
    }

    /// Sends a message to be handled as soon as possible: into the current run, like [`steer`](Self::steer), or else as an
    /// input, whose run has no owner. The session decides when it receives the message, so a message is not lost if the run
    /// ends meanwhile. Returns like [`steer`](Self::steer) once the message is accepted; events report the rest.
    ///
    /// # Errors
    ///
    /// As for [`steer`](Self::steer).
    pub async fn say(&self, message: impl Into<UserMessage>) -> Result<(), SessionError> {
        self.queue(MessageQueue::Soonest, message.into(), None).await
    }

    async fn queue(
        &self,
        queue: MessageQueue,
        message: UserMessage,
        owner: Option<InputOwner>,
    ) -> Result<(), SessionError> {
        let (accepted, answer) = oneshot::channel();
        let message = Box::new(message);
        self.send(Command::Message { queue, message, owner, accepted })?;
        // The driver drops unanswered commands only with the session.
        answer.await.unwrap_or(Err(SessionError::Closed))
    }

    /// Returns the steering messages and follow-ups in the queues of the session. Includes a message that was just sent only
    /// once the session has received it.
    #[must_use]
    pub fn queued(&self) -> QueuedMessages {
        self.link().shared.borrow().queued.clone()
    }

    /// Stops the current turn, and an input that waits for its end. The session stays usable. The table of
    /// [`Session`](crate::Session#ends) compares the ends.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn stop_turn(&self) -> Result<(), SessionError> {
        self.send(Command::Interrupt)
    }

    /// Stops all work and closes the session. [`Session::close`](crate::Session::close) also waits for the end.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn close(&self) -> Result<(), SessionError> {
        self.send(Command::Close)
    }

    /// Ends the session in this process and leaves it open. [`Session::detach`](crate::Session::detach) also waits for the end.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn detach(&self) -> Result<(), SessionError> {
        self.send(Command::Detach)
    }

    /// Ends the session in this process as if the process had died: all work that the session started is terminated, and
    /// nothing more is recorded.
    pub(crate) fn abandon(&self) -> Result<(), SessionError> {
        self.send(Command::Abandon)
    }

    /// Summarises the older part of the conversation: at once if the session is idle, else before the next model call, or
    /// right after the turn if no model call follows. A warning reports a compaction that does not start at once. After an
    /// interrupt, an error or at the limit of a budget, it waits for the next turn.
    ///
    /// Requests then start with the summary; the history stays complete. Does nothing if there is too little to summarise.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn compact(&self) -> Result<(), SessionError> {
        self.send(Command::Compact { done: None })
    }

    /// As [`compact`](Self::compact), and waits for the end of the compaction. Returns at once if the compaction does not
    /// start at once.
    ///
    /// # Errors
    ///
    /// As for [`compact`](Self::compact).
    pub async fn compact_and_wait(&self) -> Result<CompactionReport, SessionError> {
        let (done, answer) = oneshot::channel();
        self.send(Command::Compact { done: Some(done) })?;
        answer.await.map_err(|_dropped| SessionError::Closed)
    }

    /// Rewinds to the first `entries` entries of the [history](crate::Session::history), as if nothing had followed them.
    /// Calls whose results are cut off are answered as not run; queued messages stay queued, and spent amounts stay spent.
    /// The record stays complete, and until another input follows, another call restores the entries that this one cut off.
    /// Files are not touched.
    ///
    /// Returns once the session is rewound and, if it is recorded, the rewind is recorded.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRewound`] while a run is in progress, or if the history has fewer entries,
    /// [`SessionError::Unrecorded`], [`SessionError::Closed`] or [`SessionError::Full`].
    pub async fn rewind(&self, entries: usize) -> Result<(), SessionError> {
        let (done, answer) = oneshot::channel();
        self.send(Command::Rewind { turns: entries, done })?;
        answer.await.unwrap_or(Err(SessionError::Closed))
    }

    /// Sets the reasoning effort, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_reasoning_effort(&self, effort: Option<ReasoningEffort>) -> Result<(), SessionError> {
        self.send(Command::SetReasoningEffort(effort))
    }

    /// Sets the model within the profile, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_model(&self, model: impl Into<String>) -> Result<(), SessionError> {
        self.send(Command::SetModel(model.into()))
    }

    /// Sets the profile, and with it model, tools and prompt, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Profile`] if the client has no provider with the profile's name, [`SessionError::Closed`] or
    /// [`SessionError::Full`].
    pub fn set_profile(&self, profile: ProviderProfile) -> Result<(), SessionError> {
        self.link().client.adapter(Some(&profile.provider)).map_err(SessionError::Profile)?;
        self.send(Command::SetProfile(Box::new(profile)))
    }

    /// Sets the tools within the profile, from the next request on. Calls of an earlier request's response use the tools
    /// that this request offered.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_tools(&self, tools: ToolRegistry) -> Result<(), SessionError> {
        self.send(Command::SetTools(tools))
    }

    /// Sets the execution environment of the tools, from the next request on. If the working directory changes, the
    /// prompt's description of the environment is gathered again.
    ///
    /// The session only initialises and cleans up the environment that it was built with. Unless `env` wraps that
    /// environment, the embedding application has to do so. Background commands keep running in their environment.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_environment(&self, env: Arc<dyn ExecutionEnvironment>) -> Result<(), SessionError> {
        self.send(Command::SetEnvironment(env))
    }

    /// Sets the limits of the turn machine, from now on. A run that a limit has paused continues with the next input.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_limits(&self, limits: TurnLimits) -> Result<(), SessionError> {
        self.send(Command::SetLimits(Box::new(limits)))
    }

    /// Sets the time limits of commands, from the next call on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_command_timeouts(&self, timeouts: CommandTimeouts) -> Result<(), SessionError> {
        self.configure(ConfigChange::CommandTimeouts(timeouts))
    }

    /// Sets the limits on the tool output that is sent to the model, from the next call on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_tool_output(&self, limits: TruncationLimits) -> Result<(), SessionError> {
        self.configure(ConfigChange::ToolOutput(limits))
    }

    /// Sets the retry policy of model calls, from the next model call on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_retry(&self, policy: RetryPolicy) -> Result<(), SessionError> {
        self.configure(ConfigChange::Retry(policy))
    }

    /// Sets the time limits of model calls, from the next model call on. The adapter's connection time-out is unchanged.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_model_timeout(&self, timeout: AdapterTimeout) -> Result<(), SessionError> {
        self.configure(ConfigChange::ModelTimeout(timeout))
    }

    /// Sets the maximum size of a model response in bytes, from the next model call on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_response_limit(&self, bytes: u64) -> Result<(), SessionError> {
        self.configure(ConfigChange::ResponseLimit(bytes))
    }

    /// Returns a handle for a principal. All inputs through it are recorded with the principal's name.
    #[must_use]
    pub fn acting_as(&self, principal: Principal) -> Self {
        Self { principal: Some(principal), ..self.clone() }
    }

    /// Records a change of the session's permissions, for the layer that judges its calls. That layer should apply the
    /// change after this has returned. Calls that were denied may be asked about again.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unrecorded`], [`SessionError::Closed`] or [`SessionError::Full`].
    pub async fn record_policy(&self, change: PolicyChange) -> Result<(), SessionError> {
        let (done, answer) = oneshot::channel();
        let by = change.by.clone().or_else(|| self.principal.clone());
        self.send(Command::RecordPolicy { change: Box::new(change.with_principal(by)), done })?;
        answer.await.unwrap_or(Err(SessionError::Closed))
    }

    /// Returns the calls that wait for a decision, in the order in which the model made them.
    #[must_use]
    pub fn approvals(&self) -> Vec<Arc<ApprovalRequest>> {
        self.link().shared.borrow().approvals.clone()
    }

    /// Returns the calls that wait for a decision in this session and in its subagents, each with the id of its session.
    /// Calls of a session precede the calls of its subagents, in the order in which the model made them.
    /// [`SessionHandle::of_session`] returns the handle that decides on a call.
    #[must_use]
    pub fn tree_approvals(&self) -> Vec<(SessionId, Arc<ApprovalRequest>)> {
        self.link().tree.approvals_of(&self.link().commands)
    }

    /// Decides on a call that waits for a decision. Only the first decision counts, and it applies once.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchApproval`] if no call with this id is waiting, [`SessionError::Closed`] or
    /// [`SessionError::Full`].
    pub fn decide(&self, call_id: &str, decision: Decision) -> Result<(), SessionError> {
        let waiting = self.approvals().into_iter().find(|request| request.call_id == call_id);
        let request = waiting.ok_or_else(|| SessionError::NoSuchApproval(call_id.to_owned()))?;
        self.send_decision(&request.call_id, request.fingerprint, decision)
    }

    /// Decides on a call, like [`SessionHandle::decide`], but only if it has this
    /// [fingerprint](ApprovalRequest::fingerprint). For callers that saw the arguments elsewhere.
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
        let matches =
            |request: &Arc<ApprovalRequest>| request.call_id == call_id && request.fingerprint == fingerprint;
        if !self.approvals().iter().any(matches) {
            return Err(SessionError::NoSuchApproval(call_id.to_owned()));
        }
        self.send_decision(call_id, fingerprint, decision)
    }

    /// Returns the handle of another session in the same tree, such as a subagent whose id an event contains; `None` once
    /// that session no longer accepts commands. With the handle, the embedding application can decide on the calls of a
    /// subagent, steer it, and stop it.
    #[must_use]
    pub fn of_session(&self, id: &SessionId) -> Option<Self> {
        let handle = self.link().tree.handle(id)?;
        Some(Self { principal: self.principal.clone(), ..handle })
    }

    /// Returns the record of the session, like [`Session::record`](crate::Session::record).
    ///
    /// # Errors
    ///
    /// As for [`Session::record`](crate::Session::record).
    pub fn record(&self) -> Result<Record, SessionError> {
        self.link().recorder.as_ref().map(|recorder| recorder.record()).ok_or(SessionError::NotRecorded)
    }

    /// Returns the records of the whole tree, like [`Session::tree_records`](crate::Session::tree_records), whichever of
    /// its sessions this handle belongs to.
    ///
    /// # Errors
    ///
    /// As for [`Session::record`](crate::Session::record).
    pub fn tree_records(&self) -> Result<Vec<Record>, SessionError> {
        let records = self.link().tree.records();
        if records.is_empty() { Err(SessionError::NotRecorded) } else { Ok(records) }
    }

    fn configure(&self, change: ConfigChange) -> Result<(), SessionError> {
        self.send(Command::Configure(Box::new(change)))
    }

    fn send_decision(
        &self,
        call_id: &str,
        exactly: Fingerprint,
        decision: Decision,
    ) -> Result<(), SessionError> {
        let by = self.principal.clone();
        let decided = ExactDecision { call_id: call_id.to_owned(), exactly, decision, by };
        self.send(Command::Decide(Box::new(decided)))
    }

    /// Returns the command with the principal that acts through this handle.
    pub(crate) fn attribute(&self, command: Command) -> SentCommand {
        SentCommand { command, by: self.principal.clone().map(Box::new) }
    }

    pub(crate) fn send(&self, command: Command) -> Result<(), SessionError> {
        self.link().commands.try_send(self.attribute(command)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SessionError::Full(MAX_COMMANDS),
            mpsc::error::TrySendError::Closed(_) => SessionError::Closed,
        })
    }
}
