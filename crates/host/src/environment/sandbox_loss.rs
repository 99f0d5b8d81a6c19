//! Loss of the sandbox while a session runs: the machine had one when it was probed, and has none now.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

/// Returns why a sandbox is lost, if it is.
type LossReason = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Watches the sandbox of a session.
#[derive(Default)]
pub(super) struct SandboxLoss {
    reason: Option<LossReason>,
    /// Waits for a loss, and returns the reason.
    wait: Mutex<Option<BoxFuture<'static, String>>>,
    /// Removes the record of the probe, so that the next session probes the machine.
    forget_probe: Option<Box<dyn Fn() + Send + Sync>>,
    watching: Mutex<JoinSet<()>>,
}

impl SandboxLoss {
    /// Watches a sandbox whose loss `wait` awaits and `reason` reports. `forget_probe` removes the record of its probe.
    #[cfg(any(test, target_os = "linux"))]
    pub(super) fn new(
        reason: LossReason,
        wait: BoxFuture<'static, String>,
        forget_probe: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self {
            reason: Some(reason),
            wait: Mutex::new(Some(wait)),
            forget_probe: Some(forget_probe),
            watching: Mutex::default(),
        }
    }

    /// Returns why the sandbox is lost.
    pub(super) fn reason(&self) -> Option<String> {
        self.reason.as_ref().and_then(|reason| reason())
    }

    /// Calls `react` with the reason once the sandbox is lost. Only the first call has an effect.
    pub(super) fn watch(&self, react: impl FnOnce(String) -> BoxFuture<'static, ()> + Send + 'static) {
        let wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(wait) = wait {
            let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
            watching.spawn(async move { react(wait.await).await });
        }
    }

    /// Stops to watch. Removes the record of the probe if the sandbox is lost.
    pub(super) async fn stop(&self) {
        let mut watching = std::mem::take(&mut *self.watching.lock().unwrap_or_else(PoisonError::into_inner));
        watching.shutdown().await;
        if self.reason().is_some()
            && let Some(forget_probe) = &self.forget_probe
        {
            forget_probe();
        }
    }
}

impl fmt::Debug for SandboxLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxLoss").field("reason", &self.reason()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[tokio::test]
    async fn a_loss_is_reported_once_and_the_record_removed() {
        let (lose, lost) = oneshot::channel::<String>();
        let (reason, forgotten) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
        let loss = SandboxLoss::new(
            {
                let reason = Arc::clone(&reason);
                Arc::new(move || reason.lock().unwrap().clone())
            },
            Box::pin(async move { lost.await.unwrap() }),
            {
                let forgotten = Arc::clone(&forgotten);
                Box::new(move || {
                    forgotten.fetch_add(1, Ordering::Relaxed);
                })
            },
        );
        let (sender, mut reasons) = mpsc::unbounded_channel();
        for _ in ["the watch", "another one"] {
            let sender = sender.clone();
            loss.watch(move |reason| Box::pin(async move { sender.send(reason).unwrap() }));
        }
        drop(sender);
        assert_eq!(loss.reason(), None);
        *reason.lock().unwrap() = Some("no namespaces".to_owned());
        lose.send("no namespaces".to_owned()).unwrap();
        assert_eq!(reasons.recv().await.as_deref(), Some("no namespaces"));
        assert_eq!(reasons.recv().await, None);
        assert_eq!(forgotten.load(Ordering::Relaxed), 0);
        loss.stop().await;
        assert_eq!(forgotten.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_sandbox_that_is_not_lost_keeps_its_record() {
        let forgotten = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&forgotten);
        let loss = SandboxLoss::new(
            Arc::new(|| None),
            Box::pin(std::future::pending()),
            Box::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            }),
        );
        loss.watch(|_| Box::pin(async {}));
        loss.stop().await;
        SandboxLoss::default().stop().await;
        assert_eq!(forgotten.load(Ordering::Relaxed), 0);
    }
}
