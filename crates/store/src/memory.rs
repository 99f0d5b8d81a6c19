//! Sessions in memory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pintle_agent::{Barrier, Fence, Ledger, Ledgers, SessionId};
use tokio::sync::watch;

use crate::blob::{self, Blobs, move_to_blobs};
use crate::error::StoreError;
use crate::format::CLOSED;
use crate::hash::Hash;
use crate::holder::Holder;
use crate::ledger::check_ledger_name;
use crate::line::{HashChain, RawLine, SegmentHeader};
use crate::store::{
    Filter, InboxSignal, JournalProblem, Line, LineId, OpenedSession, Page, Position, PostedInput, Posting,
    Reader, SessionStore, SessionWriter, Summary, Verification, WatchedInbox,
};

/// Sessions in memory, for tests and for applications without persistence. Clones share their sessions.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    sessions: Arc<Mutex<BTreeMap<SessionId, Arc<Mutex<MemorySession>>>>>,
    ledgers: Arc<Mutex<BTreeMap<String, Ledger>>>,
}

#[derive(Debug)]
struct MemorySession {
    summary: Summary,
    lines: Vec<MemoryLine>,
    head: Position,
    blobs: HashMap<Hash, Arc<Vec<u8>>>,
    inbox: Vec<PostedInput>,
    /// Ids of all posted inputs.
    known_inputs: HashSet<String>,
    /// Whether there is a writer.
    is_open: bool,
    is_deleted: bool,
    /// Notifies readers of changes.
    changes: watch::Sender<()>,
    /// Notifies the writer of posted inputs.
    posted: watch::Sender<()>,
}

#[derive(Clone, Debug)]
struct MemoryLine {
    /// Session whose writer wrote it: this one, or one that it was forked from.
    session: SessionId,
    epoch: u64,
    text: Arc<str>,
}

impl MemorySession {
    fn new(summary: Summary) -> Self {
        Self {
            summary,
            lines: Vec::new(),
            head: Position { epoch: 0, seq: 0, hash: Hash::START },
            blobs: HashMap::new(),
            inbox: Vec::new(),
            known_inputs: HashSet::new(),
            is_open: false,
            is_deleted: false,
            changes: watch::Sender::new(()),
            posted: watch::Sender::new(()),
        }
    }

    /// Returns a fork with the lines up to `at`; `None` if there are fewer.
    fn fork(&self, at: u64, summary: Summary) -> Option<Self> {
        let lines = self.lines.get(..usize::try_from(at).ok()?)?.to_vec();
        let last = lines.last()?;
        let RawLine { seq, hash, .. } = RawLine::parse(last.text.trim_end().as_bytes())?;
        let head = Position { epoch: last.epoch, seq, hash };
        let objects =
            lines.iter().filter_map(|line| RawLine::parse(line.text.trim_end().as_bytes())?.object());
        let values = objects.flat_map(|object| blob::hashes(&object)).filter_map(|hash| {
            let value = self.blobs.get(&hash)?;
            Some((hash, Arc::clone(value)))
        });
        let blobs = values.collect();
        Some(Self { lines, head, blobs, ..Self::new(summary) })
    }

    /// Returns the number of the first line that is void for a reader whose last line was `last`; `None` if all are
    /// valid.
    fn first_void(&self, last: LineId) -> Option<u64> {
        let at = |seq: u64| self.lines.get(usize::try_from(seq.checked_sub(1)?).ok()?);
        if at(last.seq).is_some_and(|stored| stored.epoch == last.epoch) {
            return None;
        }
        let is_later = |stored: &&MemoryLine| stored.epoch > last.epoch;
        let taken = self.lines.iter().rev().take_while(is_later).count();
        let first = u64::try_from(self.lines.len() - taken).unwrap_or(u64::MAX).saturating_add(1);
        // Until a writer has written a line, it is not settled which line it follows.
        (taken > 0 && first <= last.seq).then_some(first)
    }
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a session and returns its writer.
    fn add(&self, session: MemorySession) -> Result<MemoryWriter, StoreError> {
        let id = session.summary.id.clone();
        if id.as_str().is_empty() {
            return Err(StoreError::InvalidId(id));
        }
        let session = Arc::new(Mutex::new(session));
        match lock(&self.sessions).entry(id.clone()) {
            Entry::Occupied(_) => return Err(StoreError::Exists(id)),
            Entry::Vacant(entry) => entry.insert(Arc::clone(&session)),
        };
        MemoryWriter::start(id, session)
    }

    fn session(&self, id: &SessionId) -> Result<Arc<Mutex<MemorySession>>, StoreError> {
        lock(&self.sessions).get(id).cloned().ok_or_else(|| StoreError::NotFound(id.clone()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Ledgers for MemoryStore {
    async fn ledger(&self, name: &str) -> io::Result<Ledger> {
        check_ledger_name(name)?;
        Ok(lock(&self.ledgers).get(name).cloned().unwrap_or_default())
    }

    async fn replace_ledger(&self, name: &str, version: u64, text: &str) -> io::Result<bool> {
        check_ledger_name(name)?;
        let mut ledgers = lock(&self.ledgers);
        if ledgers.get(name).map_or(0, |ledger| ledger.version) != version {
            return Ok(false);
        }
        if text.is_empty() {
            ledgers.remove(name);
        } else {
            ledgers.insert(name.to_owned(), Ledger::new(version + 1, text));
        }
        Ok(true)
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn create(&self, summary: Summary) -> Result<Box<dyn SessionWriter>, StoreError> {
        Ok(Box::new(self.add(MemorySession::new(summary))?))
    }

    async fn fork(
        &self,
        origin: &SessionId,
        at: u64,
        summary: Summary,
    ) -> Result<Box<dyn SessionWriter>, StoreError> {
        let fork = lock(self.session(origin)?.as_ref()).fork(at, summary);
        let fork = fork.ok_or_else(|| StoreError::NoSuchLine { session: origin.clone(), seq: at })?;
        let wrote = fork.lines.last().map_or_else(|| origin.clone(), |line| line.session.clone());
        let head = fork.head;
        let mut writer = self.add(fork)?;
        let header = SegmentHeader::new(writer.id.clone(), writer.epoch, head).forked_from(wrote);
        writer.append(vec![header.object()], Barrier::Synced).await?;
        Ok(Box::new(writer))
    }

    async fn open(&self, id: &SessionId) -> Result<OpenedSession, StoreError> {
        let writer = MemoryWriter::start(id.clone(), self.session(id)?)?;
        Ok(OpenedSession { writer: Box::new(writer), torn: None })
    }

    async fn read(&self, id: &SessionId, from: u64) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(MemoryReader::new(id.clone(), self.session(id)?, from.max(1), None)))
    }

    async fn read_after(&self, id: &SessionId, last: LineId) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(MemoryReader::new(id.clone(), self.session(id)?, last.seq.saturating_add(1), Some(last))))
    }

    async fn verify(&self, id: &SessionId, head: Option<&Position>) -> Result<Verification, StoreError> {
        let session = self.session(id)?;
        let session = lock(&session);
        let mut before = Hash::START;
        let mut problems = Vec::new();
        let mut blobs = 0;
        let mut matches_head = head.map(|head| head.seq == 0 && head.hash == Hash::START);
        for (seq, stored) in (1..).zip(&session.lines) {
            let line = RawLine::parse(stored.text.trim_end().as_bytes());
            let Some(line) = line
                .filter(|line| line.seq == seq && HashChain::new(&stored.session).verifies(line, &before))
            else {
                problems
                    .push(JournalProblem { seq, message: "it is not the line that was written".to_owned() });
                break;
            };
            before = line.hash;
            if let Some(head) = head.filter(|head| head.seq == seq) {
                matches_head = Some(head.hash == line.hash);
            }
            for hash in blob::hashes(&line.object().unwrap_or_default()) {
                if session.blobs.contains_key(&hash) {
                    blobs += 1;
                } else {
                    problems.push(JournalProblem::from_error(seq, &StoreError::MissingBlob(hash)));
                }
            }
        }
        let (head, synced) = (session.head, session.head.seq);
        Ok(Verification { head, synced, blobs, matches_head, torn: None, problems })
    }

    async fn summary(&self, id: &SessionId) -> Result<Option<Summary>, StoreError> {
        match self.session(id) {
            Ok(session) => Ok(Some(lock(&session).summary.clone())),
            Err(_) => Ok(None),
        }
    }

    async fn list(&self, filter: &Filter, page: &Page) -> Result<Vec<Summary>, StoreError> {
        let sessions = lock(&self.sessions);
        let summaries = sessions.values().map(|session| lock(session).summary.clone());
        Ok(page.of_summaries(summaries.filter(|summary| filter.matches(summary)).collect()))
    }

    async fn holder(&self, id: &SessionId) -> Result<Option<Holder>, StoreError> {
        let session = self.session(id)?;
        let is_open = lock(&session).is_open;
        Ok(is_open.then(this_process))
    }

    async fn post(&self, id: &SessionId, input_id: &str, input: String) -> Result<Posting, StoreError> {
        let session = self.session(id)?;
        let mut session = lock(&session);
        if !session.known_inputs.insert(input_id.to_owned()) {
            return Ok(Posting::Known);
        }
        session.inbox.push(PostedInput { input_id: input_id.to_owned(), input });
        session.posted.send_replace(());
        Ok(Posting::Accepted)
    }

    async fn has_posted(&self, id: &SessionId) -> Result<bool, StoreError> {
        let session = self.session(id)?;
        let has_posted = !lock(&session).inbox.is_empty();
        Ok(has_posted)
    }

    async fn delete(&self, id: &SessionId) -> Result<bool, StoreError> {
        let Ok(session) = self.session(id) else { return Ok(false) };
        {
            let mut session = lock(&session);
            if session.is_open {
                return Err(in_use(id));
            }
            session.is_deleted = true;
            session.changes.send_replace(());
        }
        Ok(lock(&self.sessions).remove(id).is_some())
    }

    fn blobs(&self, id: &SessionId) -> Box<dyn Blobs> {
        match self.session(id) {
            Ok(session) => Box::new(MemoryBlobs(session)),
            Err(_) => Box::new(blob::NoBlobs(id.clone())),
        }
    }
}

fn in_use(id: &SessionId) -> StoreError {
    StoreError::InUse { session: id.clone(), holder: this_process() }
}

fn this_process() -> Holder {
    Holder { host: "this host".to_owned(), pid: std::process::id() }
}

#[derive(Debug)]
struct MemoryWriter {
    id: SessionId,
    session: Arc<Mutex<MemorySession>>,
    chain: HashChain,
    epoch: u64,
    ended: Arc<AtomicBool>,
}

impl MemoryWriter {
    fn start(id: SessionId, session: Arc<Mutex<MemorySession>>) -> Result<Self, StoreError> {
        let epoch = {
            let mut session = lock(&session);
            if std::mem::replace(&mut session.is_open, true) {
                return Err(in_use(&id));
            }
            session.head.epoch += 1;
            session.head.epoch
        };
        Ok(Self { chain: HashChain::new(&id), id, session, epoch, ended: Arc::default() })
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        lock(&self.session).is_open = false;
    }
}

#[async_trait]
impl SessionWriter for MemoryWriter {
    fn id(&self) -> &SessionId {
        &self.id
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn head(&self) -> Position {
        lock(&self.session).head
    }

    async fn append(&mut self, objects: Vec<String>, _barrier: Barrier) -> Result<Position, StoreError> {
        if self.ended.load(Ordering::Acquire) {
            return Err(StoreError::Lost(self.id.clone()));
        }
        let blobs = MemoryBlobs(Arc::clone(&self.session));
        let mut short = Vec::with_capacity(objects.len());
        for object in objects {
            short.push(move_to_blobs(object, &blobs).await?);
        }
        let mut session = lock(&self.session);
        for object in short {
            let Position { seq, hash, .. } = session.head;
            let (text, hash) = self.chain.line(&object, seq + 1, seq, &hash);
            let writer = self.id.clone();
            session.lines.push(MemoryLine { session: writer, epoch: self.epoch, text: text.into() });
            session.head.seq += 1;
            session.head.hash = hash;
        }
        session.changes.send_replace(());
        Ok(session.head)
    }

    fn fence(&self) -> Fence {
        let (ended, id) = (Arc::clone(&self.ended), self.id.clone());
        Fence::new(move || {
            if ended.load(Ordering::Acquire) {
                Err(io::Error::from(StoreError::Lost(id.clone())))
            } else {
                Ok(())
            }
        })
    }

    async fn set_summary(&mut self, summary: Summary) -> Result<(), StoreError> {
        lock(&self.session).summary = summary;
        Ok(())
    }

    async fn inbox(&mut self) -> Result<Vec<PostedInput>, StoreError> {
        Ok(lock(&self.session).inbox.clone())
    }

    fn inbox_signal(&self) -> Box<dyn InboxSignal> {
        Box::new(WatchedInbox { posted: lock(&self.session).posted.subscribe(), interval: None })
    }

    async fn take(&mut self, input_id: &str) -> Result<(), StoreError> {
        lock(&self.session).inbox.retain(|posted| posted.input_id != input_id);
        Ok(())
    }

    async fn close(&mut self) -> Result<Position, StoreError> {
        let head = self.append(vec![CLOSED.to_owned()], Barrier::Synced).await?;
        self.ended.store(true, Ordering::Release);
        Ok(head)
    }
}

struct MemoryBlobs(Arc<Mutex<MemorySession>>);

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, bytes: Vec<u8>) -> Result<Hash, StoreError> {
        let hash = Hash::of(&bytes);
        lock(&self.0).blobs.insert(hash, Arc::new(bytes));
        Ok(hash)
    }

    async fn get(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        let value = lock(&self.0).blobs.get(hash).cloned();
        Ok(value.map(Arc::unwrap_or_clone))
    }
}

struct MemoryReader {
    id: SessionId,
    session: Arc<Mutex<MemorySession>>,
    /// Number of the line to return next.
    next: u64,
    /// Line that was returned last.
    last: Option<LineId>,
    changes: watch::Receiver<()>,
}

impl MemoryReader {
    fn new(id: SessionId, session: Arc<Mutex<MemorySession>>, next: u64, last: Option<LineId>) -> Self {
        let changes = lock(&session).changes.subscribe();
        Self { id, session, next, last, changes }
    }
}

#[async_trait]
impl Reader for MemoryReader {
    async fn next(&mut self) -> Result<Option<Line>, StoreError> {
        self.changes.borrow_and_update();
        let stored = {
            let session = lock(&self.session);
            if session.is_deleted {
                return Err(StoreError::NotFound(self.id.clone()));
            }
            if let Some(seq) = self.last.and_then(|last| session.first_void(last)) {
                (self.next, self.last) = (seq, None);
                return Err(StoreError::Reset { session: self.id.clone(), seq });
            }
            let index = usize::try_from(self.next - 1).unwrap_or(usize::MAX);
            let Some(stored) = session.lines.get(index).cloned() else { return Ok(None) };
            stored
        };
        let line = RawLine::parse(stored.text.trim_end().as_bytes());
        let Some((seq, object)) = line.and_then(|line| Some((line.seq, line.object()?))) else {
            return Ok(None);
        };
        let id = LineId { epoch: stored.epoch, seq };
        (self.next, self.last) = (seq + 1, Some(id));
        Ok(Some(Line::new(id, object)))
    }

    async fn wait(&mut self) {
        // This reader holds the session, which owns the sender.
        let _ = self.changes.changed().await;
    }
}

#[cfg(test)]
mod tests {
    mod contract {
        crate::store_contract!(async || (crate::MemoryStore::new(), ()));
        crate::store_contract!(ledgers, async || (crate::MemoryStore::new(), ()));
    }
}
