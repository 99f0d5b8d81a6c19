//! Values of a session.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_store::{Blobs, Hash, SessionId, StoreError};

use crate::database::{Database, REMOVALS};
use crate::reconnecting_client::parameters;
use crate::statement_error::unreadable_row;

const PUT: &str = "WITH owner AS (SELECT key FROM sessions WHERE id = $1 FOR KEY SHARE), \
     content AS (INSERT INTO blobs (hash, bytes) SELECT $2, $3 FROM owner ON CONFLICT DO NOTHING), \
     reference AS (INSERT INTO session_blobs (session, hash) SELECT key, $2 FROM owner ON CONFLICT DO NOTHING) \
     SELECT key FROM owner";

const GET: &str = "SELECT bytes FROM blobs JOIN session_blobs USING (hash) JOIN sessions ON key = session \
                   WHERE id = $1 AND hash = $2";

#[derive(Debug)]
pub(crate) struct PostgresBlobs {
    pub(crate) database: Arc<Database>,
    pub(crate) id: SessionId,
}

#[async_trait]
impl Blobs for PostgresBlobs {
    async fn put(&self, bytes: Vec<u8>) -> Result<Hash, StoreError> {
        const ACTION: &str = "keep a value of a session";
        let hash = Hash::of(&bytes);
        let name = hash.as_bytes().as_slice();
        let mut attempts = 0;
        loop {
            let id = self.id.as_str();
            match self.database.main.query(ACTION, PUT, parameters![id, name, bytes]).await {
                Ok(rows) if rows.is_empty() => return Err(StoreError::NotFound(self.id.clone())),
                Ok(_) => return Ok(hash),
                // Either the value was removed concurrently with the last session that had it, or the connection was lost.
                // The statement is idempotent.
                Err(failure) if attempts < REMOVALS && (failure.is_dangling || failure.is_lost) => {
                    attempts += 1
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    async fn get(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        const ACTION: &str = "read a value of a session";
        let name = hash.as_bytes().as_slice();
        let id = self.id.as_str();
        let rows = self.database.main.query_repeatable(ACTION, GET, parameters![id, name]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let bytes: Vec<u8> = row.try_get(0).map_err(|error| unreadable_row(ACTION, &error))?;
        if Hash::of(&bytes) == *hash { Ok(Some(bytes)) } else { Err(StoreError::DamagedBlob(*hash)) }
    }
}
