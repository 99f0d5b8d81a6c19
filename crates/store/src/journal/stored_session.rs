//! Sessions of a store that an application opens by their id.

use std::sync::Arc;

use pintle_agent::{Record, SessionBuilder, SessionId, Timestamp};

use super::StoredJournal;
use super::reading::read_record;
use crate::error::StoreError;
use crate::store::{SessionStore, Summary};

/// Stored session that this process has open for writing.
///
/// ```
/// use std::sync::Arc;
/// use pintle_store::{MemoryStore, SessionId, SessionStore, StoredSession};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pintle_store::StoreError> {
/// let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
/// let stored = StoredSession::open_or_create(&store, &SessionId::new("support-17")).await?;
/// // `stored.attach(Session::builder(client, profile, environment)).build()?` continues the session.
/// assert!(stored.record.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredSession {
    /// Summary, with the properties of the session.
    pub summary: Summary,
    /// Record of earlier processes; `None` if they recorded nothing.
    pub record: Option<Record>,
    /// Journal, which also keeps the journals of subagents.
    pub journal: StoredJournal,
}

impl StoredSession {
    /// Opens the session with this id, or creates it.
    ///
    /// # Errors
    ///
    /// As for [`SessionStore::open`], [`SessionStore::create`] and [`read_record`].
    pub async fn open_or_create(store: &Arc<dyn SessionStore>, id: &SessionId) -> Result<Self, StoreError> {
        match Self::open(store, id).await {
            Err(StoreError::NotFound(_)) => {}
            opened => return opened,
        }
        match Self::create(store, Summary::new(id.clone(), Timestamp::now())).await {
            // Another process created it meanwhile.
            Err(StoreError::Exists(_)) => Self::open(store, id).await,
            created => created,
        }
    }

    /// Creates the session of a summary.
    ///
    /// # Errors
    ///
    /// As for [`SessionStore::create`].
    pub async fn create(store: &Arc<dyn SessionStore>, summary: Summary) -> Result<Self, StoreError> {
        let writer = store.create(summary.clone()).await?;
        let journal = StoredJournal::new(writer, summary.clone()).with_subagents(Arc::clone(store));
        Ok(Self { summary, record: None, journal })
    }

    /// Opens a session and reads its record.
    ///
    /// # Errors
    ///
    /// As for [`SessionStore::open`] and [`read_record`].
    pub async fn open(store: &Arc<dyn SessionStore>, id: &SessionId) -> Result<Self, StoreError> {
        let writer = store.open(id).await?.writer;
        let summary = store.summary(id).await?.ok_or_else(|| StoreError::NotFound(id.clone()))?;
        let record = match read_record(store.as_ref(), id).await {
            Ok(record) => Some(record),
            Err(StoreError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        let journal = StoredJournal::new(writer, summary.clone()).with_subagents(Arc::clone(store));
        Ok(Self { summary, record, journal })
    }

    /// Sets the id, the record and the journal of a builder, which then builds this session.
    #[must_use]
    pub fn attach(self, builder: SessionBuilder) -> SessionBuilder {
        let builder = match self.record {
            Some(record) => builder.resume(record),
            None => builder.with_id(self.summary.id),
        };
        builder.journal(self.journal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[tokio::test]
    async fn a_session_is_created_once_and_has_one_writer() {
        let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
        let id = SessionId::new("a");
        let missing = StoredSession::open(&store, &id).await;
        assert!(matches!(missing, Err(StoreError::NotFound(_))), "{missing:?}");
        let first = StoredSession::open_or_create(&store, &id).await.unwrap();
        assert!(first.record.is_none());
        let second = StoredSession::open_or_create(&store, &id).await;
        assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
        let created_at = first.summary.created_at;
        drop(first);
        let again = StoredSession::open_or_create(&store, &id).await.unwrap();
        assert_eq!((again.summary.id, again.summary.created_at), (id.clone(), created_at));
        let exists = StoredSession::create(&store, Summary::new(id, created_at)).await;
        assert!(matches!(exists, Err(StoreError::Exists(_))), "{exists:?}");
    }
}
