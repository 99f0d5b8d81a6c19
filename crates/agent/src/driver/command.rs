//! What a host wants of a session.

use std::collections::HashMap;
use std::sync::Arc;

use pintle_env::ExecutionEnvironment;
use pintle_llm::ReasoningEffort;
use pintle_tools::ToolRegistry;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Decided, Driver};
use crate::config::TurnLimits;
use crate::id::RunId;
use crate::profile::ProviderProfile;
use crate::session::{Owner, SessionBuilder};
use crate::turn::{Change, InputKind};

/// One thing that a host wants. Those that wait stand in blocks, so that the large ones are boxed.
#[derive(Debug)]
pub(crate) enum Command {
    Submit {
        run: RunId,
        text: String,
        owner: Owner,
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
    Decide(Box<Decided>),
    /// A builder of the fork, or how many entries the history has.
    Fork {
        turns: usize,
        reply: oneshot::Sender<Result<Box<SessionBuilder>, usize>>,
    },
}

impl Driver {
    pub(super) async fn command(&mut self, command: Command) {
        self.follow_subagents().await;
        if let Some(kind) = self.input_of(command) {
            self.step(kind).await;
        }
    }

    /// What the machine must be told, if anything, once the driver has done its part.
    fn input_of(&mut self, command: Command) -> Option<InputKind> {
        let kind = match command {
            Command::Submit { run, text, owner } => {
                if self.machine.served().is_none() {
                    owner.begins(self.log.next_seq());
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
                let mut profile = self.given.clone();
                profile.tool_registry = tools;
                self.set_profile(profile);
                InputKind::Configure { change: Change::Context }
            }
            Command::SetEnvironment(env) => {
                self.move_to(env);
                InputKind::Configure { change: Change::Context }
            }
            Command::SetModel(model) => {
                self.set_profile(self.given.clone().with_model(model));
                InputKind::Configure { change: Change::Context }
            }
            Command::SetProfile(profile) => {
                self.set_profile(*profile);
                InputKind::Configure { change: Change::Context }
            }
            Command::Decide(decided) => {
                let Decided { call_id, exactly, decision } = *decided;
                return self.decided(&call_id, exactly, decision);
            }
            Command::Fork { turns, reply } => {
                let forked = self.fork(turns).map(Box::new).ok_or(self.machine.history().len());
                // Who does not wait any more wants no fork.
                let _ = reply.send(forked);
                return None;
            }
        };
        Some(kind)
    }

    /// Interrupts a run that has lost its owner, once.
    pub(super) async fn interrupt(&mut self, run: RunId) {
        if let Some(owner) = self.runs.get_mut(&run) {
            owner.abandoned = None;
        }
        // Another run waits only for one that is being stopped already. To stop that once more would stop the other.
        let is_being_stopped = self.machine.served() == Some(run) && self.runs.len() > 1;
        if !is_being_stopped {
            self.step(InputKind::Interrupt).await;
        }
    }
}

/// The next run whose owner drops it. Cancel safe.
pub(super) async fn abandoned(runs: &HashMap<RunId, Owner>) -> RunId {
    let mut owned = runs.iter().filter_map(|(run, owner)| Some((*run, owner.abandoned.as_ref()?)));
    // There are two at most: the one that is served, and one that waits for its end.
    let (one, other) = (owned.next(), owned.next());
    tokio::select! {
        run = dropped(one) => run,
        run = dropped(other) => run,
    }
}

async fn dropped(run: Option<(RunId, &CancellationToken)>) -> RunId {
    let Some((run, abandoned)) = run else { return std::future::pending().await };
    abandoned.cancelled().await;
    run
}
