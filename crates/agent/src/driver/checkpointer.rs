//! Checkpoints of the workspace around calls that change it.

use std::sync::Arc;
use std::time::Instant;

use pintle_env::ExecutionEnvironment;
use pintle_tools::pipeline::PreparedCall;
use pintle_tools::{Effect, ToolKind};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::Report;
use crate::checkpoints::Checkpoints;
use crate::protocol::{CheckpointReason, InputKind};

/// Takes checkpoints, one at a time. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Checkpointer {
    source: Option<Arc<dyn Checkpoints>>,
    newest: Arc<Mutex<Newest>>,
}

/// The newest checkpoint.
#[derive(Debug, Default)]
struct Newest {
    id: Option<String>,
    /// Time at which it was begun: it has all changes before.
    begun: Option<Instant>,
}

impl Checkpointer {
    pub(super) fn new(source: Option<Arc<dyn Checkpoints>>) -> Self {
        Self { source, newest: Arc::default() }
    }

    /// Returns what takes the checkpoints, for a subagent.
    pub(super) fn source(&self) -> Option<Arc<dyn Checkpoints>> {
        self.source.clone()
    }

    /// Takes a checkpoint before a call that changes something.
    pub(super) async fn before(
        &self,
        call: &PreparedCall,
        env: &dyn ExecutionEnvironment,
        reports: &mpsc::Sender<Report>,
    ) {
        if changes_files(call) {
            self.take(CheckpointReason::BeforeCall, env, reports).await;
        }
    }

    /// Takes a checkpoint after a call that may have changed something, so that later changes are known to be somebody
    /// else's.
    pub(super) async fn after(
        &self,
        call: &PreparedCall,
        env: &dyn ExecutionEnvironment,
        reports: &mpsc::Sender<Report>,
    ) {
        if changes_files(call) {
            self.take(CheckpointReason::AfterCall, env, reports).await;
        }
    }

    /// Takes a checkpoint and returns once it is on record. One that equals the newest is not recorded again.
    async fn take(
        &self,
        reason: CheckpointReason,
        env: &dyn ExecutionEnvironment,
        reports: &mpsc::Sender<Report>,
    ) {
        let Some(source) = &self.source else { return };
        let asked = Instant::now();
        let mut newest = self.newest.lock().await;
        // Another call has taken one meanwhile.
        if newest.begun.is_some_and(|begun| begun >= asked) {
            return;
        }
        let begun = Instant::now();
        let checkpoint = match source.take(env).await {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                tracing::warn!(%error, "no checkpoint of the workspace was taken");
                return;
            }
        };
        newest.begun = Some(begun);
        if newest.id.as_ref() == Some(&checkpoint.id) {
            return;
        }
        newest.id = Some(checkpoint.id.clone());
        let kind = Box::new(InputKind::CheckpointTaken { reason, checkpoint });
        let (recorded, on_record) = oneshot::channel();
        // If the driver is gone or cannot record, the call is stopped.
        if reports.send(Report::Intent { kind, recorded }).await.is_ok() {
            let _ = on_record.await;
        }
    }
}

/// Returns whether a call may change files, itself or through a subagent.
fn changes_files(call: &PreparedCall) -> bool {
    match call.effect() {
        Effect::Write | Effect::Execute => true,
        Effect::Read | Effect::Network => call.kind() == ToolKind::SpawnAgent.as_str(),
    }
}
