//! Reports of the session's tasks to the driver.

use pintle_llm::Fingerprint;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Driver;
use super::budget::SourceAnswer;
use super::call_slots::CallPreparationResult;
use super::hooks::HookedInput;
use super::posted::Delivery;
use crate::protocol::{CallKey, Decision, InputKind, Principal, SegmentId, Timer};

/// Capacity of the report channel. A task waits while it is full.
pub(super) const MAX_REPORTS: usize = 256;

/// Report of a task to the driver.
///
/// Large reports are boxed, since a channel allocates a block of them from the start.
#[derive(Debug)]
pub(super) enum Report {
    /// Input for the machine.
    Input(Box<InputKind>),
    /// Input whose effect is in the reporting task, which is notified once it is recorded.
    Intent { kind: Box<InputKind>, recorded: oneshot::Sender<()> },
    /// Posted input.
    Posted(Box<Delivery>),
    /// A timer fired, unless it has been cancelled since.
    TimerFired { timer: Timer, cancelled: CancellationToken },
    /// Text of an open segment.
    Text { segment: SegmentId, delta: String },
    /// Result of preparing a call.
    Prepared { key: CallKey, prepared: Box<CallPreparationResult> },
    /// User input with the answer of its hooks.
    Hooked(Box<HookedInput>),
    /// Decision of the approver.
    Decided(Box<ExactDecision>),
    /// Answer of the application to a request for more of the budget.
    Granted(Box<SourceAnswer>),
}

/// Decision on one call with exactly these arguments.
#[derive(Debug)]
pub(crate) struct ExactDecision {
    pub(crate) call_id: String,
    pub(crate) exactly: Fingerprint,
    pub(crate) decision: Decision,
    /// Principal that decided.
    pub(crate) by: Option<Principal>,
}

impl Report {
    pub(super) fn input(kind: InputKind) -> Self {
        Self::Input(Box::new(kind))
    }
}

impl Driver {
    pub(super) async fn report(&mut self, report: Report) {
        // Inputs about subagents come before the result of the tool that caused them.
        self.follow_subagents().await;
        let input = match report {
            Report::Input(kind) => Some(*kind),
            Report::Intent { kind, recorded } => {
                self.step(*kind).await;
                // After a failed record the task gets no notice, and the session stops it.
                if self.recording.failure().is_none() {
                    let _ = recorded.send(());
                }
                None
            }
            Report::Posted(delivery) => {
                self.posted(*delivery).await;
                None
            }
            Report::TimerFired { timer, cancelled } => {
                (!cancelled.is_cancelled()).then_some(InputKind::TimerFired { timer })
            }
            Report::Text { segment, delta } => {
                if let Some(writer) = self.segments.of_segment(segment) {
                    writer.write(&delta);
                }
                None
            }
            Report::Prepared { key, prepared } => Some(self.set_prepared(key, *prepared)),
            Report::Hooked(hooked) => {
                self.take_hooked(*hooked).await;
                None
            }
            Report::Decided(decided) => self.decide(*decided),
            Report::Granted(granted) => {
                self.take_granted(*granted).await;
                None
            }
        };
        if let Some(kind) = input {
            self.step(kind).await;
        }
        self.decide_early().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::SentCommand;

    #[test]
    fn channel_messages_are_small() {
        // A block of a channel holds 32, and each session has one block for each of the two channels.
        assert!(size_of::<Report>() <= 48, "{}", size_of::<Report>());
        assert!(size_of::<SentCommand>() <= 72, "{}", size_of::<SentCommand>());
    }
}
