//! Runs blocking work off the runtime's threads.

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::task::JoinHandle;

use crate::error::EnvError;

/// Runs `work` on a blocking thread.
///
/// If the future is dropped, work that has not started never starts, and work that has started runs
/// to completion.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EnvError> {
    let mut running = AbortOnDrop(tokio::task::spawn_blocking(work));
    match (&mut running.0).await {
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

/// Aborts queued work when its future is dropped; work that has started is not affected.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Cancellation flag for work on another thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Returns true once the work should stop.
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard that cancels the work when dropped.
    pub(crate) fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// Cancels the work when its future is dropped.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, task::Context};

    use super::*;

    #[test]
    fn queued_work_is_cancelled_on_drop() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let (started, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        runtime.block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let first = tokio::task::spawn_blocking(move || released.recv());
            let flag = Arc::clone(&runs);
            let mut queued = Box::pin(blocking(move || flag.store(true, Ordering::Relaxed)));
            let waker = std::task::Waker::noop();
            assert!(queued.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
            drop(queued);
            drop(release);
            first.await.unwrap().unwrap_err();
            let flag = Arc::clone(&started);
            blocking(move || flag.store(true, Ordering::Relaxed)).await.unwrap();
        });
        assert!(started.load(Ordering::Relaxed));
        assert!(!runs.load(Ordering::Relaxed));
    }
}
