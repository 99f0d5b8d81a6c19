//! A session again, from its record alone.

use std::fmt;

use pintle_llm::{Fingerprint, Request};

use super::{Record, RecordEntry, request_of};
use crate::event::{EventKind, SessionEvent};
use crate::id::RunId;
use crate::turn::{Action, InputKind, Machine, Outcome, SessionState, Start, Turn, TurnContext};

/// What a record gives when its inputs are handled once more.
///
/// Nothing is sent and nothing is run: it is a function of the record.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Replay {
    /// Every event but the deltas, with the numbers and times that they had.
    pub events: Vec<SessionEvent>,
    /// Every request, in order. An adapter makes the same bytes of them as it did then.
    pub requests: Vec<Request>,
    /// The runs that ended, and how.
    pub outcomes: Vec<(RunId, Outcome)>,
    /// The conversation at the end of the record.
    pub history: Vec<Turn>,
    /// The state at the end of the record.
    pub state: SessionState,
}

/// Why a record cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// An input leads to another request than it did, because the prompt, the tools or the loop are not what they were.
    #[error("{0}")]
    Diverged(Box<Divergence>),
}

/// Where a record and its replay part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The first input that leads to another request, from 0.
    pub input: usize,
    /// What kind of input, as the record spells it.
    pub kind: String,
    /// The request that followed.
    pub recorded: Option<Fingerprint>,
    /// The request that follows now.
    pub replayed: Option<Fingerprint>,
    /// The version of this crate that made the record.
    pub made_by: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, kind, made_by, .. } = self;
        let (recorded, replayed) = (told(self.recorded), told(self.replayed));
        write!(
            f,
            "input {input} ({kind}) of the record, which version {made_by} made, led to {recorded} and leads to {replayed}"
        )
    }
}

fn told(request: Option<Fingerprint>) -> String {
    request.map_or_else(|| "no request".to_owned(), |fingerprint| format!("request {fingerprint}"))
}

impl Record {
    /// Handles every input once more.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Diverged`] at the first input that leads to another request than it did.
    pub fn replay(&self) -> Result<Replay, ReplayError> {
        self.replay_with(|_| {})
    }

    /// As [`Record::replay`], with other facts for the prompt: `change` is given what each request was made of beside
    /// the history. This tells whether a changed prompt or tool would have changed what the model was sent, and where
    /// first.
    ///
    /// # Errors
    ///
    /// As for [`Record::replay`].
    pub fn replay_with(&self, change: impl FnMut(&mut TurnContext)) -> Result<Replay, ReplayError> {
        let (mut replay, machine) = self.played(change)?;
        replay.history = machine.history().to_vec();
        replay.state = machine.state();
        Ok(replay)
    }

    /// What a session begins with that goes on from the first `turns` entries of this one's history, as
    /// [`SessionBuilder::start`](crate::SessionBuilder::start) takes it. `None` if there are not so many.
    ///
    /// # Errors
    ///
    /// As for [`Record::replay`].
    pub fn fork(&self, turns: usize) -> Result<Option<Start>, ReplayError> {
        let (_, machine) = self.played(|_| {})?;
        Ok(machine.fork(turns, self.header.session_id.clone()))
    }

    fn played(&self, mut change: impl FnMut(&mut TurnContext)) -> Result<(Replay, Machine), ReplayError> {
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

    /// Whether these actions are those that the input led to.
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
            // What was done is in the inputs that follow.
            Action::LoadContext { .. }
            | Action::CancelModel
            | Action::SetTimer { .. }
            | Action::PrepareCall { .. }
            | Action::AskApproval { .. }
            | Action::WithdrawApproval { .. }
            | Action::RunTool { .. }
            | Action::CancelTool { .. }
            | Action::StopSubagents
            | Action::CleanUp => {}
        }
    }
}
