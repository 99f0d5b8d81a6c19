//! Recording of inputs, each before its consequences.
//!
//! The inputs of one step of the driver form a [`Batch`]: the given inputs, and the starts of calls that the machine
//! requests in response. The whole batch passes one barrier, and only then are its actions performed.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use pintle_llm::{Error, ErrorInfo, ErrorKind};

use super::call_slots::CallSlots;
use super::redacting::redact_input;
use super::{Driver, SegmentBoundary};
use crate::protocol::{Action, Input, InputKind, Timestamp};
use crate::record::{
    Barrier, Fence, Journal, PostedInputs, RecordEntry, Recorder, SessionStatus, SubagentJournals,
};

/// Recorder and journal of a session, and whether the journal has failed.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(super) recorder: Option<Arc<Recorder>>,
    journal: Option<Box<dyn Journal>>,
    fence: Fence,
    subagents: Option<Arc<dyn SubagentJournals>>,
    failure: Option<ErrorInfo>,
    /// Status that was last reported to the journal.
    status: Option<SessionStatus>,
}

/// Inputs that are recorded together, and the actions that follow from them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) steps: Vec<Step>,
    /// Empty if nothing is recorded.
    entries: Vec<Arc<RecordEntry>>,
    barrier: Barrier,
}

/// Consequences of one input.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) at: Timestamp,
    pub(super) boundary: Option<SegmentBoundary>,
    pub(super) actions: Vec<Action>,
}

impl Recording {
    pub(crate) fn new(recorder: Option<Arc<Recorder>>, journal: Option<Box<dyn Journal>>) -> Self {
        let fence = journal.as_ref().map(|journal| journal.fence()).unwrap_or_default();
        let subagents = journal.as_ref().and_then(|journal| journal.subagents());
        Self { recorder, journal, fence, subagents, failure: None, status: None }
    }

    /// Returns the posted inputs, once.
    pub(super) fn posted(&mut self) -> Option<Box<dyn PostedInputs>> {
        self.journal.as_mut()?.posted()
    }

    /// Returns the store of the subagents' journals.
    pub(super) fn subagents(&self) -> Option<Arc<dyn SubagentJournals>> {
        self.subagents.clone()
    }

    /// Returns the error of the journal, if it has failed. The journal then lacks inputs.
    pub(super) fn failure(&self) -> Option<&ErrorInfo> {
        self.failure.as_ref()
    }

    /// Returns whether the inputs are kept in memory.
    pub(super) fn is_kept(&self) -> bool {
        self.recorder.is_some()
    }

    /// Returns the check before each effect.
    pub(super) fn fence(&self) -> Fence {
        self.fence.clone()
    }

    pub(super) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    pub(super) fn is_active(&self) -> bool {
        self.recorder.is_some() || self.journal.is_some()
    }

    /// Records a batch. Returns whether its actions may be performed as they are: `false` once, if the journal fails.
    pub(super) async fn record(&mut self, batch: &Batch) -> bool {
        if batch.entries.is_empty() {
            return true;
        }
        let written = match &mut self.journal {
            Some(journal) => journal.append(&batch.entries, batch.barrier).await,
            None => Ok(()),
        };
        if let Some(recorder) = &self.recorder {
            recorder.extend(&batch.entries);
        }
        match written {
            Ok(()) => true,
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    /// Passes the status of the session to the journal, if its state or its number of pending approvals has changed.
    pub(super) async fn report_status(&mut self, status: SessionStatus) {
        let key = |status: &SessionStatus| (status.state, status.pending_approvals);
        if self.status.as_ref().map(key) == Some(key(&status)) {
            return;
        }
        let Some(journal) = &mut self.journal else { return };
        if let Err(error) = journal.report_status(&status).await {
            tracing::warn!(%error, "the state of the session cannot be listed");
        }
        self.status = Some(status);
    }

    /// Makes the entries so far survive a crash of the machine.
    pub(super) async fn sync(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        if let Err(error) = journal.sync().await {
            self.fail(error);
        }
    }

    /// Ends the journal.
    pub(super) async fn close(&mut self) {
        if let Some(mut journal) = self.journal.take()
            && let Err(error) = journal.close().await
        {
            tracing::warn!(%error, "the journal of the session cannot be closed");
        }
    }

    /// Closes the journal because of this error.
    pub(super) fn fail(&mut self, error: io::Error) {
        tracing::error!(%error, "the journal of the session cannot be written");
        self.journal = None;
        self.failure.get_or_insert_with(|| unwritable(error));
    }
}

/// Returns the error of a session whose journal has failed.
fn unwritable(source: io::Error) -> ErrorInfo {
    let error = Error::new(ErrorKind::Configuration, "the journal of the session cannot be written");
    error.with_source(source).info().clone()
}

impl Driver {
    /// Steps the machine with these inputs, and with the inputs that follow from them without any effect.
    pub(super) fn advance(&mut self, inputs: &mut VecDeque<InputKind>) -> Batch {
        let mut batch = Batch::default();
        while let Some(mut kind) = inputs.pop_front() {
            redact_input(&self.config.redactions, &mut kind);
            let at = self.clock.now();
            self.drop_obsolete(&kind);
            self.trace.count(&kind);
            let boundary = SegmentBoundary::from_input(&kind);
            // The first inputs are not acknowledged. The barrier of the first command, or of the first action, includes
            // them.
            let mut barrier = if self.has_begun { barrier_before(&kind) } else { Barrier::Written };
            if self.posted.recording.is_some() {
                // The input leaves the inbox once it is recorded.
                barrier = Barrier::Synced;
            }
            let input = Input::new(at, kind).with_author(self.author.take());
            let recorded = self.recording.is_active().then(|| input.clone());
            let actions = self.machine.step(input);
            if let Some(input) = recorded {
                let posted = self.posted.recording.take();
                batch.entries.push(Arc::new(RecordEntry::from_input(input, posted, &actions)));
                batch.barrier = batch.barrier.max(barrier).max(barrier_after(&actions, &self.calls));
            }
            // Nothing runs yet: the machine first requests a record of the start.
            inputs.extend(actions.iter().filter_map(|action| {
                let Action::StartTool { call } = action else { return None };
                Some(InputKind::ToolStarted { call: *call })
            }));
            batch.steps.push(Step { at, boundary, actions });
        }
        batch
    }
}

/// Returns the barrier that an input has to pass before it is acknowledged.
fn barrier_before(kind: &InputKind) -> Barrier {
    let is_accepted = matches!(
        kind,
        InputKind::Submit { .. }
            | InputKind::Steer { .. }
            | InputKind::FollowUp { .. }
            | InputKind::ApprovalDecided { .. }
            | InputKind::CallChanged { .. }
            | InputKind::PolicyChanged { .. }
            | InputKind::DecisionRefused { .. }
            | InputKind::Rewind { .. }
            | InputKind::CheckpointTaken { .. }
            | InputKind::ModelRetrying { .. }
            | InputKind::ChangesDeclared { .. }
            | InputKind::ChildSpawned { .. }
            | InputKind::ChildAsked { .. }
    );
    if is_accepted { Barrier::Synced } else { Barrier::Written }
}

/// Returns the barrier before these actions. Model calls, which spend, and unrepeatable tool calls must be recorded
/// first.
fn barrier_after(actions: &[Action], calls: &CallSlots) -> Barrier {
    let must_be_synced = |action: &Action| {
        if let Action::RunTool { call } = action {
            !calls.may_start_unsynced(*call)
        } else {
            matches!(action, Action::CallModel { .. })
        }
    };
    if actions.iter().any(must_be_synced) { Barrier::Synced } else { Barrier::Written }
}
