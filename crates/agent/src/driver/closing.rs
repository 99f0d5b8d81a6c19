//! The end of a session, and of what it has started (loop specification, appendix B).

use std::sync::Arc;

use super::Driver;
use crate::event_log::EventLog;
use crate::turn::InputKind;

impl Driver {
    /// Ends every task, then every process, then every subagent, and waits for them (appendix B, steps 1 to 6). What
    /// became of the subagents is still to be told.
    pub(super) async fn clean_up(&mut self) -> Vec<InputKind> {
        if let Some(model) = self.model.take() {
            model.cancel();
        }
        self.tasks.shutdown().await;
        self.calls.running.clear();
        self.forget_waiting_calls();
        self.background.close().await;
        self.subagents.close().await;
        if !self.keep_environment
            && let Err(error) = self.home.cleanup().await
        {
            tracing::warn!(%error, "the environment could not be cleaned up");
        }
        self.subagents.take_inputs().into()
    }
}

/// Closes the log however the driver ends, so that no subscriber waits for ever.
#[derive(Debug)]
pub(super) struct CloseOnDrop(pub(super) Arc<EventLog>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
