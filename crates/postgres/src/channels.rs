//! Notification channels of the sessions that are followed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Receivers of each channel. A notification has no payload: its receivers read again.
#[derive(Debug, Default)]
pub(crate) struct NotificationChannels(Mutex<HashMap<String, watch::Sender<()>>>);

impl NotificationChannels {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to a channel. Also removes and returns the channels that have no receiver left.
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

    /// Notifies all receivers. Notifications may have been missed when a connection was lost or opened.
    pub(crate) fn notify_all(&self) {
        for sender in self.lock().values() {
            sender.send_replace(());
        }
    }
}
