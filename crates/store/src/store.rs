//! The interface of a store (design of the layers above, section 3).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{Barrier, Fence, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::blob::Blobs;
use crate::error::StoreError;
use crate::hash::Hash;
use crate::holder::Holder;

/// Keeps sessions. The journal of a session is the source of truth, and its summary is a cache.
///
/// Methods may be called from any task. None of them changes another session.
///
/// ```
/// use pintle_store::{Filter, MemoryStore, Page, SessionId, SessionStore, StoreError, Summary, Timestamp};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// // The sessions of `FileStore::open(directory)?` survive the process.
/// let (store, id) = (MemoryStore::new(), SessionId::new("support-17"));
/// let summary = Summary::new(id.clone(), Timestamp::now()).with_property("customer", "acme");
/// let _writer = store.create(summary).await?;
/// let listed = store.list(&Filter::default().with_property("customer", "acme"), &Page::of(20)).await?;
/// assert_eq!((listed.len(), &listed[0].id), (1, &id));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Creates a session and returns its only writer.
    ///
    /// The session survives a crash of the machine once its writer has passed [`Barrier::Synced`] or an input was posted
    /// to it. A crash before that leaves the session with a beginning of its lines, or no session. Do not acknowledge it
    /// before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`], [`StoreError::InvalidId`], [`StoreError::Io`] and the like.
    async fn create(&self, summary: Summary) -> Result<Box<dyn SessionWriter>, StoreError>;

    /// Creates a session that starts with the lines of the session `origin` up to line `at`, and returns its only
    /// writer.
    ///
    /// The store shares these lines and their values with `origin` if it can. They stay when `origin` is deleted.
    /// `origin` may be in use. It is not changed, and lines that it gets later are not part of the fork. The lines are
    /// verified, and survive a crash of the machine once this returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and [`StoreError::NoSuchLine`] about `origin`, and the errors of [`create`](Self::create)
    /// and of [`Reader::next`].
    async fn fork(
        &self,
        origin: &SessionId,
        at: u64,
        summary: Summary,
    ) -> Result<Box<dyn SessionWriter>, StoreError>;

    /// Verifies all recorded lines of a session and opens it for writing.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::InUse`], [`StoreError::Damaged`], [`StoreError::Version`],
    /// [`StoreError::NotAJournal`], [`StoreError::Io`] and the like. An error changes nothing.
    async fn open(&self, id: &SessionId) -> Result<OpenedSession, StoreError>;

    /// Reads the journal from line `from` on (the first line is 1), in bounded memory. A session may be read while it
    /// is written.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and as for [`Reader::next`].
    async fn read(&self, id: &SessionId, from: u64) -> Result<Box<dyn Reader>, StoreError>;

    /// Reads the journal after a line that an earlier reader returned, possibly in another process. If that line is
    /// void by now, [`Reader::next`] first reports [`StoreError::Reset`].
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    async fn read_after(&self, id: &SessionId, last: LineId) -> Result<Box<dyn Reader>, StoreError>;

    /// Verifies every line and every blob of a session, in bounded memory. `head` is an earlier head that was kept
    /// elsewhere. Without it, a journal that was truncated between two lines looks complete.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] and [`StoreError::Io`]; damage is a result.
    async fn verify(&self, id: &SessionId, head: Option<&Position>) -> Result<Verification, StoreError>;

    /// Returns the summary of a session; `None` if there is no such session.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and the like.
    async fn summary(&self, id: &SessionId) -> Result<Option<Summary>, StoreError>;

    /// Lists sessions, the most recently changed one first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and the like. A session whose summary is broken is listed from its journal, or left out.
    async fn list(&self, filter: &Filter, page: &Page) -> Result<Vec<Summary>, StoreError>;

    /// Returns the process that writes the session now; `None` if no process does.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Io`] and the like.
    async fn holder(&self, id: &SessionId) -> Result<Option<Holder>, StoreError>;

    /// Adds an input to the inbox of a session. Its present or next writer takes the input. The input survives a crash
    /// of the machine once this returns. Posting again with the same `input_id` has no effect.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Io`] and the like.
    async fn post(&self, id: &SessionId, input_id: &str, input: String) -> Result<Posting, StoreError>;

    /// Returns whether the inbox of a session has an input that no writer has taken.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Io`] and the like.
    async fn has_posted(&self, id: &SessionId) -> Result<bool, StoreError>;

    /// Removes a session with its journal, its inbox and the blobs that no other session has. Returns whether the
    /// session existed.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`], [`StoreError::Io`] and the like.
    async fn delete(&self, id: &SessionId) -> Result<bool, StoreError>;

    /// Removes unused files, directories and values that deleted sessions and crashed processes left behind before this
    /// time. Returns their number.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and the like. Files removed before the error stay removed.
    async fn sweep(&self, before: Timestamp) -> Result<u64, StoreError> {
        let _ = before;
        Ok(0)
    }

    /// Returns the blobs of a session.
    fn blobs(&self, id: &SessionId) -> Box<dyn Blobs>;
}

/// The only writer of a session. Dropping it releases the session.
#[async_trait]
pub trait SessionWriter: fmt::Debug + Send {
    /// Returns the id of the session.
    fn id(&self) -> &SessionId;

    /// Returns the number of this writer. It is higher than the numbers of all earlier writers of the session.
    fn epoch(&self) -> u64;

    /// Returns the position of the last line.
    fn head(&self) -> Position;

    /// Appends JSON objects, each as one line, and passes the barrier. Large values become blobs first.
    ///
    /// After an error the writer has ended, and refuses all further calls. A failed sync is never retried, since the
    /// kernel may have dropped the unwritten data.
    ///
    /// # Errors
    ///
    /// [`StoreError::Lost`], [`StoreError::Io`] and the like.
    async fn append(&mut self, objects: Vec<String>, barrier: Barrier) -> Result<Position, StoreError>;

    /// Returns the check to run before each effect. It fails once this writer has ended or another one has the session.
    fn fence(&self) -> Fence;

    /// Replaces the summary. It is a cache and may be lost in a crash of the machine.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and the like.
    async fn set_summary(&mut self, summary: Summary) -> Result<(), StoreError>;

    /// Returns the inputs of the inbox that were not taken yet, the oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and the like.
    async fn inbox(&mut self) -> Result<Vec<PostedInput>, StoreError>;

    /// Returns a signal that reports when the inbox may have new inputs. By default, it fires every 500 ms.
    fn inbox_signal(&self) -> Box<dyn InboxSignal> {
        Box::new(InboxInterval(INBOX_INTERVAL))
    }

    /// Removes an input from the inbox after it was recorded. Its id stays known.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and the like.
    async fn take(&mut self, input_id: &str) -> Result<(), StoreError>;

    /// Syncs all lines and marks the journal as complete up to here, so that any later change of it is detected. The
    /// writer has then ended.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    async fn close(&mut self) -> Result<Position, StoreError>;
}

/// Reports to the writer of a session that its inbox may have new inputs.
#[async_trait]
pub trait InboxSignal: fmt::Debug + Send {
    /// Waits until an input may have been posted since the last call, or since the signal was created. It may return
    /// early. The delay depends on the store: none in memory, on files if this process posts, and on PostgreSQL;
    /// otherwise at most about 500 ms on files and 2 s on PostgreSQL. Needs a Tokio runtime with time.
    ///
    /// Cancel safe: a later call reports inputs that were posted in between.
    async fn wait(&mut self);
}

/// Interval at which an inbox is checked for inputs that other processes post without a signal.
pub(crate) const INBOX_INTERVAL: Duration = Duration::from_millis(500);

/// Fires at a fixed interval.
#[derive(Debug)]
struct InboxInterval(Duration);

#[async_trait]
impl InboxSignal for InboxInterval {
    async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
    }
}

/// Is notified of inputs that this process posts, and checks for inputs of other processes at an interval.
#[derive(Debug)]
pub(crate) struct WatchedInbox {
    pub(crate) posted: watch::Receiver<()>,
    /// `None` if no other process can post.
    pub(crate) interval: Option<Duration>,
}

#[async_trait]
impl InboxSignal for WatchedInbox {
    async fn wait(&mut self) {
        let changed = self.posted.changed();
        match self.interval {
            Some(interval) => drop(tokio::time::timeout(interval, changed).await),
            None => drop(changed.await),
        }
    }
}

/// Reads the lines of a journal and follows it while it is written. It continues across crashes of writers and
/// takeovers.
///
/// ```
/// # use pintle_store::{Reader, StoreError};
/// # async fn show(mut reader: Box<dyn Reader>) -> Result<(), StoreError> {
/// loop {
///     match reader.next().await {
///         Ok(Some(line)) => println!("{} {}", line.seq, line.object),
///         Ok(None) => reader.wait().await,
///         Err(StoreError::Reset { seq, .. }) => println!("forget the lines from {seq} on"),
///         Err(error) => return Err(error),
///     }
/// }
/// # }
/// ```
#[async_trait]
pub trait Reader: Send {
    /// Returns the next verified line; `None` after the last one. A line that is being written is not returned. After
    /// `None` it may be called again, and returns the lines that were written meanwhile.
    ///
    /// Cancel safe: the next call returns the line that a cancelled call would have returned.
    ///
    /// # Errors
    ///
    /// * [`StoreError::Reset`] if lines that this reader returned are void, because they were lost before they were synced
    ///   and a new writer did not follow them. It is reported once for each such takeover, even if the reader was created
    ///   later by [`SessionStore::read_after`]. The next call returns the new line with that number.
    /// * [`StoreError::NotFound`] if the session was deleted.
    /// * [`StoreError::Damaged`], [`StoreError::Version`], [`StoreError::NotAJournal`], [`StoreError::Io`] and the like.
    ///   The next call tries the same line again.
    async fn next(&mut self) -> Result<Option<Line>, StoreError>;

    /// Waits until [`next`](Self::next), which returned `None`, may have another result: more lines or an error. It may
    /// return early. It waits without limit for a session without a writer.
    ///
    /// Cancel safe: a later call notices lines that were written in between. The delay depends on the store: none in
    /// memory, at most about 200 ms on files, and none or at most about 2 s on PostgreSQL. Files and PostgreSQL need a
    /// Tokio runtime with time.
    async fn wait(&mut self);
}

/// Identifies a line across all writers. A number alone may be reused after lines were lost that were never synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineId {
    /// Number of the writer.
    pub epoch: u64,
    /// Number of the line.
    pub seq: u64,
}

/// A verified line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Number of the line, from 1.
    pub seq: u64,
    /// Writer that wrote it.
    pub epoch: u64,
    /// The JSON object, with the members of the store at its end. Large values are empty strings.
    pub object: String,
}

impl Line {
    /// Creates a line.
    #[must_use]
    pub fn new(id: LineId, object: String) -> Self {
        Self { seq: id.seq, epoch: id.epoch, object }
    }

    /// Returns the identity of the line, from which [`SessionStore::read_after`] continues.
    #[must_use]
    pub fn id(&self) -> LineId {
        LineId { epoch: self.epoch, seq: self.seq }
    }
}

/// A session that was opened for writing.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenedSession {
    /// Its writer.
    pub writer: Box<dyn SessionWriter>,
    /// The incomplete end of the journal, which was set aside; `None` if the journal was complete.
    pub torn: Option<TornTail>,
}

impl OpenedSession {
    /// Creates the result of opening a session whose journal was complete on disk.
    #[must_use]
    pub fn new(writer: Box<dyn SessionWriter>) -> Self {
        Self { writer, torn: None }
    }
}

/// End of a journal that contains no acknowledged line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// Number of its first line.
    pub seq: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Position in a journal. A head that is kept elsewhere proves that no earlier line was changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Position {
    /// Number of the writer.
    pub epoch: u64,
    /// Number of the line; 0 before the first.
    pub seq: u64,
    /// Hash of the line.
    pub hash: Hash,
}

impl Position {
    /// Creates a position, for example from a text that was kept elsewhere.
    #[must_use]
    pub fn new(epoch: u64, seq: u64, hash: Hash) -> Self {
        Self { epoch, seq, hash }
    }
}

/// Result of [`SessionStore::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// Last intact line.
    pub head: Position,
    /// Last line that was known to be on disk when a later one was written.
    pub synced: u64,
    /// Number of blobs that were verified.
    pub blobs: u64,
    /// Whether the head that was kept elsewhere is one of the lines; `None` without such a head.
    pub matches_head: Option<bool>,
    /// End of the journal that was never acknowledged.
    pub torn: Option<TornTail>,
    /// Problems, in the order of the lines.
    pub problems: Vec<JournalProblem>,
}

impl Verification {
    /// Creates the result for a journal that is intact up to `head`, without problems.
    #[must_use]
    pub fn new(head: Position) -> Self {
        Self { head, synced: 0, blobs: 0, matches_head: None, torn: None, problems: Vec::new() }
    }

    /// Returns whether nothing is damaged or missing.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty() && self.matches_head != Some(false)
    }
}

/// Damage of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalProblem {
    /// Number of the line.
    pub seq: u64,
    /// The problem as text.
    pub message: String,
}

impl JournalProblem {
    /// Creates a problem with line `seq`.
    #[must_use]
    pub fn new(seq: u64, message: impl Into<String>) -> Self {
        Self { seq, message: message.into() }
    }

    /// Creates a problem with line `seq` from an error. The message does not repeat the session and the line.
    #[must_use]
    pub fn from_error(seq: u64, error: &StoreError) -> Self {
        if let StoreError::Damaged { problem, .. } = error {
            Self::new(seq, *problem)
        } else {
            Self::new(seq, error.to_string())
        }
    }
}

/// Outcome of [`SessionStore::post`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Posting {
    /// The input is in the inbox now.
    Accepted,
    /// An input with this id was posted before.
    Known,
}

/// Input in an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostedInput {
    /// Id that the sender chose.
    pub input_id: String,
    /// The input.
    pub input: String,
}

impl PostedInput {
    /// Creates an input with the id that its sender chose.
    #[must_use]
    pub fn new(input_id: impl Into<String>, input: impl Into<String>) -> Self {
        Self { input_id: input_id.into(), input: input.into() }
    }
}

/// Entry of a session in lists. It is a cache of the session's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Summary {
    /// Id of the session.
    pub id: SessionId,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the newest change that the summary covers.
    pub updated_at: Timestamp,
    /// Parent session, for a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// Text that identifies the session for users: the start of its first input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Other properties, by which a list can be filtered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

impl Summary {
    /// Property with the kind of the entry; absent for a session.
    pub const KIND: &str = "kind";

    /// Returns whether it describes a session, and not another kind of entry in the same store, such as a task.
    #[must_use]
    pub fn is_session(&self) -> bool {
        !self.properties.contains_key(Self::KIND)
    }

    /// Creates a summary without a title.
    #[must_use]
    pub fn new(id: SessionId, created_at: Timestamp) -> Self {
        Self {
            id,
            created_at,
            updated_at: created_at,
            parent: None,
            title: String::new(),
            properties: BTreeMap::new(),
        }
    }

    /// Sets a property.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// Sets the parent session, for a subagent.
    #[must_use]
    pub fn with_parent(mut self, parent: SessionId) -> Self {
        self.parent = Some(parent);
        self
    }
}

/// Sessions that a list contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// Properties that all of them have.
    pub properties: BTreeMap<String, String>,
    /// Parent whose subagents are listed. Without it, sessions that are not subagents are listed.
    pub parent: Option<SessionId>,
}

impl Filter {
    /// Requires a property.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// Selects the subagents of this session.
    #[must_use]
    pub fn with_parent(mut self, parent: SessionId) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Returns whether a list with this filter contains the session.
    #[must_use]
    pub fn matches(&self, summary: &Summary) -> bool {
        self.parent == summary.parent
            && self.properties.iter().all(|(name, value)| summary.properties.get(name) == Some(value))
    }
}

/// Part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Maximum number of sessions; all if `None`.
    pub limit: Option<usize>,
    /// Last session of the previous page, as the list contained it.
    pub after: Option<(Timestamp, SessionId)>,
}

impl Page {
    /// Creates the first page of at most this many sessions.
    #[must_use]
    pub fn of(limit: usize) -> Self {
        Self { limit: Some(limit), after: None }
    }

    /// Continues after this session.
    #[must_use]
    pub fn after(mut self, summary: &Summary) -> Self {
        self.after = Some((summary.updated_at, summary.id.clone()));
        self
    }

    /// Sorts the summaries and returns the summaries of this page.
    pub(crate) fn of_summaries(&self, mut summaries: Vec<Summary>) -> Vec<Summary> {
        let key = |summary: &Summary| (std::cmp::Reverse(summary.updated_at), summary.id.clone());
        summaries.sort_by_cached_key(key);
        if let Some((updated_at, id)) = &self.after {
            let last = (std::cmp::Reverse(*updated_at), id.clone());
            summaries.retain(|summary| key(summary) > last);
        }
        summaries.truncate(self.limit.unwrap_or(usize::MAX));
        summaries
    }
}
