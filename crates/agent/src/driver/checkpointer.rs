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

/// Takes checkpoints sequentially. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Checkpointer {
    source: Option<Arc<dyn Checkpoints>>,
    newest: Arc<Mutex<NewestCheckpoint>>,
}

/// The newest checkpoint.
#[derive(Debug, Default)]
struct NewestCheckpoint {
    id: Option<String>,
    /// Start time of the checkpoint, which contains all earlier changes.
    begun: Option<Instant>,
}

impl Checkpointer {
    pub(super) fn new(source: Option<Arc<dyn Checkpoints>>) -> Self {
        Self { source, newest: Arc::default() }
    }

    /// Returns the source of the checkpoints, for a subagent.
    pub(super) fn source(&self) -> Option<Arc<dyn Checkpoints>> {
        self.source.clone()
    }

    /// Takes a checkpoint before a call that changes files.
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

    /// Takes a checkpoint after a call that may have changed files. Later changes are then known to come from outside
    /// the session.
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

    /// Takes a checkpoint and returns once it is recorded. A checkpoint equal to the newest one is not recorded again.
    async fn take(
        &self,
        reason: CheckpointReason,
        env: &dyn ExecutionEnvironment,
        reports: &mpsc::Sender<Report>,
    ) {
        let Some(source) = &self.source else { return };
        let asked = Instant::now();
        let mut newest = self.newest.lock().await;
        // Another call has taken a checkpoint meanwhile.
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
