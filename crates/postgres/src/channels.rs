//! Channels of notifications, one per session that is followed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Who follows which session. A notification has no payload: whoever gets it reads again.
#[derive(Debug, Default)]
pub(crate) struct Channels(Mutex<HashMap<String, watch::Sender<()>>>);

impl Channels {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a channel. Also returns the channels that nobody follows any more.
    pub(crate) fn subscribe(&self, name: &str) -> (watch::Receiver<()>, Vec<String>) {
        let mut channels = self.lock();
        let receiver = channels.entry(name.to_owned()).or_default().subscribe();
        let left =
            channels.extract_if(|_, sender| sender.receiver_count() == 0).map(|(name, _)| name).collect();
        (receiver, left)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn notify(&self, name: &str) {
        if let Some(sender) = self.lock().get(name) {
            sender.send_replace(());
        }
    }

    /// Notifies everybody: after a connection was lost or opened, notifications may have been missed.
    pub(crate) fn notify_all(&self) {
        for sender in self.lock().values() {
            sender.send_replace(());
        }
    }
}
