//! The store.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_store::format::{MAX_ID, hashes};
use pintle_store::{
    Blobs, Filter, Hash, Holder, JournalProblem, LineId, OpenedSession, Page, Position, Posting, Reader,
    SessionId, SessionStore, SessionWriter, StoreError, Summary, Verification,
};
use tokio_postgres::Row;

use crate::blobs::PostgresBlobs;
use crate::database::{Database, REMOVALS, number};
use crate::journal_cursor::JournalCursor;
use crate::options::PostgresOptions;
use crate::origins::ForkOrigins;
use crate::reader::PostgresReader;
use crate::reconnecting_client::parameters;
use crate::statement_error::unreadable_row;
use crate::summary::{parse_summary, properties_json, searchable};
use crate::writer::{ForkPrefix, PostgresWriter};

/// Summaries per query.
const LIST_BATCH: i64 = 256;

const SELECT_SESSION: &str = "SELECT key, epoch, head_seq, head_hash, holder_host, holder_pid, \
                    coalesce(lease_until > clock_timestamp(), false), origins FROM sessions WHERE id = $1";

const SUMMARY: &str = "SELECT summary FROM sessions WHERE id = $1";

const LIST: &str = "SELECT summary, updated_at, id FROM sessions WHERE parent IS NOT DISTINCT FROM $1 AND properties @> $2::text::jsonb \
     AND ($3::bigint IS NULL OR updated_at < $3 OR (updated_at = $3 AND id > $4)) \
     ORDER BY updated_at DESC, id LIMIT $5";

const POST: &str = "WITH owner AS (SELECT key FROM sessions WHERE id = $1 FOR KEY SHARE), \
     posted AS (INSERT INTO inbox (session, input_id, input) SELECT key, $2, $3 FROM owner \
         ON CONFLICT DO NOTHING RETURNING session) \
     SELECT EXISTS (SELECT FROM posted), pg_notify($4 || ':' || key || ':i', '') FROM owner";

const HAS_POSTED: &str = "SELECT EXISTS (SELECT FROM inbox WHERE session = key AND input IS NOT NULL) \
     FROM sessions WHERE id = $1";

/// All parts of the statement see the tables as they were before it, so the references of the session still exist. They are
/// deleted with the session, and foreign keys are checked at the commit.
const DELETE: &str = "WITH gone AS (DELETE FROM sessions WHERE id = $1 \
         AND (lease_until IS NULL OR lease_until <= clock_timestamp()) RETURNING key), \
     left_over AS (DELETE FROM blobs WHERE \
         hash IN (SELECT hash FROM session_blobs JOIN gone ON session = key) AND NOT EXISTS \
         (SELECT FROM session_blobs AS other WHERE other.hash = blobs.hash AND session NOT IN (SELECT key FROM gone))) \
     SELECT pg_notify($2 || ':' || key, '') FROM gone";

/// Sessions in a PostgreSQL database, for any number of processes on any number of hosts.
///
/// A session has at most one writer, which holds a lease on the clock of the database. A second writer is refused while the
/// lease is valid ([`PostgresOptions::with_lease`]), and takes the session over after it has expired. Clones share two
/// connections, which are reopened after they were lost: one for statements, one for leases and notifications.
///
/// It must be used within a Tokio runtime with I/O and time enabled.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) database: Arc<Database>,
}

/// Row of a session, without its journal.
struct SessionRow {
    key: i64,
    head: Position,
    holder: Option<Holder>,
    origins: ForkOrigins,
}

impl PostgresStore {
    /// Connects to a server and creates the tables unless they exist. `connection` is a connection string of PostgreSQL:
    /// `postgresql://user@localhost/database`, or `host=/run/postgresql user=… dbname=…`. It must lead to the server itself
    /// or to a proxy that keeps one database session per connection: notifications and settings belong to a database
    /// session.
    ///
    /// TLS is not built in. Servers on other hosts are refused unless [`PostgresOptions::allow_plain_hosts`] is set, or the
    /// string has `sslmode=disable`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Service`] if an option or the connection string is refused, if the server cannot be reached, or if it
    /// has tables of a newer version. No error contains the password.
    pub async fn connect(connection: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        Ok(Self { database: Arc::new(Database::connect(connection, options).await?) })
    }

    async fn find_row(&self, id: &SessionId) -> Result<Option<SessionRow>, StoreError> {
        const ACTION: &str = "look at a session";
        check_id(id)?;
        let rows =
            self.database.main.query_repeatable(ACTION, SELECT_SESSION, parameters![id.as_str()]).await?;
        let row = |row: &Row| {
            let hash: &[u8] = row.try_get(3)?;
            let holder = Holder::new(
                row.try_get::<_, String>(4)?,
                u32::try_from(row.try_get::<_, i64>(5)?).unwrap_or(0),
            );
            Ok(SessionRow {
                key: row.try_get(0)?,
                head: Position::new(
                    number(row.try_get(1)?),
                    number(row.try_get(2)?),
                    hash.try_into().map_or(Hash::START, Hash::from_bytes),
                ),
                holder: row.try_get::<_, bool>(6)?.then_some(holder),
                origins: ForkOrigins::parse(row.try_get(7)?),
            })
        };
        rows.first().map(row).transpose().map_err(|error| unreadable_row(ACTION, &error))
    }

    async fn require_row(&self, id: &SessionId) -> Result<SessionRow, StoreError> {
        self.find_row(id).await?.ok_or_else(|| StoreError::NotFound(id.clone()))
    }

    pub(crate) async fn create_writer(&self, summary: &Summary) -> Result<PostgresWriter, StoreError> {
        // The statement below would report the conflict as well, but it cannot be repeated. This query can, so it detects a
        // lost connection first.
        if self.find_row(&summary.id).await?.is_some() {
            return Err(StoreError::Exists(summary.id.clone()));
        }
        let writer = PostgresWriter::create(&self.database, summary).await?;
        writer.ok_or_else(|| StoreError::Exists(summary.id.clone()))
    }

    pub(crate) async fn open_writer(&self, id: &SessionId) -> Result<PostgresWriter, StoreError> {
        let mut row = self.require_row(id).await?;
        let mut cursor = self.open_cursor(id, &row, 1, None);
        loop {
            if let Some(holder) = row.holder {
                return Err(StoreError::InUse { session: id.clone(), holder });
            }
            while cursor.next().await?.is_some() {}
            // The journal may have grown since: then its new head is verified first.
            if cursor.head() == row.head
                && let Some(writer) = PostgresWriter::take_over(&self.database, id, row.key, row.head).await?
            {
                return Ok(writer);
            }
            let next = self.require_row(id).await?;
            if next.key != row.key {
                cursor = self.open_cursor(id, &next, 1, None);
            } else if next.head == row.head && next.head != cursor.head() && next.holder.is_none() {
                let (session, seq) = (id.clone(), next.head.seq);
                return Err(StoreError::Damaged {
                    session,
                    seq,
                    problem: "it is not the head of the journal",
                });
            }
            row = next;
        }
    }

    fn open_cursor(
        &self,
        id: &SessionId,
        row: &SessionRow,
        next: u64,
        last: Option<LineId>,
    ) -> JournalCursor {
        JournalCursor::new(Arc::clone(&self.database), id.clone(), row.key, row.origins.clone(), next, last)
    }

    /// Verifies the journal of `origin` up to line `at`, and copies it within the server.
    async fn fork_writer(
        &self,
        origin: &SessionId,
        at: u64,
        summary: &Summary,
    ) -> Result<PostgresWriter, StoreError> {
        check_id(&summary.id)?;
        let row = self.require_row(origin).await?;
        let mut cursor = self.open_cursor(origin, &row, 1, None);
        let mut values = BTreeSet::new();
        while cursor.head().seq < at {
            let Some(line) = cursor.next().await? else { break };
            values.extend(hashes(&line.object));
        }
        if at == 0 || cursor.head().seq != at {
            return Err(StoreError::NoSuchLine { session: origin.clone(), seq: at });
        }
        let prefix = ForkPrefix {
            session: row.origins.session_of(at, origin),
            key: row.key,
            head: cursor.head(),
            origins: row.origins.fork_after(origin, at),
            values: values.iter().map(|hash| hash.as_bytes().to_vec()).collect(),
        };
        let writer = PostgresWriter::fork(&self.database, &prefix, summary).await?;
        if writer.is_none() && self.find_row(&summary.id).await?.is_none() {
            return Err(StoreError::NotFound(origin.clone()));
        }
        writer.ok_or_else(|| StoreError::Exists(summary.id.clone()))
    }

    async fn reader(
        &self,
        id: &SessionId,
        next: u64,
        last: Option<LineId>,
    ) -> Result<Box<dyn Reader>, StoreError> {
        let row = self.require_row(id).await?;
        let database = Arc::clone(&self.database);
        let channel = database.channel(row.key);
        let cursor = self.open_cursor(id, &row, next, last);
        Ok(Box::new(PostgresReader { database, cursor, channel, hints: None }))
    }
}

fn check_id(id: &SessionId) -> Result<(), StoreError> {
    let text = id.as_str();
    if text.is_empty() || text.len() > MAX_ID || text.contains('\0') {
        return Err(StoreError::InvalidId(id.clone()));
    }
    Ok(())
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.database).finish()
    }
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn create(&self, summary: Summary) -> Result<Box<dyn SessionWriter>, StoreError> {
        Ok(Box::new(self.create_writer(&summary).await?))
    }

    async fn fork(
        &self,
        origin: &SessionId,
        at: u64,
        summary: Summary,
    ) -> Result<Box<dyn SessionWriter>, StoreError> {
        Ok(Box::new(self.fork_writer(origin, at, &summary).await?))
    }

    async fn open(&self, id: &SessionId) -> Result<OpenedSession, StoreError> {
        // A line is written as a whole or not at all, so no journal has a torn end.
        Ok(OpenedSession::new(Box::new(self.open_writer(id).await?)))
    }

    async fn read(&self, id: &SessionId, from: u64) -> Result<Box<dyn Reader>, StoreError> {
        self.reader(id, from, None).await
    }

    async fn read_after(&self, id: &SessionId, last: LineId) -> Result<Box<dyn Reader>, StoreError> {
        self.reader(id, last.seq.saturating_add(1), Some(last)).await
    }

    async fn verify(&self, id: &SessionId, head: Option<&Position>) -> Result<Verification, StoreError> {
        let row = self.require_row(id).await?;
        let blobs = self.blobs(id);
        let mut cursor = self.open_cursor(id, &row, 1, None);
        let mut found = Verification::new(cursor.head());
        found.matches_head = head.map(|head| head.seq == 0 && head.hash == Hash::START);
        loop {
            let line = match cursor.next().await {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error @ StoreError::Damaged { seq, .. }) => {
                    found.problems.push(JournalProblem::from_error(seq, &error));
                    break;
                }
                Err(error) => return Err(error),
            };
            if let Some(head) = head.filter(|head| head.seq == line.seq) {
                found.matches_head = Some(head.hash == cursor.head().hash);
            }
            for hash in hashes(&line.object) {
                match blobs.get(&hash).await {
                    Ok(Some(_)) => found.blobs += 1,
                    Ok(None) => {
                        found
                            .problems
                            .push(JournalProblem::from_error(line.seq, &StoreError::MissingBlob(hash)));
                    }
                    Err(error @ StoreError::DamagedBlob(_)) => {
                        found.problems.push(JournalProblem::from_error(line.seq, &error));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        (found.head, found.synced) = (cursor.head(), cursor.synced());
        Ok(found)
    }

    async fn summary(&self, id: &SessionId) -> Result<Option<Summary>, StoreError> {
        check_id(id)?;
        let rows =
            self.database.main.query_repeatable("read a summary", SUMMARY, parameters![id.as_str()]).await?;
        Ok(rows.first().and_then(parse_summary))
    }

    async fn list(&self, filter: &Filter, page: &Page) -> Result<Vec<Summary>, StoreError> {
        const ACTION: &str = "list sessions";
        let limit = page.limit.unwrap_or(usize::MAX);
        let parent = filter.parent.as_ref().map(|parent| searchable(parent.as_str()));
        let properties = properties_json(filter.properties.iter());
        let (mut at, mut id) = match &page.after {
            Some((at, id)) => (Some(at.as_millis()), Some(searchable(id.as_str()))),
            None => (None, None),
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = i64::try_from(limit - found.len()).unwrap_or(LIST_BATCH).min(LIST_BATCH);
            let rows = self
                .database
                .main
                .query_repeatable(ACTION, LIST, parameters![parent, properties, at, id, wanted])
                .await?;
            let summaries = rows.iter().filter_map(parse_summary);
            found.extend(summaries.filter(|summary| filter.matches(summary)));
            let Some(last) = rows.last().filter(|_| i64::try_from(rows.len()) == Ok(wanted)) else { break };
            at = last.try_get(1).map_err(|error| unreadable_row(ACTION, &error))?;
            id = last.try_get(2).map_err(|error| unreadable_row(ACTION, &error))?;
        }
        Ok(found)
    }

    async fn holder(&self, id: &SessionId) -> Result<Option<Holder>, StoreError> {
        Ok(self.require_row(id).await?.holder)
    }

    async fn post(&self, id: &SessionId, input_id: &str, input: String) -> Result<Posting, StoreError> {
        const ACTION: &str = "post an input";
        check_id(id)?;
        let rows = self
            .database
            .main
            .query_repeatable(
                ACTION,
                POST,
                parameters![id.as_str(), input_id.as_bytes(), input.as_bytes(), self.database.schema],
            )
            .await?;
        let row = rows.first().ok_or_else(|| StoreError::NotFound(id.clone()))?;
        let is_new: bool = row.try_get(0).map_err(|error| unreadable_row(ACTION, &error))?;
        Ok(if is_new { Posting::Accepted } else { Posting::Known })
    }

    async fn has_posted(&self, id: &SessionId) -> Result<bool, StoreError> {
        const ACTION: &str = "look into an inbox";
        check_id(id)?;
        let rows = self.database.main.query_repeatable(ACTION, HAS_POSTED, parameters![id.as_str()]).await?;
        let row = rows.first().ok_or_else(|| StoreError::NotFound(id.clone()))?;
        row.try_get(0).map_err(|error| unreadable_row(ACTION, &error))
    }

    async fn delete(&self, id: &SessionId) -> Result<bool, StoreError> {
        let mut attempts = 0;
        loop {
            match self.find_row(id).await?.map(|row| row.holder) {
                None => return Ok(false),
                Some(Some(holder)) => return Err(StoreError::InUse { session: id.clone(), holder }),
                Some(None) => {}
            }
            match self
                .database
                .main
                .query("delete a session", DELETE, parameters![id.as_str(), self.database.schema])
                .await
            {
                Ok(rows) if rows.is_empty() => {}
                Ok(_) => return Ok(true),
                // Another session has stored one of its values since.
                Err(failure) if failure.is_dangling && attempts < REMOVALS => attempts += 1,
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    fn blobs(&self, id: &SessionId) -> Box<dyn Blobs> {
        Box::new(PostgresBlobs { database: Arc::clone(&self.database), id: id.clone() })
    }
}
