//! What the tasks that a driver has started tell it.

use std::sync::Arc;

use pintle_llm::Fingerprint;
use pintle_tools::pipeline::PreparedCall;
use tokio_util::sync::CancellationToken;

use super::Driver;
use crate::approval::ApprovalRequest;
use crate::id::{CallKey, SegmentId};
use crate::session::Decision;
use crate::turn::{InputKind, Preparation, Timer};

/// Reports that may wait for the driver; a task that has more waits itself.
pub(super) const MAX_REPORTS: usize = 256;

/// What a task tells the driver.
///
/// A channel has room for a block of these from its beginning on, so that the large ones are boxed.
#[derive(Debug)]
pub(super) enum Report {
    /// Something that the machine must know.
    Input(Box<InputKind>),
    /// The time of a timer is over, unless it was stopped meanwhile.
    TimerFired { timer: Timer, stopped: CancellationToken },
    /// More text of an open segment.
    Text { segment: SegmentId, delta: String },
    /// A call's preparation is over.
    Prepared(Box<Prepared>),
    /// The approver has decided.
    Decided(Box<Decided>),
}

/// What came of a call's preparation.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) call: CallKey,
    pub(super) preparation: Preparation,
    pub(super) prepared: Option<PreparedCall>,
    /// What a person is asked, if one is to be asked.
    pub(super) request: Option<Arc<ApprovalRequest>>,
}

/// A decision on this exact call.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) call_id: String,
    pub(crate) exactly: Fingerprint,
    pub(crate) decision: Decision,
}

impl Report {
    pub(super) fn input(kind: InputKind) -> Self {
        Self::Input(Box::new(kind))
    }
}

impl Driver {
    pub(super) async fn report(&mut self, report: Report) {
        // What a tool did to subagents is known before what came of it.
        self.follow_subagents().await;
        match report {
            Report::Input(kind) => self.step(*kind).await,
            Report::TimerFired { timer, stopped } => {
                if !stopped.is_cancelled() {
                    self.step(InputKind::TimerFired { timer }).await;
                }
            }
            Report::Text { segment, delta } => {
                if let Some(start) = self.begun.segment(segment) {
                    self.log.delta(self.clock.now(), start, &delta);
                }
            }
            Report::Prepared(over) => {
                let kind = self.prepared(*over);
                self.step(kind).await;
            }
            Report::Decided(decided) => {
                let Decided { call_id, exactly, decision } = *decided;
                if let Some(kind) = self.decided(&call_id, exactly, decision) {
                    self.step(kind).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Command;

    #[test]
    fn what_waits_in_a_channel_is_small() {
        // A block of a channel holds 32, and every session has one for each of the two.
        assert!(size_of::<Report>() <= 48, "{}", size_of::<Report>());
        assert!(size_of::<Command>() <= 64, "{}", size_of::<Command>());
    }
}
