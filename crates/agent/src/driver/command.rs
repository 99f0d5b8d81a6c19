//! Commands of the embedding application.

use std::collections::HashMap;
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::{AdapterTimeout, ReasoningEffort, RetryPolicy};
use pintle_tools::{CommandTimeouts, ToolRegistry, TruncationLimits};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Decided, Driver};
use crate::config::{ModelTimeout, ResponseLimit, SessionConfig, SessionRetry};
use crate::profile::ProviderProfile;
use crate::protocol::{Change, InputKind, RunId, TurnLimits};
use crate::session::{RunOwner, SessionBuilder};

/// Command to the driver. Large commands are boxed, since a channel allocates a block of them from the start.
#[derive(Debug)]
pub(crate) enum Command {
    Submit {
        run: RunId,
        text: String,
        owner: RunOwner,
    },
    Steer(String),
    FollowUp(String),
    Interrupt,
    Abort,
    Close,
    SetReasoningEffort(Option<ReasoningEffort>),
    SetModel(String),
    SetProfile(Box<ProviderProfile>),
    SetTools(ToolRegistry),
    SetEnvironment(Arc<dyn ExecutionEnvironment>),
    SetLimits(Box<TurnLimits>),
    /// Applies to the next call.
    Configure(Box<ConfigChange>),
    Decide(Box<Decided>),
    /// Replies with a builder of the fork, or with the number of history entries if there are too few.
    Fork {
        turns: usize,
        reply: oneshot::Sender<Result<Box<SessionBuilder>, usize>>,
    },
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
    pub(super) async fn command(&mut self, command: Command) {
        self.follow_subagents().await;
        if let Some(kind) = self.input_of(command) {
            self.step(kind).await;
        }
    }

    /// Performs the driver's part of a command and returns the input for the machine, if there is one.
    fn input_of(&mut self, command: Command) -> Option<InputKind> {
        let kind = match command {
            Command::Submit { run, text, owner } => {
                if self.machine.current_run().is_none() {
                    owner.started(self.log.next_seq());
                }
                self.runs.insert(run, owner);
                InputKind::Submit { run, text }
            }
            Command::Steer(text) => InputKind::Steer { text },
            Command::FollowUp(text) => InputKind::FollowUp { text },
            Command::Interrupt => InputKind::Interrupt,
            Command::Abort => InputKind::Abort,
            Command::Close => InputKind::Close,
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
            Command::Decide(decided) => return self.decide(*decided),
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
        if let Some(owner) = self.runs.get_mut(&run) {
            owner.dropped = None;
        }
        // A second run only waits for one that is being stopped already. Another interrupt would stop the second.
        let is_being_stopped = self.machine.current_run() == Some(run) && self.runs.len() > 1;
        if !is_being_stopped {
            self.step(InputKind::Interrupt).await;
        }
    }
}

/// Returns the next run that its owner drops. Cancel safe.
pub(super) async fn next_dropped(runs: &HashMap<RunId, RunOwner>) -> RunId {
    let mut owned = runs.iter().filter_map(|(run, owner)| Some((*run, owner.dropped.as_ref()?)));
    // There are at most two: the current run, and one that waits for its end.
    let (one, other) = (owned.next(), owned.next());
    tokio::select! {
        run = dropped(one) => run,
        run = dropped(other) => run,
    }
}

async fn dropped(run: Option<(RunId, &CancellationToken)>) -> RunId {
    let Some((run, dropped)) = run else { return std::future::pending().await };
    dropped.cancelled().await;
    run
}
