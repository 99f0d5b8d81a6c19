//! Pauses that end when a test says so.

use std::sync::Arc;

use tokio::sync::watch;

/// A pause that lasts until it is released, and that tells when it has been reached.
///
/// Clones are the same gate. Once open it stays open, for every connection.
#[derive(Debug, Clone, Default)]
pub struct FaultGate {
    sides: Arc<Sides>,
}

#[derive(Debug, Default)]
struct Sides {
    reached: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl FaultGate {
    /// A gate that is shut.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everyone pass, from now on.
    pub fn open(&self) {
        self.sides.open.send_replace(true);
    }

    /// Waits until a connection has come to the gate, and with it through all of its script before the gate.
    pub async fn reached(&self) {
        wait(&self.sides.reached).await;
    }

    /// Comes to the gate, and waits until it is open.
    pub(super) async fn pass(&self) {
        self.sides.reached.send_replace(true);
        wait(&self.sides.open).await;
    }
}

/// Waits until the flag is set.
async fn wait(flag: &watch::Sender<bool>) {
    // It fails only without a sender, and the sender is borrowed here.
    let _ = flag.subscribe().wait_for(|set| *set).await;
}
