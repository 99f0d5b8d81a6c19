//! The failure of a machine that had a sandbox before.

use std::future::pending;

use tokio::sync::watch;

use crate::error::EnvError;

/// Why no sandbox can be set up any more; shared by the clones of an environment.
#[derive(Debug)]
pub(super) struct SandboxFailure(watch::Sender<Option<String>>);

impl Default for SandboxFailure {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl SandboxFailure {
    /// Records the reason. The first one stays.
    pub(super) fn record(&self, reason: String) {
        self.0.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                *known = Some(reason);
            }
            is_first
        });
    }

    /// Returns the reason.
    pub(super) fn reason(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Waits for a failure. Never completes without one.
    pub(super) fn wait(&self) -> impl Future<Output = String> + Send + use<> {
        let mut reasons = self.0.subscribe();
        async move {
            let reason = reasons.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
            match reason {
                Some(reason) => reason,
                // The environment is gone.
                None => pending().await,
            }
        }
    }

    /// Checks that sandboxes can be set up, as far as is known.
    ///
    /// # Errors
    ///
    /// [`EnvError::Refused`] after a failure.
    pub(super) fn require_none(&self) -> Result<(), EnvError> {
        match self.reason() {
            None => Ok(()),
            Some(reason) => Err(EnvError::Refused {
                operation: "starting a command".to_owned(),
                reason: format!("the sandbox cannot be set up any more: {reason}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays_and_wakes_all() {
        let failure = SandboxFailure::default();
        let (early, other) = (failure.wait(), failure.wait());
        failure.require_none().unwrap();
        failure.record("first".to_owned());
        failure.record("second".to_owned());
        assert_eq!(
            (early.await, other.await, failure.wait().await.as_str()),
            ("first".to_owned(), "first".to_owned(), "first")
        );
        let error = failure.require_none().unwrap_err();
        assert!(error.to_string().contains("any more: first"), "{error}");
    }
}
