//! Work that blocks, off the runtime's threads.

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::error::EnvError;

/// Runs `work` on a blocking thread. It runs to its end even if the future is dropped.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EnvError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(payload) => panic::resume_unwind(payload),
            Err(cancelled) => Err(EnvError::EnvironmentLost {
                environment: "the asynchronous runtime".to_owned(),
                source: Some(cancelled.into()),
            }),
        },
    }
}

/// Tells work on another thread that nobody waits for it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// Whether the work should stop.
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops the work when the guard is dropped.
    pub(crate) fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// Held by the future that waits for the work.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
