//! Pauses that a test controls.

use std::sync::Arc;

use tokio::sync::watch;

/// A pause that lasts until the gate is opened. It can also be awaited until a connection reaches it.
///
/// Clones share one gate. Once open, it stays open for every connection.
#[derive(Debug, Clone, Default)]
pub struct FaultGate {
    flags: Arc<Flags>,
}

#[derive(Debug, Default)]
struct Flags {
    reached: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl FaultGate {
    /// Creates a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the gate for all connections.
    pub fn open(&self) {
        self.flags.open.send_replace(true);
    }

    /// Waits until a connection has reached the gate and completed all preceding steps of its script.
    pub async fn reached(&self) {
        wait(&self.flags.reached).await;
    }

    /// Marks the gate as reached and waits until it is open.
    pub(super) async fn pass(&self) {
        self.flags.reached.send_replace(true);
        wait(&self.flags.open).await;
    }
}

/// Waits until the flag is set.
async fn wait(flag: &watch::Sender<bool>) {
    // Fails only if the sender is dropped, and it is borrowed here.
    let _ = flag.subscribe().wait_for(|set| *set).await;
}
