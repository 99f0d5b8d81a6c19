//! Shutdown of a session and of everything that it started (loop specification, appendix B).

use std::sync::Arc;

use super::Driver;
use crate::event_log::EventLog;
use crate::protocol::{InputKind, SessionEndReason};
use crate::subagent::Shutdown;

impl Driver {
    /// Ends all work of the session and waits for it, while the journal is synced. Returns the remaining inputs about
    /// subagents.
    pub(super) async fn clean_up(&mut self) -> Vec<InputKind> {
        // Nothing is recorded meanwhile: the tasks that report inputs end.
        let mut recording = std::mem::take(&mut self.recording);
        let (inputs, ()) = tokio::join!(self.end_work(), recording.sync());
        self.recording = recording;
        inputs
    }

    /// Ends all tasks, then all processes, then all subagents, and waits for them (appendix B, steps 1 to 6). Returns the
    /// remaining inputs about subagents.
    async fn end_work(&mut self) -> Vec<InputKind> {
        if let Some(model) = self.model.take() {
            model.cancel();
        }
        self.tasks.shutdown().await;
        self.calls.clear();
        self.timers.cancel_approvals();
        self.background.close().await;
        self.subagents.close(self.shutdown).await;
        // An abandoned session ends as if the process had died, without hooks.
        if let Some(hooks) = &self.hooks
            && self.shutdown != Shutdown::Abandon
        {
            let suspended = (self.shutdown == Shutdown::Suspend).then_some(SessionEndReason::Suspended);
            hooks.session_ended(suspended.unwrap_or_else(|| self.machine.end_reason())).await;
        }
        self.environment.clean_up().await;
        self.subagents.take_inputs().into()
    }
}

/// Closes the log when the driver is dropped, so that no subscriber waits forever.
#[derive(Debug)]
pub(super) struct CloseOnDrop(pub(super) Arc<EventLog>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
