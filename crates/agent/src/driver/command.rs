//! Commands of the embedding application.

use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::{AdapterTimeout, ReasoningEffort, RetryPolicy};
use pintle_tools::{CommandTimeouts, ToolRegistry, TruncationLimits};
use tokio::sync::oneshot;

use super::hooks::UserInput;
use super::{Driver, ExactDecision, InputOwner};
use crate::config::{ModelTimeout, ResponseLimit, SessionConfig, SessionRetry};
use crate::error::SessionError;
use crate::profile::ProviderProfile;
use crate::protocol::{
    Change, CompactionReport, InputKind, PolicyChange, Principal, RunId, SessionState, TurnLimits,
    UserMessage,
};
use crate::session::{RunOwner, SessionBuilder};
use crate::subagent::{Shutdown, SubagentHandle};

/// Command with the principal that sent it.
#[derive(Debug)]
pub(crate) struct SentCommand {
    pub(crate) command: Command,
    pub(crate) by: Option<Box<Principal>>,
}

/// Command to the driver. Large commands are boxed, since a channel allocates a block of them from the start.
#[derive(Debug)]
pub(crate) enum Command {
    Submit {
        run: RunId,
        message: Box<UserMessage>,
        owner: RunOwner,
    },
    /// Message for one of the queues; answered once it is recorded.
    Message {
        queue: MessageQueue,
        message: Box<UserMessage>,
        /// Caller that waits for the outcome of a follow-up.
        owner: Option<InputOwner>,
        accepted: oneshot::Sender<Result<(), SessionError>>,
    },
    Interrupt,
    Close,
    /// Ends this process's part of the session, and leaves the session open.
    Suspend,
    /// Ends this process's part of the session as if the process had died.
    Abandon,
    /// Suspends a session that is idle or stops its turn, and abandons one with a run.
    Detach,
    /// Answered at the end of the compaction, if a caller waits for it.
    Compact {
        done: Option<oneshot::Sender<CompactionReport>>,
    },
    /// Rewinds to this many entries of the history; answered once that is recorded.
    Rewind {
        turns: usize,
        done: oneshot::Sender<Result<(), SessionError>>,
    },
    /// Changes the session's permissions; answered once the change is recorded.
    RecordPolicy {
        change: Box<PolicyChange>,
        done: oneshot::Sender<Result<(), SessionError>>,
    },
    SetReasoningEffort(Option<ReasoningEffort>),
    SetModel(String),
    SetProfile(Box<ProviderProfile>),
    SetTools(ToolRegistry),
    SetEnvironment(Arc<dyn ExecutionEnvironment>),
    SetLimits(Box<TurnLimits>),
    /// Applies to the next call.
    Configure(Box<ConfigChange>),
    Decide(Box<ExactDecision>),
    /// Spawns a subagent of a type.
    Spawn {
        kind: String,
        task: String,
        done: oneshot::Sender<Result<SubagentHandle, SessionError>>,
    },
    /// Replies with a builder of the fork, or with the number of history entries if there are too few.
    Fork {
        turns: usize,
        reply: oneshot::Sender<Result<Box<SessionBuilder>, usize>>,
    },
}

/// Queue of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageQueue {
    Steering,
    FollowUps,
    /// Steering message during a run; otherwise the input of a new run.
    Soonest,
}

/// Change of the part of the configuration that the driver applies, without the machine.
#[derive(Clone, Debug)]
pub(crate) enum ConfigChange {
    CommandTimeouts(CommandTimeouts),
    ToolOutput(TruncationLimits),
    Retry(RetryPolicy),
    ModelTimeout(AdapterTimeout),
    /// In bytes.
    ResponseLimit(u64),
}

impl ConfigChange {
    fn apply_to(self, config: &mut SessionConfig) {
        match self {
            Self::CommandTimeouts(timeouts) => config.command_timeouts = timeouts,
            Self::ToolOutput(limits) => config.tool_output = limits,
            Self::Retry(policy) => config.retry = SessionRetry(policy),
            Self::ModelTimeout(timeout) => config.model_timeout = ModelTimeout(timeout),
            Self::ResponseLimit(bytes) => config.response_limit = ResponseLimit(bytes),
        }
    }
}

impl Driver {
    pub(super) async fn command(&mut self, sent: SentCommand) {
        let command = &sent.command;
        if let Command::Abandon = command {
            self.shutdown = Shutdown::Abandon;
            return;
        }
        if let Command::Detach = command
            && self.machine.current_run().is_some()
            && !self.machine.is_stopping()
        {
            self.shutdown = Shutdown::Abandon;
            return;
        }
        self.follow_subagents().await;
        if let Command::Interrupt | Command::Close | Command::Suspend | Command::Detach = command {
            self.stop_input_hooks();
        }
        if let Some(UserInput::Command(sent)) = self.run_input_hooks(UserInput::Command(sent)) {
            self.take_command(sent).await;
        }
    }

    /// Handles a command after its hooks, if it has any.
    pub(super) async fn take_command(&mut self, sent: SentCommand) {
        let SentCommand { command, by } = sent;
        let names_its_author = matches!(command, Command::RecordPolicy { .. });
        self.author = by.map(|by| *by).filter(|_| !names_its_author);
        if let Some(kind) = self.input_of(command).await {
            if let InputKind::ApprovalDecided { .. } | InputKind::CallChanged { .. } = kind {
                self.author = None;
            }
            self.step(kind).await;
        }
        // Not every command leads to an input.
        self.author = None;
    }

    /// Queues a message and answers once it is recorded.
    async fn accept(
        &mut self,
        queue: MessageQueue,
        message: UserMessage,
        owner: Option<InputOwner>,
        accepted: oneshot::Sender<Result<(), SessionError>>,
    ) {
        self.inputs.fill(self.machine.follow_ups().len());
        let kind = match queue {
            MessageQueue::Steering => InputKind::Steer { message },
            MessageQueue::FollowUps => InputKind::FollowUp { message },
            MessageQueue::Soonest => self.machine.saying(|| self.runs.next_id(), message),
        };
        let refusal = if self.machine.state() == SessionState::Closed {
            Some(SessionError::Closed)
        } else if let InputKind::Submit { message, .. } = &kind
            && let Some(problem) = message.problem()
        {
            Some(SessionError::Refused(format!("it {problem}")))
        } else {
            self.machine.refusal(&kind).map(SessionError::Refused)
        };
        self.step(kind).await;
        let unrecorded = self.recording.failure().map(|error| SessionError::Unrecorded(error.clone().into()));
        if let Some(owner) = owner.filter(|_| refusal.is_none() && unrecorded.is_none()) {
            self.inputs.add(owner, self.machine.follow_ups().len());
        }
        // A caller that has stopped waiting needs no answer.
        let _ = accepted.send(unrecorded.or(refusal).map_or(Ok(()), Err));
    }

    /// Rewinds the session and answers once that is recorded.
    async fn rewind(&mut self, turns: usize, done: oneshot::Sender<Result<(), SessionError>>) {
        let refusal = if self.machine.state() == SessionState::Closed {
            Some(SessionError::Closed)
        } else {
            self.machine.rewind_refusal(turns).map(SessionError::NotRewound)
        };
        self.record_unless(refusal, InputKind::Rewind { turns }, done).await;
    }

    /// Records a change of the session's permissions, and answers once it is recorded.
    async fn record_policy(&mut self, change: PolicyChange, done: oneshot::Sender<Result<(), SessionError>>) {
        let is_closed = self.machine.state() == SessionState::Closed;
        let refusal = is_closed.then_some(SessionError::Closed);
        self.record_unless(refusal, InputKind::PolicyChanged { change }, done).await;
    }

    async fn record_unless(
        &mut self,
        refusal: Option<SessionError>,
        kind: InputKind,
        done: oneshot::Sender<Result<(), SessionError>>,
    ) {
        if refusal.is_none() {
            self.step(kind).await;
        }
        let unrecorded = self.recording.failure().map(|error| SessionError::Unrecorded(error.clone().into()));
        // A caller that has stopped waiting needs no answer.
        let _ = done.send(unrecorded.or(refusal).map_or(Ok(()), Err));
    }

    /// Performs the driver's part of a command and returns the input for the machine, if there is one.
    async fn input_of(&mut self, command: Command) -> Option<InputKind> {
        let kind = match command {
            Command::Submit { run, message, owner } => {
                if self.machine.current_run().is_none() {
                    owner.started(self.log.next_seq());
                }
                self.runs.add(run, owner);
                InputKind::Submit { run, message: *message }
            }
            Command::Message { queue, message, owner, accepted } => {
                self.accept(queue, *message, owner, accepted).await;
                return None;
            }
            // Hosts also stop the turn of a session that may have ended it.
            Command::Interrupt => return self.machine.has_work().then_some(InputKind::Interrupt),
            Command::Close => InputKind::Close,
            // It is handled before the hooks and never reaches the machine.
            Command::Abandon => return None,
            Command::Detach => {
                self.shutdown = Shutdown::Suspend;
                return None;
            }
            Command::Suspend => {
                self.shutdown = Shutdown::Suspend;
                self.machine.current_run()?;
                InputKind::Interrupt
            }
            Command::Compact { done } => {
                if let Some(done) = done {
                    // Results of earlier compactions, such as replayed ones, are not reported to this caller.
                    drop(self.machine.take_compaction_results());
                    self.compaction_callers.add(done);
                }
                InputKind::Compact
            }
            Command::Rewind { turns, done } => {
                self.rewind(turns, done).await;
                return None;
            }
            Command::RecordPolicy { change, done } => {
                self.record_policy(*change, done).await;
                return None;
            }
            Command::SetReasoningEffort(effort) => {
                InputKind::Configure { change: Change::ReasoningEffort(effort) }
            }
            Command::SetLimits(limits) => InputKind::Configure { change: Change::Limits(*limits) },
            Command::SetTools(tools) => {
                let mut profile = self.base_profile.clone();
                profile.tool_registry = tools;
                self.set_profile(profile);
                InputKind::Configure { change: Change::Context }
            }
            Command::SetEnvironment(env) => {
                self.set_environment(env);
                InputKind::Configure { change: Change::Context }
            }
            Command::SetModel(model) => {
                self.set_profile(self.base_profile.clone().with_model(model));
                InputKind::Configure { change: Change::Context }
            }
            Command::SetProfile(profile) => {
                self.set_profile(*profile);
                InputKind::Configure { change: Change::Context }
            }
            Command::Configure(change) => {
                change.apply_to(&mut self.config);
                return None;
            }
            Command::Decide(decided) => {
                let (call_id, decision) = (decided.call_id.clone(), decided.decision.clone());
                self.decide(*decided).unwrap_or_else(|| self.refused_decision(&call_id, &decision))
            }
            Command::Spawn { kind, task, done } => {
                self.spawn_subagent(&kind, task, done);
                return None;
            }
            Command::Fork { turns, reply } => {
                let forked = self.fork(turns).map(Box::new).ok_or(self.machine.history().len());
                // A caller that has stopped waiting needs no fork.
                let _ = reply.send(forked);
                return None;
            }
        };
        Some(kind)
    }

    /// Interrupts a run whose owner dropped it, once.
    pub(super) async fn interrupt_dropped(&mut self, run: RunId) {
        let has_next = self.runs.handle_drop(run);
        // A second run only waits for one that is being stopped already. Another interrupt would stop the second.
        let is_being_stopped = self.machine.current_run() == Some(run) && has_next;
        if !is_being_stopped {
            self.step(InputKind::Interrupt).await;
        }
    }
}
