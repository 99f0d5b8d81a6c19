//! The one place where events are kept, and how subscribers read it (design, section 4).
//!
//! Lifecycle events stand in an append-only list that every subscriber reads by its own cursor, so none is lost and
//! nobody is waited for. The text of an open segment stands beside it; a subscriber takes what it has not read yet,
//! so a slow one gets fewer and larger deltas. Only the newest part of an open segment is kept: who lags behind
//! that gets a [`Gap`](EventKind::Gap). When a segment has ended, its text is read from the end event; the last part
//! of it is kept only where the end event says something else, as that of a stopped command does.
//!
//! Nothing is forgotten by itself: a log of a thousand rounds has a thousand rounds of events. A host that keeps the
//! past elsewhere says up to where it may go; what a subscriber has not read stays all the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use crate::event::{EventKind, SessionEvent};
use crate::id::SessionId;
use crate::timestamp::Timestamp;

/// How much of an open segment is kept for subscribers, in bytes.
const KEPT: usize = 1 << 20;

/// How much is kept of a segment whose end does not carry its text, in bytes.
const KEPT_AFTER_END: usize = 64 << 10;

/// Who the events are about.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) session_id: SessionId,
    pub(crate) depth: u32,
    pub(crate) parent: Option<SessionId>,
}

/// The events of one session.
#[derive(Debug)]
pub(crate) struct EventLog {
    identity: Identity,
    inner: Mutex<Inner>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    /// How many events before the first entry are forgotten.
    forgotten: u64,
    /// The subagents whose beginning is forgotten and whose end is not.
    begun: Vec<SessionId>,
    /// How far each subscriber has read.
    readers: Vec<Weak<AtomicU64>>,
    open: BTreeMap<u64, Segment>,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    event: Arc<SessionEvent>,
    ends: Option<Ended>,
}

/// What an end event ends.
#[derive(Clone, Debug)]
struct Ended {
    start: Arc<SessionEvent>,
    /// What was streamed, if the end event does not begin with it.
    apart: Option<Arc<Segment>>,
}

/// The newest text of a segment.
#[derive(Debug)]
struct Segment {
    total: u64,
    newest: String,
    /// When the newest of it came.
    at: Timestamp,
}

/// What a reader has not read of a segment.
enum Unread {
    /// So many bytes are not kept any more.
    Skipped(u64),
    Text(String),
}

impl Segment {
    fn new(at: Timestamp) -> Self {
        Self { total: 0, newest: String::new(), at }
    }

    fn push(&mut self, text: &str, at: Timestamp) {
        self.at = at;
        self.total += text.len() as u64;
        self.newest.push_str(text);
        if self.newest.len() > 2 * KEPT {
            self.keep(KEPT);
        }
    }

    /// Forgets all but the newest `bytes`.
    fn keep(&mut self, bytes: usize) {
        let mut cut = self.newest.len().saturating_sub(bytes);
        while !self.newest.is_char_boundary(cut) {
            cut += 1;
        }
        self.newest.drain(..cut);
    }

    fn base(&self) -> u64 {
        self.total - self.newest.len() as u64
    }

    /// What follows the first `read` bytes.
    fn unread(&self, read: u64) -> Option<Unread> {
        if read >= self.total {
            return None;
        }
        let Some(at) = read.checked_sub(self.base()) else {
            return Some(Unread::Skipped(self.base() - read));
        };
        let text = self.newest.get(usize::try_from(at).ok()?..)?;
        Some(Unread::Text(text.to_owned()))
    }

    /// Whether this is how the text of `end` begins.
    fn begins(&self, end: &EventKind) -> bool {
        self.total == 0
            || whole_text(end).is_some_and(|whole| {
                let rest = usize::try_from(self.base()).ok().and_then(|base| whole.get(base..));
                rest.is_some_and(|rest| rest.starts_with(&self.newest))
            })
    }
}

impl EventLog {
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity, inner: Mutex::default(), version: watch::Sender::new(0) }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Appends an event and gives its number. Starts of segments open one.
    pub(crate) fn append(&self, at: Timestamp, kind: EventKind) -> u64 {
        self.add(at, kind, None)
    }

    /// Appends the end of the segment that began at `start`.
    pub(crate) fn append_end(&self, at: Timestamp, start: u64, kind: EventKind) -> u64 {
        let (segment, start) = {
            let mut inner = self.lock();
            (inner.open.remove(&start), inner.event(start))
        };
        // Comparing is done without the lock, since the text may be long.
        let apart = segment.filter(|segment| !segment.begins(&kind)).map(|mut segment| {
            segment.keep(KEPT_AFTER_END);
            segment.newest.shrink_to_fit();
            Arc::new(segment)
        });
        self.add(at, kind, start.map(|start| Ended { start, apart }))
    }

    fn add(&self, at: Timestamp, kind: EventKind, ends: Option<Ended>) -> u64 {
        let mut inner = self.lock();
        let seq = inner.next_seq();
        if opens(&kind) {
            inner.open.insert(seq, Segment::new(at));
        }
        let event = Arc::new(self.event(seq, None, at, kind));
        inner.entries.push_back(Entry { event, ends });
        drop(inner);
        self.wake();
        seq
    }

    /// Adds text to the open segment that began at `start`; nothing if it has ended.
    pub(crate) fn delta(&self, at: Timestamp, start: u64, text: &str) {
        if let Some(segment) = self.lock().open.get_mut(&start) {
            segment.push(text, at);
        }
        self.wake();
    }

    /// Says that nothing follows.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    /// The session that the events are of.
    pub(crate) fn session_id(&self) -> &SessionId {
        &self.identity.session_id
    }

    /// The number that the next event will have.
    pub(crate) fn next_seq(&self) -> u64 {
        self.lock().next_seq()
    }

    /// Forgets the events before `before`, up to the first that a reader has still to read or whose segment is open.
    /// Gives the number of the first that is kept, and the subagents whose end is forgotten.
    pub(crate) fn forget(&self, before: u64) -> (u64, Vec<SessionId>) {
        let mut inner = self.lock();
        let reached =
            inner.readers.iter().filter_map(Weak::upgrade).map(|reader| reader.load(Ordering::Acquire));
        let unread = reached.min().unwrap_or(u64::MAX);
        let open = inner.open.keys().next().copied().unwrap_or(u64::MAX);
        let keep_from = before.min(unread).min(open).clamp(inner.forgotten, inner.next_seq());
        let count = usize::try_from(keep_from - inner.forgotten).unwrap_or(usize::MAX);
        let gone: Vec<Entry> = inner.entries.drain(..count).collect();
        inner.forgotten = keep_from;
        let ended: Vec<SessionId> = gone.iter().filter_map(ended_subagent).cloned().collect();
        inner.begun.extend(gone.iter().filter_map(begun_subagent).cloned());
        if !ended.is_empty() {
            let over: HashSet<&SessionId> = ended.iter().collect();
            inner.begun.retain(|begun| !over.contains(begun));
        }
        if inner.entries.capacity() > 2 * inner.entries.len() {
            inner.entries.shrink_to_fit();
        }
        drop(inner);
        // Freeing takes its time, and the driver may wait for the lock.
        drop(gone);
        (keep_from, ended)
    }

    fn event(&self, seq: u64, offset: Option<u64>, timestamp: Timestamp, kind: EventKind) -> SessionEvent {
        let Identity { session_id, depth, parent } = self.identity.clone();
        SessionEvent { seq, offset, timestamp, session_id, depth, parent, kind }
    }

    fn wake(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl EventLog {
    /// Appends an event of which nobody hears before `meanwhile` is over; who looks into the log waits until then.
    pub(crate) fn append_after(&self, at: Timestamp, kind: EventKind, meanwhile: impl FnOnce()) {
        let mut inner = self.lock();
        meanwhile();
        let event = Arc::new(self.event(inner.next_seq(), None, at, kind));
        inner.entries.push_back(Entry { event, ends: None });
        drop(inner);
        self.wake();
    }
}

impl Inner {
    fn event(&self, seq: u64) -> Option<Arc<SessionEvent>> {
        self.entry(seq).map(|entry| Arc::clone(&entry.event))
    }

    fn entry(&self, seq: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(seq.checked_sub(self.forgotten)?).ok()?)
    }

    fn next_seq(&self) -> u64 {
        self.forgotten + self.entries.len() as u64
    }
}

fn begun_subagent(entry: &Entry) -> Option<&SessionId> {
    if let EventKind::SubagentSpawned { child, .. } = &entry.event.kind { Some(child) } else { None }
}

fn ended_subagent(entry: &Entry) -> Option<&SessionId> {
    if let EventKind::SubagentEnded { child, .. } = &entry.event.kind { Some(child) } else { None }
}

fn opens(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::AssistantTextStart {} | EventKind::ReasoningStart {} | EventKind::ToolCallStart { .. }
    )
}

/// The delta kind of a segment that began with `start`.
fn delta_kind(start: &EventKind, delta: String) -> Option<EventKind> {
    if let EventKind::ToolCallStart { call_id, .. } = start {
        Some(EventKind::ToolCallOutputDelta { call_id: call_id.clone(), delta })
    } else if matches!(start, EventKind::ReasoningStart {}) {
        Some(EventKind::ReasoningDelta { delta })
    } else if matches!(start, EventKind::AssistantTextStart {}) {
        Some(EventKind::AssistantTextDelta { delta })
    } else {
        None
    }
}

/// The whole text that an end carries, if it is at hand.
fn whole_text(end: &EventKind) -> Option<Cow<'_, str>> {
    if let EventKind::AssistantTextEnd { text, .. } | EventKind::ReasoningEnd { text, .. } = end {
        Some(Cow::Borrowed(text))
    } else if let EventKind::ToolCallEnd { output, .. } = end
        && !output.is_spooled()
    {
        output.to_text_lossy().ok().map(Cow::Owned)
    } else {
        None
    }
}

/// One reader of a log.
#[derive(Debug)]
pub(crate) struct Cursor {
    log: Arc<EventLog>,
    next: u64,
    /// The same for the log, which forgets nothing that is still to be read.
    reached: Arc<AtomicU64>,
    /// The open segments that this reader has seen begin: start and bytes read.
    open: BTreeMap<u64, u64>,
    version: watch::Receiver<u64>,
}

/// What a reader finds.
#[derive(Debug)]
pub(crate) enum Found {
    Event(Box<SessionEvent>),
    /// Nothing now.
    Nothing,
    /// Nothing ever again.
    End,
}

impl Cursor {
    /// A reader that begins with event `from`, or with the first that is not forgotten.
    pub(crate) fn new(log: Arc<EventLog>, from: u64) -> Self {
        let version = log.version.subscribe();
        let mut inner = log.lock();
        let next = from.max(inner.forgotten);
        let reached = Arc::new(AtomicU64::new(next));
        inner.readers.retain(|reader| reader.strong_count() > 0);
        inner.readers.push(Arc::downgrade(&reached));
        // A late reader gets the text so far of what is still open.
        let open = inner.open.keys().filter(|start| **start < next).map(|start| (*start, 0)).collect();
        drop(inner);
        Self { log, next, reached, open, version }
    }

    /// The subagents that began before what a reader gets that begins with the first event that is not forgotten, and
    /// whose end it gets. That is so as long as it has read nothing, since nothing is forgotten then.
    pub(crate) fn begun_before(&self) -> Vec<SessionId> {
        self.log.lock().begun.clone()
    }

    /// The number of the next lifecycle event that this reader will get.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// Leaves out what is before this event.
    pub(crate) fn skip_to(&mut self, seq: u64) {
        if seq > self.next {
            self.next = seq;
            self.reached.store(seq, Ordering::Release);
            // What was open before is not read on.
            self.open.clear();
        }
    }

    /// Waits until there may be something new.
    pub(crate) async fn changed(&mut self) {
        // The sender lives in the log that this reader holds.
        let _ = self.version.changed().await;
    }

    /// The next event, without waiting.
    pub(crate) fn find(&mut self) -> Found {
        self.version.mark_unchanged();
        let log = Arc::clone(&self.log);
        // The driver waits for the lock, so texts are copied without it where they can be.
        let inner = log.lock();
        if let Some(entry) = inner.entry(self.next).cloned() {
            drop(inner);
            return Found::Event(Box::new(self.take(&entry)));
        }
        if let Some(delta) = self.unread(&inner) {
            return Found::Event(Box::new(delta));
        }
        if inner.closed { Found::End } else { Found::Nothing }
    }

    /// The lifecycle event that is next, or what this reader has not read of the segment that it ends.
    fn take(&mut self, entry: &Entry) -> SessionEvent {
        if let Some(ended) = &entry.ends {
            if let Some(rest) = self.rest_before_end(ended, &entry.event) {
                return rest;
            }
            self.open.remove(&ended.start.seq);
        }
        self.next += 1;
        self.reached.store(self.next, Ordering::Release);
        if opens(&entry.event.kind) {
            self.open.insert(entry.event.seq, 0);
        }
        (*entry.event).clone()
    }

    fn rest_before_end(&mut self, ended: &Ended, end: &SessionEvent) -> Option<SessionEvent> {
        let read = *self.open.get(&ended.start.seq)?;
        let (rest, at) = match &ended.apart {
            Some(segment) => (segment.unread(read)?, segment.at),
            None => {
                let whole = whole_text(&end.kind)?;
                let rest = whole.get(usize::try_from(read).ok()?..).filter(|rest| !rest.is_empty())?;
                (Unread::Text(rest.to_owned()), end.timestamp)
            }
        };
        self.read(&ended.start, rest, at)
    }

    /// The unread text of an open segment, or the gap before it.
    fn unread(&mut self, inner: &Inner) -> Option<SessionEvent> {
        let (start, unread, at) = self.open.iter().find_map(|(start, read)| {
            let segment = inner.open.get(start)?;
            Some((inner.event(*start)?, segment.unread(*read)?, segment.at))
        })?;
        self.read(&start, unread, at)
    }

    /// The event that brings this reader further in the segment that began with `start`.
    fn read(&mut self, start: &SessionEvent, unread: Unread, at: Timestamp) -> Option<SessionEvent> {
        let read = self.open.get_mut(&start.seq)?;
        let offset = *read;
        let kind = match unread {
            Unread::Skipped(skipped) => {
                *read += skipped;
                EventKind::Gap { skipped }
            }
            Unread::Text(text) => {
                *read += text.len() as u64;
                delta_kind(&start.kind, text)?
            }
        };
        Some(self.log.event(start.seq, Some(offset), at, kind))
    }
}

#[cfg(test)]
mod tests;
