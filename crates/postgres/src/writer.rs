//! The writer of a session.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_store::format::{CLOSED, HashChain, SegmentHeader, move_to_blobs};
use pintle_store::{
    Barrier, Fence, Hash, InboxSignal, Position, PostedInput, SessionId, SessionWriter, StoreError, Summary,
};
use tokio::task::JoinSet;

use crate::blobs::PostgresBlobs;
use crate::clock;
use crate::database::{Database, integer};
use crate::lease::WriterLease;
use crate::origins::ForkOrigins;
use crate::reader::PostgresInbox;
use crate::reconnecting_client::parameters;
use crate::statement_error::{StatementError, unreadable_row};
use crate::summary::SummaryRow;

/// Creates a session with the first line of its first writer.
const CREATE: &str = "WITH owned AS (INSERT INTO sessions \
         (id, parent, updated_at, summary, properties, epoch, head_seq, head_hash, origins, lease_until, holder_host, holder_pid) \
         VALUES ($1, $2, $3, $4, $5::text::jsonb, 1, 1, $6, '[]', clock_timestamp() + $7 * interval '1 millisecond', $8, $9) \
         ON CONFLICT (id) DO NOTHING RETURNING key), \
     written AS (INSERT INTO lines (session, seq, epoch, line) SELECT key, 1, 1, $10 FROM owned) \
     SELECT key FROM owned";

/// Creates a session with lines of another one, references to their values, and the first line of its first writer.
const FORK: &str = "WITH source AS (SELECT key FROM sessions WHERE key = $11 FOR KEY SHARE), \
     owned AS (INSERT INTO sessions \
         (id, parent, updated_at, summary, properties, epoch, head_seq, head_hash, origins, lease_until, holder_host, holder_pid) \
         SELECT $1, $2, $3, $4, $5::text::jsonb, $12, $13 + 1, $6, $14, clock_timestamp() + $7 * interval '1 millisecond', $8, $9 \
         FROM source ON CONFLICT (id) DO NOTHING RETURNING key), \
     copied AS (INSERT INTO lines (session, seq, epoch, line) \
         SELECT owned.key, seq, epoch, line FROM owned, lines WHERE session = $11 AND seq <= $13), \
     shared AS (INSERT INTO session_blobs (session, hash) \
         SELECT owned.key, hash FROM owned, session_blobs WHERE session = $11 AND hash = ANY($15)), \
     written AS (INSERT INTO lines (session, seq, epoch, line) SELECT key, $13 + 1, $12, $10 FROM owned) \
     SELECT key FROM owned";

/// Takes over a session whose lease has expired, and writes the first line of the new writer, unless the journal has
/// changed since it was verified.
const TAKE: &str = "WITH owned AS (UPDATE sessions SET epoch = epoch + 1, head_seq = head_seq + 1, head_hash = $5, \
         lease_until = clock_timestamp() + $6 * interval '1 millisecond', holder_host = $7, holder_pid = $8 \
         WHERE key = $1 AND epoch = $2 AND head_seq = $3 AND head_hash = $4 \
         AND (lease_until IS NULL OR lease_until <= clock_timestamp()) RETURNING key, epoch, head_seq), \
     written AS (INSERT INTO lines (session, seq, epoch, line) SELECT key, head_seq, epoch, $9 FROM owned) \
     SELECT pg_notify($10, '') FROM owned";

/// Writes lines if the writer still owns the session and the journal has the head that the writer knows. The setting
/// applies to this transaction, including the acknowledgement of its commit.
const APPEND: &str = "WITH owned AS (UPDATE sessions SET head_seq = $5, head_hash = $6 \
         WHERE key = $1 AND epoch = $2 AND head_seq = $3 AND head_hash = $4 AND lease_until > clock_timestamp() \
         RETURNING key), \
     written AS (INSERT INTO lines (session, seq, epoch, line) \
         SELECT key, seq, $2, line FROM owned, unnest($7, $8) AS new (seq, line)) \
     SELECT pg_notify($9, ''), set_config('synchronous_commit', $10, true) FROM owned";

const HAS_HEAD: &str = "SELECT key FROM sessions WHERE key = $1 AND epoch = $2 AND head_seq = $3 AND head_hash = $4 \
                        AND lease_until > clock_timestamp()";

const SUMMARIZE: &str = "UPDATE sessions SET parent = $3, updated_at = $4, summary = $5, properties = $6::text::jsonb \
                         WHERE key = $1 AND epoch = $2 AND lease_until > clock_timestamp() RETURNING key";

const INBOX: &str =
    "SELECT input_id, input FROM inbox WHERE session = $1 AND input IS NOT NULL ORDER BY number";

const TAKE_INPUT: &str = "UPDATE inbox SET input = NULL FROM sessions WHERE key = $1 AND epoch = $2 \
                          AND lease_until > clock_timestamp() AND session = key AND input_id = $3";

/// Writer of a session, until its lease ends.
#[derive(Debug)]
pub(crate) struct PostgresWriter {
    database: Arc<Database>,
    lease: Arc<WriterLease>,
    chain: HashChain,
    blobs: PostgresBlobs,
    head: Position,
    /// Highest line that is known to be on disk.
    synced: u64,
    /// Renews the lease.
    renewal: JoinSet<()>,
}

/// Ends the lease when it is dropped, unless it is empty.
struct LeaseGuard(Option<Arc<WriterLease>>);

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if let Some(lease) = &self.0 {
            lease.end();
        }
    }
}

/// Verified prefix of a journal, for a fork.
pub(crate) struct ForkPrefix<'a> {
    /// Session whose writer wrote its last line.
    pub(crate) session: &'a SessionId,
    /// Key of the session that is forked.
    pub(crate) key: i64,
    /// Position of the last line of the prefix.
    pub(crate) head: Position,
    /// Origins of the fork.
    pub(crate) origins: ForkOrigins,
    /// Hashes of the values that its lines refer to.
    pub(crate) values: Vec<Vec<u8>>,
}

/// New lines of a journal.
struct NewLines {
    numbers: Vec<i64>,
    texts: Vec<Vec<u8>>,
    head: Position,
}

impl NewLines {
    fn new(chain: &HashChain, objects: &[String], mut head: Position, synced: u64) -> Self {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for object in objects {
            let (line, hash) = chain.line(object, head.seq + 1, synced, &head.hash);
            head = Position::new(head.epoch, head.seq + 1, hash);
            numbers.push(integer(head.seq));
            texts.push(line.trim_end().as_bytes().to_vec());
        }
        Self { numbers, texts, head }
    }

    /// Returns the first line of a writer.
    fn first(header: &SegmentHeader) -> (Vec<u8>, Position) {
        let SegmentHeader { session, epoch, follows, .. } = header;
        let before = Position::new(*epoch, follows.seq, follows.hash);
        let mut lines = Self::new(&HashChain::new(session), &[header.object()], before, follows.seq);
        (lines.texts.pop().unwrap_or_default(), lines.head)
    }
}

impl PostgresWriter {
    /// Creates a session. Returns `None` if a session has its id already.
    pub(crate) async fn create(
        database: &Arc<Database>,
        summary: &Summary,
    ) -> Result<Option<Self>, StoreError> {
        const ACTION: &str = "create a session";
        let row = SummaryRow::new(summary);
        let header = SegmentHeader::new(summary.id.clone(), 1, Position::new(0, 0, Hash::START));
        let (line, head) = NewLines::first(&header);
        let asked = clock::now();
        let rows = database
            .main
            .query(
                ACTION,
                CREATE,
                parameters![
                    summary.id.as_str(),
                    row.parent,
                    row.updated_at,
                    row.summary,
                    row.properties,
                    head.hash.as_bytes().as_slice(),
                    database.lease_millis(),
                    database.holder.host,
                    i64::from(database.holder.pid),
                    line
                ],
            )
            .await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let key = row.try_get(0).map_err(|error| unreadable_row(ACTION, &error))?;
        let lease = WriterLease::new(summary.id.clone(), key, 1, asked, database.lease);
        Ok(Some(Self::start(database, summary.id.clone(), lease, head)))
    }

    /// Creates a fork. Returns `None` if a session has its id already, or if its origin was deleted.
    pub(crate) async fn fork(
        database: &Arc<Database>,
        prefix: &ForkPrefix<'_>,
        summary: &Summary,
    ) -> Result<Option<Self>, StoreError> {
        const ACTION: &str = "fork a session";
        let row = SummaryRow::new(summary);
        let epoch = prefix.head.epoch + 1;
        let header =
            SegmentHeader::new(summary.id.clone(), epoch, prefix.head).forked_from(prefix.session.clone());
        let (line, head) = NewLines::first(&header);
        let asked = clock::now();
        let rows = database
            .main
            .query(
                ACTION,
                FORK,
                parameters![
                    summary.id.as_str(),
                    row.parent,
                    row.updated_at,
                    row.summary,
                    row.properties,
                    head.hash.as_bytes().as_slice(),
                    database.lease_millis(),
                    database.holder.host,
                    i64::from(database.holder.pid),
                    line,
                    prefix.key,
                    integer(epoch),
                    integer(prefix.head.seq),
                    prefix.origins.to_json(),
                    prefix.values
                ],
            )
            .await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let key = row.try_get(0).map_err(|error| unreadable_row(ACTION, &error))?;
        let lease = WriterLease::new(summary.id.clone(), key, integer(epoch), asked, database.lease);
        Ok(Some(Self::start(database, summary.id.clone(), lease, head)))
    }

    /// Takes a session over after line `follows`. Returns `None` if it has a writer by now, or another head.
    pub(crate) async fn take_over(
        database: &Arc<Database>,
        id: &SessionId,
        key: i64,
        follows: Position,
    ) -> Result<Option<Self>, StoreError> {
        let epoch = follows.epoch + 1;
        let (line, head) = NewLines::first(&SegmentHeader::new(id.clone(), epoch, follows));
        let asked = clock::now();
        let rows = database
            .main
            .query(
                "open a session",
                TAKE,
                parameters![
                    key,
                    integer(follows.epoch),
                    integer(follows.seq),
                    follows.hash.as_bytes().as_slice(),
                    head.hash.as_bytes().as_slice(),
                    database.lease_millis(),
                    database.holder.host,
                    i64::from(database.holder.pid),
                    line,
                    database.channel(key)
                ],
            )
            .await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let lease = WriterLease::new(id.clone(), key, integer(epoch), asked, database.lease);
        Ok(Some(Self::start(database, id.clone(), lease, head)))
    }

    fn start(database: &Arc<Database>, id: SessionId, lease: WriterLease, head: Position) -> Self {
        let lease = Arc::new(lease);
        let mut renewal = JoinSet::new();
        renewal.spawn(Arc::clone(&lease).renew_until_ended(Arc::clone(database)));
        Self {
            database: Arc::clone(database),
            lease,
            chain: HashChain::new(&id),
            blobs: PostgresBlobs { database: Arc::clone(database), id },
            head,
            synced: head.seq,
            renewal,
        }
    }

    async fn append_now(&mut self, objects: Vec<String>, barrier: Barrier) -> Result<Position, StoreError> {
        if objects.is_empty() && self.synced == self.head.seq {
            return Ok(self.head);
        }
        let mut short = Vec::with_capacity(objects.len());
        for object in objects {
            short.push(move_to_blobs(object, &self.blobs).await?);
        }
        let new = NewLines::new(&self.chain, &short, self.head, self.synced);
        let is_written = match self.write(&new, barrier).await {
            // The connection was lost, so it is unknown whether the lines were written. Only this writer writes after its
            // head, so the repeated statement does nothing if they were.
            Err(failure) if failure.is_lost && self.lease.is_alive() => {
                self.database.main.forget();
                self.write(&new, barrier).await? || self.has_head(&new.head).await?
            }
            written => written?,
        };
        if !is_written {
            return Err(self.lease.lost());
        }
        self.head = new.head;
        if barrier == Barrier::Synced {
            self.synced = self.head.seq;
        }
        Ok(self.head)
    }

    /// Returns whether the lines were written.
    async fn write(&self, new: &NewLines, barrier: Barrier) -> Result<bool, StatementError> {
        let commit = match barrier {
            Barrier::Written => "off",
            Barrier::Synced => "on",
        };
        let rows = self
            .database
            .main
            .query(
                "append to the journal of a session",
                APPEND,
                parameters![
                    self.lease.key,
                    self.lease.epoch,
                    integer(self.head.seq),
                    self.head.hash.as_bytes().as_slice(),
                    integer(new.head.seq),
                    new.head.hash.as_bytes().as_slice(),
                    new.numbers,
                    new.texts,
                    self.database.channel(self.lease.key),
                    commit,
                ],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    /// Returns whether this is the head of the journal, written by this writer.
    async fn has_head(&self, head: &Position) -> Result<bool, StoreError> {
        let rows = self
            .database
            .main
            .query_repeatable(
                "look at a session",
                HAS_HEAD,
                parameters![
                    self.lease.key,
                    self.lease.epoch,
                    integer(head.seq),
                    head.hash.as_bytes().as_slice()
                ],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    /// Returns the statement that releases the session, unless another writer owns it by now.
    fn release(&self) -> String {
        let WriterLease { key, epoch, .. } = self.lease.as_ref();
        format!("UPDATE sessions SET lease_until = NULL WHERE key = {key} AND epoch = {epoch}")
    }

    /// Holds the renewal of the lease, as if the process was stopped.
    #[cfg(test)]
    pub(crate) fn hold_renewal(&mut self) {
        self.renewal.abort_all();
    }
}

impl Drop for PostgresWriter {
    fn drop(&mut self) {
        self.lease.end();
        self.renewal.abort_all();
        // Without a connection, the lease expires instead.
        self.database.main.send(&self.release());
    }
}

#[async_trait]
impl SessionWriter for PostgresWriter {
    fn id(&self) -> &SessionId {
        &self.blobs.id
    }

    fn epoch(&self) -> u64 {
        self.head.epoch
    }

    fn head(&self) -> Position {
        self.head
    }

    async fn append(&mut self, objects: Vec<String>, barrier: Barrier) -> Result<Position, StoreError> {
        self.lease.check()?;
        // The lease ends after an error, and if this call is cancelled.
        let mut end = LeaseGuard(Some(Arc::clone(&self.lease)));
        let position = self.append_now(objects, barrier).await?;
        end.0 = None;
        Ok(position)
    }

    fn fence(&self) -> Fence {
        self.lease.fence()
    }

    async fn set_summary(&mut self, summary: Summary) -> Result<(), StoreError> {
        let row = SummaryRow::new(&summary);
        let rows = self
            .database
            .main
            .query_repeatable(
                "write a summary",
                SUMMARIZE,
                parameters![
                    self.lease.key,
                    self.lease.epoch,
                    row.parent,
                    row.updated_at,
                    row.summary,
                    row.properties
                ],
            )
            .await?;
        if rows.is_empty() { Err(self.lease.lost()) } else { Ok(()) }
    }

    async fn inbox(&mut self) -> Result<Vec<PostedInput>, StoreError> {
        const ACTION: &str = "read the inbox of a session";
        let rows = self.database.main.query_repeatable(ACTION, INBOX, parameters![self.lease.key]).await?;
        let input = |row: &tokio_postgres::Row| {
            let text = |index: usize| row.try_get(index).map(String::from_utf8_lossy);
            Ok(PostedInput::new(text(0)?, text(1)?))
        };
        let inputs: Result<_, _> = rows.iter().map(input).collect();
        inputs.map_err(|error| unreadable_row(ACTION, &error))
    }

    fn inbox_signal(&self) -> Box<dyn InboxSignal> {
        let channel = self.database.inbox_channel(self.lease.key);
        Box::new(PostgresInbox { database: Arc::clone(&self.database), channel, hints: None })
    }

    async fn take(&mut self, input_id: &str) -> Result<(), StoreError> {
        self.lease.check()?;
        self.database
            .main
            .query_repeatable(
                "take an input",
                TAKE_INPUT,
                parameters![self.lease.key, self.lease.epoch, input_id.as_bytes()],
            )
            .await?;
        Ok(())
    }

    async fn close(&mut self) -> Result<Position, StoreError> {
        self.append(Vec::new(), Barrier::Synced).await?;
        // Written after the sync, so that its presence shows that all lines before it were on disk.
        let head = self.append(vec![CLOSED.to_owned()], Barrier::Synced).await?;
        self.lease.end();
        // Awaited, because the process may be about to exit. If the release fails, the lease expires.
        if let Err(failure) = self.database.main.execute("release a session", &self.release()).await {
            tracing::debug!(session = %self.blobs.id, ?failure, "a lease was not released");
        }
        Ok(head)
    }
}
