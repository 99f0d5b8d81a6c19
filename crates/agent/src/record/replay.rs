//! Replay of a session from its record alone.

use std::fmt;

use pintle_llm::{Fingerprint, Request};

use super::{Record, RecordEntry, request_of};
use crate::protocol::{
    Action, EventKind, InputKind, Outcome, RunId, SessionEvent, SessionState, Start, Turn, TurnContext,
};
use crate::turn::Machine;

/// Result of handling the inputs of a record again.
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
    /// State at the end of the record.
    pub state: SessionState,
}

/// Reason why a record cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// An input leads to a different request, because the prompt, the tools or the loop have changed.
    #[error("{0}")]
    Diverged(Box<Divergence>),
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
    /// Handles all inputs again.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Diverged`] at the first input that leads to a different request.
    pub fn replay(&self) -> Result<Replay, ReplayError> {
        self.replay_with(|_| {})
    }

    /// Handles all inputs again, with contexts that `change` has modified. This shows whether a different prompt or tool
    /// would have changed the requests, and where first.
    ///
    /// # Errors
    ///
    /// As for [`Record::replay`].
    pub fn replay_with(&self, change: impl FnMut(&mut TurnContext)) -> Result<Replay, ReplayError> {
        let (mut replay, machine) = self.run_with(change)?;
        replay.history = machine.history().to_vec();
        replay.state = machine.state();
        Ok(replay)
    }

    /// Returns the start of a fork after the first `turns` history entries, for
    /// [`SessionBuilder::start`](crate::SessionBuilder::start); `None` if there are fewer.
    ///
    /// # Errors
    ///
    /// As for [`Record::replay`].
    pub fn fork(&self, turns: usize) -> Result<Option<Start>, ReplayError> {
        let (_, machine) = self.run_with(|_| {})?;
        Ok(machine.fork(turns, self.header.session_id.clone()))
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
        let mut machine = Machine::starting(start);
        let mut replay = Replay::default();
        for (index, entry) in self.entries.iter().enumerate() {
            let mut input = entry.input.clone();
            if let InputKind::ContextLoaded { context, .. } = &mut input.kind {
                change(context);
            }
            let at = input.at;
            let actions = machine.step(input);
            self.compare(index, entry, &actions)?;
            for action in actions {
                replay.take(action, |kind, seq| {
                    let (session_id, parent, timestamp) =
                        (self.header.session_id.clone(), parent.clone(), at);
                    SessionEvent { seq, offset: None, timestamp, session_id, depth, parent, kind }
                });
            }
        }
        Ok((replay, machine))
    }

    /// Checks that these actions send the request that the input led to.
    pub(crate) fn compare(
        &self,
        index: usize,
        entry: &RecordEntry,
        actions: &[Action],
    ) -> Result<(), ReplayError> {
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
            // The results of these are in the inputs that follow.
            Action::LoadContext { .. }
            | Action::CancelModel
            | Action::SetTimer { .. }
            | Action::PrepareCall { .. }
            | Action::AskApproval { .. }
            | Action::WithdrawApproval { .. }
            | Action::StartTool { .. }
            | Action::RunTool { .. }
            | Action::CancelTool { .. }
            | Action::StopSubagents
            | Action::CleanUp => {}
        }
    }
}
