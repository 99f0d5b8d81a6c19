//! Replay of a session from its record alone.

use std::fmt;
use std::sync::Arc;

use pintle_llm::{Fingerprint, Request};
use pintle_tools::SandboxSide;
use pintle_tools::gate::Judgement;
use serde_json::Value;

use super::{Record, RecordEntry, request_of};
use crate::protocol::{
    Action, BudgetUsage, Checkpoint, CheckpointReason, EventKind, Input, InputKind, Outcome, RunId,
    SessionEvent, SessionState, Start, Timestamp, Turn, TurnContext,
};
use crate::turn::Machine;

/// Result of replaying the inputs of a record.
///
/// A function of the record: nothing is sent, and no tool runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Replay {
    /// All events except deltas, with their sequence numbers and times.
    pub events: Vec<SessionEvent>,
    /// All requests, in order. An adapter encodes them to the same bytes.
    pub requests: Vec<Request>,
    /// Runs that ended, with their outcomes.
    pub outcomes: Vec<(RunId, Outcome)>,
    /// Conversation at the end of the record.
    pub history: Vec<Turn>,
    /// Highest number of entries to which the session can be rewound. Exceeds the number of history entries as long as no
    /// input has followed a rewind.
    pub rewindable: usize,
    /// State at the end of the record.
    pub state: SessionState,
    /// Amounts spent by the session and its subagents.
    pub spent: BudgetUsage,
}

/// A call that waits for a decision at the end of a record. The decision can be posted while no process runs the session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingApproval {
    /// The model's id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments after all repairs.
    pub arguments: Value,
    /// Reason why a decision is needed.
    pub reason: String,
    /// Side of the sandbox on which the command would run; `None` without a sandbox, and for calls other than commands.
    pub sandbox: Option<SandboxSide>,
    /// Rules that together match exactly the calls like this one.
    pub suggested_rules: Vec<String>,
    /// Time of the request for a decision.
    pub asked_at: Timestamp,
    /// Fingerprint of the call; a decision is bound to it.
    pub fingerprint: Fingerprint,
}

impl Replay {
    /// Returns the checkpoints of the current conversation, oldest first, each with the number of entries at its time.
    /// Excludes checkpoints that were taken after an entry that a rewind has cut off.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<(usize, Checkpoint)> {
        let mut checkpoints: Vec<(usize, Checkpoint)> = Vec::new();
        // Cut off, and restored by another rewind unless the conversation continues.
        let mut cut_off: Vec<(usize, Checkpoint)> = Vec::new();
        for event in &self.events {
            if let EventKind::CheckpointTaken { checkpoint, turns, .. } = &event.kind {
                checkpoints.push((*turns, checkpoint.clone()));
            } else if let EventKind::Rewound { turns } = &event.kind {
                checkpoints.append(&mut cut_off);
                (checkpoints, cut_off) = checkpoints.into_iter().partition(|(taken, _)| taken <= turns);
            } else if let EventKind::UserInput { .. } = &event.kind {
                cut_off.clear();
            }
        }
        checkpoints
    }

    /// Returns the newest checkpoint, even if its part of the conversation was cut off.
    #[must_use]
    pub fn newest_checkpoint(&self) -> Option<&Checkpoint> {
        self.events.iter().rev().find_map(|event| {
            let EventKind::CheckpointTaken { checkpoint, .. } = &event.kind else { return None };
            Some(checkpoint)
        })
    }

    /// Returns the calls that wait for a decision, in the order in which the model made them.
    #[must_use]
    pub fn pending_approvals(&self) -> Vec<PendingApproval> {
        let mut pending: Vec<PendingApproval> = Vec::new();
        let mut judged: Option<(&str, &Judgement)> = None;
        let mut started: Vec<&str> = Vec::new();
        for event in &self.events {
            if let EventKind::ToolCallStart { call_id, .. } = &event.kind {
                started.push(call_id);
            } else if let EventKind::CallJudged { call_id, steps, .. } = &event.kind {
                judged = Some((call_id, steps));
            } else if let EventKind::ApprovalRequested {
                call_id,
                tool_name,
                arguments,
                reason,
                fingerprint,
                sandbox,
                ..
            } = &event.kind
            {
                pending.retain(|known| known.call_id != *call_id);
                let judged = judged.filter(|(judged, _)| *judged == call_id.as_str());
                pending.push(PendingApproval {
                    suggested_rules: judged.map(|(_, steps)| steps.suggested_rules()).unwrap_or_default(),
                    asked_at: event.timestamp,
                    call_id: call_id.clone(),
                    tool_name: tool_name.clone(),
                    arguments: arguments.clone(),
                    reason: reason.clone(),
                    fingerprint: *fingerprint,
                    sandbox: *sandbox,
                });
            } else if let EventKind::ApprovalDecided { call_id, .. }
            | EventKind::ToolCallEnd { call_id, .. } = &event.kind
            {
                pending.retain(|known| known.call_id != *call_id);
            }
        }
        // An id may be reused.
        pending.sort_by_key(|call| started.iter().rposition(|started| *started == call.call_id));
        pending
    }
}

/// Reason why a record cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// An input leads to a different request, because the prompt, the tools or the loop have changed.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// A newer version has continued the record.
    #[error("the end of the record has version {found}, expected at most {}", Record::VERSION)]
    Version {
        /// Version of the end of the record.
        found: u32,
    },
}

/// Reason why a recorded session cannot be rewound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// The session is busy, closed, or too short.
    #[error("the session cannot be rewound: {0}")]
    Refused(String),
    /// The record cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// First difference between a record and its replay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// Index of the first input that leads to a different request, from 0.
    pub input: usize,
    /// Serialised name of the input's kind.
    pub kind: String,
    /// Request of the record.
    pub recorded: Option<Fingerprint>,
    /// Request of the replay.
    pub replayed: Option<Fingerprint>,
    /// Version of this crate that wrote the record.
    pub made_by: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, kind, made_by, .. } = self;
        let (recorded, replayed) = (describe(self.recorded), describe(self.replayed));
        write!(
            f,
            "input {input} ({kind}) of the record, written by version {made_by}, led to {recorded} and now leads to {replayed}"
        )
    }
}

fn describe(request: Option<Fingerprint>) -> String {
    request.map_or_else(|| "no request".to_owned(), |fingerprint| format!("request {fingerprint}"))
}

impl Record {
    /// Replays all inputs.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Diverged`] at the first input that leads to a different request.
    pub fn replay(&self) -> Result<Replay, ReplayError> {
        self.replay_with(|_| {})
    }

    /// Replays all inputs with contexts that `change` has modified. This shows whether a different prompt or tool would have
    /// changed the requests, and the first change. The tools of a context include the tools that the session added to its
    /// profile: [`ProviderProfile::as_in_session`](crate::ProviderProfile::as_in_session).
    ///
    /// # Errors
    ///
    /// As for [`Record::replay`].
    pub fn replay_with(&self, change: impl FnMut(&mut TurnContext)) -> Result<Replay, ReplayError> {
        let (mut replay, machine) = self.run_with(change)?;
        replay.history = machine.history().to_vec();
        replay.rewindable = machine.rewindable_entries();
        replay.state = machine.state();
        replay.spent = machine.spent();
        Ok(replay)
    }

    /// Returns the start of a fork after the first `entries` history entries, for
    /// [`SessionBuilder::start`](crate::SessionBuilder::start); `None` if there are fewer.
    ///
    /// # Errors
    ///
    /// As for [`Record::replay`].
    pub fn fork(&self, entries: usize) -> Result<Option<Start>, ReplayError> {
        let (_, machine) = self.run_with(|_| {})?;
        Ok(machine.fork(entries, self.header.session_id.clone()))
    }

    /// Returns the entries of the checkpoint `before` and of a rewind to the first `entries` entries of the history, each if
    /// given. The caller appends them to the session's journal while no process runs the session.
    ///
    /// # Errors
    ///
    /// [`RewindError`] if the session cannot be rewound or its record cannot be replayed.
    pub fn rewound(
        &self,
        at: Timestamp,
        entries: Option<usize>,
        before: Option<Checkpoint>,
    ) -> Result<Vec<Arc<RecordEntry>>, RewindError> {
        let (_, mut machine) = self.run_with(|_| {})?;
        let problem = machine.rewind_refusal(entries.unwrap_or(0));
        if let Some(problem) = problem {
            return Err(RewindError::Refused(problem));
        }
        let reason = CheckpointReason::BeforeRewind;
        let taken = before.map(|checkpoint| InputKind::CheckpointTaken { reason, checkpoint });
        let rewind = entries.map(|turns| InputKind::Rewind { turns });
        let entries = taken.into_iter().chain(rewind).map(|kind| {
            let input = Input::new(at, kind);
            machine.step(input.clone());
            Arc::new(RecordEntry::alone(input))
        });
        Ok(entries.collect())
    }

    fn run_with(&self, mut change: impl FnMut(&mut TurnContext)) -> Result<(Replay, Machine), ReplayError> {
        let mut start = self.header.start.clone();
        if let Some(context) = &mut start.context {
            change(context);
        }
        let (depth, parent) = match &self.header.subagent {
            Some(origin) => (origin.depth, Some(origin.parent.clone())),
            None => (0, None),
        };
        let mut replay = Replay::default();
        let machine = self.go_through(start, change, |entry, actions| {
            for action in actions {
                replay.take(action, |kind, seq| {
                    let (session_id, parent, timestamp) =
                        (self.header.session_id.clone(), parent.clone(), entry.input.at);
                    SessionEvent { seq, offset: None, timestamp, session_id, depth, parent, kind }
                });
            }
        })?;
        Ok((replay, machine))
    }

    /// Advances a machine from `start` to the end of the record: steps the entries of this version, and folds the entries of
    /// other versions. Passes each entry with its actions to `follow`.
    pub(crate) fn go_through(
        &self,
        start: Start,
        mut change: impl FnMut(&mut TurnContext),
        mut follow: impl FnMut(&RecordEntry, Vec<Action>),
    ) -> Result<Machine, ReplayError> {
        let (version, since) = self.newest_version();
        if version > Self::VERSION {
            return Err(ReplayError::Version { found: version });
        }
        let folded = if version == Self::VERSION { since } else { self.entries.len() };
        let mut written_by = self.header.version;
        let mut machine = Machine::starting(start);
        for (index, entry) in self.entries.iter().enumerate() {
            let mut input = entry.input.clone();
            if let InputKind::ContextLoaded { context, .. } = &mut input.kind {
                change(context);
            } else if let InputKind::TakenUp { version } = input.kind {
                written_by = version;
            }
            let actions = if index < folded {
                machine.fold(input, &entry.followed(written_by))
            } else {
                let actions = machine.step(input);
                self.compare(index, entry, &actions)?;
                actions
            };
            follow(entry, actions);
        }
        Ok(machine)
    }

    /// Checks that these actions send the recorded request.
    fn compare(&self, index: usize, entry: &RecordEntry, actions: &[Action]) -> Result<(), ReplayError> {
        let replayed = request_of(actions);
        if replayed == entry.request {
            return Ok(());
        }
        let kind = serde_json::to_value(&entry.input.kind).ok();
        let kind = kind.and_then(|kind| kind.get("input")?.as_str().map(str::to_owned));
        Err(ReplayError::Diverged(Box::new(Divergence {
            input: index,
            kind: kind.unwrap_or_default(),
            recorded: entry.request,
            replayed,
            made_by: self.header.made_by.clone(),
        })))
    }
}

impl Replay {
    fn take(&mut self, action: Action, event: impl FnOnce(EventKind, u64) -> SessionEvent) {
        match action {
            Action::Emit(kind) => {
                let seq = self.events.len() as u64;
                self.events.push(event(*kind, seq));
            }
            Action::CallModel { request, .. } => self.requests.push(*request),
            Action::Finish { run, outcome } => self.outcomes.push((run, *outcome)),
            // The results of these are in the inputs that follow, or part of the outcome of the run.
            Action::LoadContext { .. }
            | Action::CancelModel
            | Action::SetTimer { .. }
            | Action::PrepareCall { .. }
            | Action::AskApproval { .. }
            | Action::ConfirmApproval { .. }
            | Action::WithdrawApproval { .. }
            | Action::StartTool { .. }
            | Action::RunTool { .. }
            | Action::CancelTool { .. }
            | Action::Reconcile { .. }
            | Action::StopSubagents
            | Action::AskBudget { .. }
            | Action::GrantBudget { .. }
            | Action::CleanUp
            | Action::FinishInput { .. } => {}
        }
    }
}
