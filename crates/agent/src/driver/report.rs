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
#[derive(Debug)]
pub(super) enum Report {
    /// Something that the machine must know.
    Input(InputKind),
    /// The time of a timer is over, unless it was stopped meanwhile.
    TimerFired { timer: Timer, stopped: CancellationToken },
    /// More text of an open segment.
    Text { segment: SegmentId, delta: String },
    /// A call's preparation is over.
    Prepared {
        call: CallKey,
        preparation: Preparation,
        prepared: Option<Box<PreparedCall>>,
        /// What a person is asked, if one is to be asked.
        request: Option<Arc<ApprovalRequest>>,
    },
    /// The approver has decided on this exact call.
    Decided { call_id: String, exactly: Fingerprint, decision: Decision },
}

impl Driver {
    pub(super) async fn report(&mut self, report: Report) {
        // What a tool did to subagents is known before what came of it.
        self.follow_subagents().await;
        match report {
            Report::Input(kind) => self.step(kind).await,
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
            Report::Prepared { call, preparation, prepared, request } => {
                self.calls.prepared(call, prepared, request);
                self.step(InputKind::CallPrepared { call, preparation }).await;
            }
            Report::Decided { call_id, exactly, decision } => {
                if let Some(decided) = self.decided(&call_id, exactly, decision) {
                    self.step(decided).await;
                }
            }
        }
    }
}
