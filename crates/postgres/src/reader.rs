//! Reads a journal, and follows it and its inbox while they are written on any host.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_store::{InboxSignal, Line, Reader, StoreError};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::database::Database;
use crate::journal_cursor::JournalCursor;

/// Interval at which a waiting reader polls. A notification is only a hint: it is lost with its connection.
const POLL: Duration = Duration::from_secs(2);

pub(crate) struct PostgresReader {
    pub(crate) database: Arc<Database>,
    pub(crate) cursor: JournalCursor,
    /// Channel of the session.
    pub(crate) channel: String,
    /// `None` until the first wait.
    pub(crate) hints: Option<watch::Receiver<()>>,
}

#[async_trait]
impl Reader for PostgresReader {
    async fn next(&mut self) -> Result<Option<Line>, StoreError> {
        if let Some(hints) = &mut self.hints {
            // Cleared before the query: a notification during the query may be for lines that it does not find.
            hints.borrow_and_update();
        }
        self.cursor.next().await
    }

    async fn wait(&mut self) {
        if !self.cursor.is_at_end() {
            return;
        }
        match &mut self.hints {
            // Lines written before the subscription give no hint, so the caller has to read once more.
            hints @ None => match self.database.subscribe(&self.channel).await {
                Ok(receiver) => *hints = Some(receiver),
                Err(_) => sleep(POLL).await,
            },
            Some(hints) => wait_for_hint(&self.database, hints).await,
        }
    }
}

/// Waits for a notification, for no longer than [`POLL`].
async fn wait_for_hint(database: &Database, hints: &mut watch::Receiver<()>) {
    let hint = async {
        // Reopening a lost connection is a hint as well.
        if database.side.client().await.is_err() {
            std::future::pending::<()>().await;
        }
        let _ = hints.changed().await;
    };
    let _ = timeout(POLL, hint).await;
}

/// Notifies a writer of inputs posted to its session, from any host.
#[derive(Debug)]
pub(crate) struct PostgresInbox {
    pub(crate) database: Arc<Database>,
    pub(crate) channel: String,
    /// `None` until the first wait.
    pub(crate) hints: Option<watch::Receiver<()>>,
}

#[async_trait]
impl InboxSignal for PostgresInbox {
    async fn wait(&mut self) {
        match &mut self.hints {
            // As for a reader.
            hints @ None => match self.database.subscribe(&self.channel).await {
                Ok(receiver) => *hints = Some(receiver),
                Err(_) => sleep(POLL).await,
            },
            Some(hints) => wait_for_hint(&self.database, hints).await,
        }
    }
}
