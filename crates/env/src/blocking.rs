//! Work that blocks, off the runtime's threads.

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
/// If the future is dropped, work that has not begun never begins, and work that has begun runs to its end.
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

/// Takes work out of the queue when nobody waits for it any more; work that has begun is not touched.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
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

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, task::Context};

    use super::*;

    #[test]
    fn dropped_work_that_has_not_begun_never_begins() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let (begun, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        runtime.block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let first = tokio::task::spawn_blocking(move || released.recv());
            let mark = Arc::clone(&runs);
            let mut queued = Box::pin(blocking(move || mark.store(true, Ordering::Relaxed)));
            let waker = std::task::Waker::noop();
            assert!(queued.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
            drop(queued);
            drop(release);
            first.await.unwrap().unwrap_err();
            let mark = Arc::clone(&begun);
            blocking(move || mark.store(true, Ordering::Relaxed)).await.unwrap();
        });
        assert!(begun.load(Ordering::Relaxed));
        assert!(!runs.load(Ordering::Relaxed));
    }
}
