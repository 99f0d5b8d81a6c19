//! Declared changes of files: recorded before the change, and compared with the files after a crash.

use std::time::Duration;

use async_trait::async_trait;
use pintle_tools::{FileIntent, IntentSink, Reconciliation, ToolError, ToolErrorKind, reconcile};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use super::{Driver, Report};
use crate::protocol::{CallKey, InputKind};
use crate::record::Fence;

/// Time limit for the comparison of one call's files.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(60);

/// Records the changes that a call declares, before the call makes them.
pub(super) struct RecordedIntents {
    pub(super) call: CallKey,
    pub(super) reports: mpsc::Sender<Report>,
    pub(super) fence: Fence,
}

#[async_trait]
impl IntentSink for RecordedIntents {
    async fn declare(&self, files: Vec<FileIntent>) -> Result<(), ToolError> {
        let kind = Box::new(InputKind::ChangesDeclared { call: self.call, files });
        let (recorded, on_record) = oneshot::channel();
        let unrecorded = || {
            let message = "nothing was changed: the session cannot record what the call is about to do";
            ToolError::new(ToolErrorKind::Cancelled, message)
        };
        self.reports.send(Report::Intent { kind, recorded }).await.map_err(|_closed| unrecorded())?;
        on_record.await.map_err(|_dropped| unrecorded())?;
        // Nothing may wait between this check and the effect.
        self.fence.check().map_err(|error| ToolError::new(ToolErrorKind::Denied, error.to_string()))
    }
}

impl Driver {
    /// Compares the files of an interrupted call with its declared changes, in a separate task.
    pub(super) fn reconcile(&mut self, call: CallKey, files: Vec<FileIntent>) {
        let env = self.environment.requested().clone();
        let init = self.environment.initialization();
        let reports = self.reports.clone();
        let task = async move {
            let comparing = async {
                match init.ensure().await {
                    Ok(()) => reconcile(env.as_ref(), &files).await,
                    Err(error) => Reconciliation::Unknown { reason: error.to_string() },
                }
            };
            let result =
                tokio::time::timeout(RECONCILE_TIMEOUT, comparing).await.unwrap_or_else(|_elapsed| {
                    let reason = format!("no answer within {} s", RECONCILE_TIMEOUT.as_secs());
                    Reconciliation::Unknown { reason }
                });
            // If the driver is gone, the result is no longer needed.
            let _ = reports.send(Report::input(InputKind::Reconciled { call, result })).await;
        };
        self.spawn(task.instrument(self.trace.run()));
    }
}
