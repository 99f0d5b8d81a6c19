//! Inputs that are posted to the session. Each is recorded once and then removed from the inbox.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use super::hooks::UserInput;
use super::report::ExactDecision;
use super::{Driver, Report};
use crate::protocol::{Decision, InputKind, PostedInput, PostedItem};
use crate::record::{PostedInputs, Record};
use crate::subagent::Shutdown;

/// Delay after an error of the inbox.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Posted input, and the sender that confirms its record.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) posted: PostedItem,
    recorded: oneshot::Sender<()>,
}

impl Delivery {
    /// Returns the text of a message.
    pub(super) fn text(&mut self) -> Option<&mut String> {
        match &mut self.posted.input {
            PostedInput::Message { message, .. }
            | PostedInput::Say { message, .. }
            | PostedInput::Steer { message, .. } => Some(&mut message.text),
            PostedInput::Interrupt { .. }
            | PostedInput::Abort { .. }
            | PostedInput::Compact { .. }
            | PostedInput::Rewind { .. }
            | PostedInput::Decision { .. } => None,
        }
    }

    fn confirm(self) {
        // If the task is gone, the input stays in the inbox, and its id is on record.
        let _ = self.recorded.send(());
    }
}

/// State of the posted inputs.
#[derive(Debug, Default)]
pub(super) struct PostedState {
    /// Ids that were recorded when the session was resumed, and may still be in the inbox.
    known: HashSet<String>,
    /// Decisions on calls that are not ready for a decision yet, such as after a crash.
    early: Vec<Delivery>,
    /// Id of the posted input that is recorded next.
    pub(super) recording: Option<String>,
}

impl PostedState {
    pub(super) fn from_record(record: &Record) -> Self {
        let known = record.entries.iter().filter_map(|entry| entry.posted.clone()).collect();
        Self { known, ..Self::default() }
    }
}

impl Driver {
    /// Follows the inbox of the session, if its journal has one.
    pub(super) fn follow_posted(&mut self) {
        let Some(inbox) = self.recording.posted() else { return };
        let reports = self.reports.clone();
        self.spawn(deliver(inbox, reports).instrument(self.trace.session()));
    }

    /// Handles a posted input.
    pub(super) async fn posted(&mut self, delivery: Delivery) {
        if self.shutdown == Shutdown::Suspend {
            // It is for the process that resumes the session.
            return;
        }
        if self.posted.known.contains(&delivery.posted.input_id) {
            delivery.confirm();
            return;
        }
        if let PostedInput::Interrupt { .. } | PostedInput::Abort { .. } = &delivery.posted.input {
            self.stop_input_hooks();
        }
        if let Some(UserInput::Posted(delivery)) = self.run_input_hooks(UserInput::Posted(Box::new(delivery)))
        {
            self.take_posted(*delivery).await;
        }
    }

    /// Handles a posted input after its hooks, if it has any.
    pub(super) async fn take_posted(&mut self, delivery: Delivery) {
        let kind = match &delivery.posted.input {
            PostedInput::Message { message, .. } if self.machine.current_run().is_none() => {
                InputKind::Submit { run: self.runs.next_id(), message: message.clone() }
            }
            PostedInput::Message { message, .. } => InputKind::FollowUp { message: message.clone() },
            PostedInput::Say { message, .. } => self.machine.saying(|| self.runs.next_id(), message.clone()),
            PostedInput::Steer { message, .. } => InputKind::Steer { message: message.clone() },
            PostedInput::Interrupt { .. } => InputKind::Interrupt,
            PostedInput::Abort { .. } => InputKind::Abort,
            PostedInput::Compact { .. } => InputKind::Compact,
            PostedInput::Rewind { turns, .. } => InputKind::Rewind { turns: *turns },
            PostedInput::Decision { call_id, fingerprint, decision, by } => {
                let decided = ExactDecision {
                    call_id: call_id.clone(),
                    exactly: *fingerprint,
                    decision: decision.clone(),
                    by: by.clone(),
                };
                match self.decide(decided) {
                    Some(kind) => kind,
                    // After a crash the call is prepared again before it can be decided on.
                    None if self.machine.may_need_decision(call_id) && !self.calls.is_pending(call_id) => {
                        self.posted.early.push(delivery);
                        return;
                    }
                    None => self.refused_decision(call_id, decision),
                }
            }
        };
        self.record_posted(delivery, kind).await;
    }

    /// Answers a posted input that a hook refused.
    pub(super) async fn refuse_posted(&mut self, delivery: Delivery, reason: String) {
        self.record_posted(delivery, InputKind::InputRefused { run: None, reason }).await;
    }

    /// Applies the decisions that arrived before their calls were ready.
    pub(super) async fn decide_early(&mut self) {
        let (ready, waiting) = std::mem::take(&mut self.posted.early).into_iter().partition(|delivery| {
            matches!(&delivery.posted.input, PostedInput::Decision { call_id, .. }
                if self.calls.is_pending(call_id) || !self.machine.may_need_decision(call_id))
        });
        self.posted.early = waiting;
        let ready: Vec<Delivery> = ready;
        for delivery in ready {
            Box::pin(self.posted(delivery)).await;
        }
    }

    /// Returns the input for a decision that no call waits for.
    pub(super) fn refused_decision(&self, call_id: &str, decision: &Decision) -> InputKind {
        let reason = if self.calls.is_pending(call_id) {
            "the call has other arguments now"
        } else {
            "no call of this id waits for a decision: it was decided on before, or has ended"
        };
        InputKind::DecisionRefused {
            call_id: call_id.to_owned(),
            approved: matches!(decision, Decision::Approve | Decision::Change { .. }),
            reason: reason.to_owned(),
        }
    }

    async fn record_posted(&mut self, delivery: Delivery, kind: InputKind) {
        self.author = match &delivery.posted.input {
            PostedInput::Message { by, .. }
            | PostedInput::Say { by, .. }
            | PostedInput::Steer { by, .. }
            | PostedInput::Interrupt { by }
            | PostedInput::Abort { by }
            | PostedInput::Compact { by }
            | PostedInput::Rewind { by, .. } => by.clone(),
            // A decision that applies contains its principal.
            PostedInput::Decision { by, .. } => {
                by.clone().filter(|_| matches!(kind, InputKind::DecisionRefused { .. }))
            }
        };
        self.posted.recording = Some(delivery.posted.input_id.clone());
        self.step(kind).await;
        // After a failed record the input stays in the inbox, for the next process.
        if self.recording.failure().is_none() {
            delivery.confirm();
        }
    }
}

/// Delivers inputs to the driver, and removes each from the inbox once it is recorded.
async fn deliver(mut inbox: Box<dyn PostedInputs>, reports: mpsc::Sender<Report>) {
    let mut unrecorded = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some((input_id, recorded)) = unrecorded.next(), if !unrecorded.is_empty() => {
                let (input_id, recorded): (String, Result<(), oneshot::error::RecvError>) = (input_id, recorded);
                if recorded.is_ok() && let Err(error) = inbox.take(&input_id).await {
                    tracing::warn!(%error, input_id, "a posted input was not removed from the inbox");
                }
            }
            next = inbox.next() => match next {
                Ok(posted) => {
                    let input_id = posted.input_id.clone();
                    let (recorded, on_record) = oneshot::channel();
                    let delivery = Box::new(Delivery { posted, recorded });
                    if reports.send(Report::Posted(delivery)).await.is_err() {
                        return;
                    }
                    unrecorded.push(async move { (input_id, on_record.await) });
                }
                Err(error) => {
                    tracing::warn!(%error, "the inbox of the session cannot be read");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            },
        }
    }
}
