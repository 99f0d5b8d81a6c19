//! Event log of a session and its readers (design, section 4).
//!
//! Lifecycle events are in an append-only list that each subscriber reads with its own cursor. No event is lost, and the
//! log never waits for a subscriber. The text of an open segment is kept separately. A subscriber reads all text since
//! its last read, so a slow subscriber reads fewer and larger deltas. Only the newest part of an open segment is kept; a
//! subscriber that lags behind it gets a [`Gap`](EventKind::Gap). Once a segment has ended, its text is read from the end
//! event. Its last part is kept only if the end event has a different text, as for a stopped command, and for the newest
//! calls whose arguments the model wrote.
//!
//! The log grows until the embedding application frees old events, except those that a subscriber has not read yet.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use crate::protocol::{EventKind, SessionEvent, SessionId, Timestamp};

/// Minimum size of the newest part of an open segment that is kept, in bytes. Up to twice as much is kept.
const KEPT: usize = 1 << 20;

/// Size of the last part of a segment that is kept if its end event has a different text, in bytes.
const KEPT_AFTER_END: usize = 64 << 10;

/// Number of ended segments with arguments of calls whose last part is kept.
const KEPT_ARGUMENTS: usize = 16;

/// Session of the events, and its position in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) session_id: SessionId,
    pub(crate) depth: u32,
    pub(crate) parent: Option<SessionId>,
}

/// Events of one session.
#[derive(Debug)]
pub(crate) struct EventLog {
    identity: Identity,
    inner: Mutex<Inner>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<LogEntry>,
    /// Number of events before the first entry that were freed.
    forgotten: u64,
    /// Subagents whose spawn event was freed and whose end event was not.
    open_subagents: Vec<SessionId>,
    /// Positions of the subscribers.
    readers: Vec<Weak<AtomicU64>>,
    /// Open segments, by the sequence number of the start event.
    open: BTreeMap<u64, Segment>,
    /// The newest ended segments with arguments of calls, by the sequence number of the start event.
    arguments: BTreeMap<u64, Arc<Segment>>,
    closed: bool,
}

#[derive(Clone, Debug)]
struct LogEntry {
    event: Arc<SessionEvent>,
    ends: Option<EndedSegment>,
}

/// Segment that an end event ends.
#[derive(Clone, Debug)]
struct EndedSegment {
    start: Arc<SessionEvent>,
    /// Streamed text, if the text of the end event does not start with it.
    streamed: StreamedText,
}

/// Streamed text of an ended segment.
#[derive(Clone, Debug)]
enum StreamedText {
    /// The text of the end event starts with it.
    InEndEvent,
    /// The text of the end event is different or missing.
    Kept(Arc<Segment>),
    /// Arguments of a call, of this size. The log keeps only the arguments of the newest calls.
    Arguments(u64),
}

/// Newest text of a segment.
#[derive(Debug)]
struct Segment {
    total: u64,
    newest: String,
    /// Time of the newest text.
    at: Timestamp,
}

/// Unread part of a segment.
enum UnreadText {
    /// Number of bytes that are no longer kept.
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

    /// Drops all but the newest `bytes`.
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

    /// Returns the text after the first `read` bytes.
    fn unread(&self, read: u64) -> Option<UnreadText> {
        if read >= self.total {
            return None;
        }
        let Some(at) = read.checked_sub(self.base()) else {
            return Some(UnreadText::Skipped(self.base() - read));
        };
        let text = self.newest.get(usize::try_from(at).ok()?..)?;
        Some(UnreadText::Text(text.to_owned()))
    }

    /// Returns whether the text of `end` starts with the text of this segment.
    fn is_prefix_of(&self, end: &EventKind) -> bool {
        self.total == 0
            || text_of_end(end).is_some_and(|text| {
                let rest = usize::try_from(self.base()).ok().and_then(|base| text.get(base..));
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

    /// Appends an event and returns its sequence number. A start event opens a segment.
    pub(crate) fn append(&self, at: Timestamp, kind: EventKind) -> u64 {
        self.add(at, kind, None)
    }

    /// Appends the end of the segment whose start event is `start`.
    pub(crate) fn append_end(&self, at: Timestamp, start: u64, kind: EventKind) -> u64 {
        let (segment, start) = {
            let mut inner = self.lock();
            (inner.open.remove(&start), inner.event(start))
        };
        let Some(start) = start else { return self.add(at, kind, None) };
        // The lock is not held, since the text can be long.
        let streamed = match segment.filter(|segment| !segment.is_prefix_of(&kind)) {
            None => StreamedText::InEndEvent,
            Some(mut segment) => {
                segment.keep(KEPT_AFTER_END);
                segment.newest.shrink_to_fit();
                let segment = Arc::new(segment);
                if matches!(kind, EventKind::ToolCallArgumentsEnd { .. }) {
                    let total = segment.total;
                    self.lock().keep_arguments(start.seq, segment);
                    StreamedText::Arguments(total)
                } else {
                    StreamedText::Kept(segment)
                }
            }
        };
        self.add(at, kind, Some(EndedSegment { start, streamed }))
    }

    fn add(&self, at: Timestamp, kind: EventKind, ends: Option<EndedSegment>) -> u64 {
        let mut inner = self.lock();
        let seq = inner.next_seq();
        if opens(&kind) {
            inner.open.insert(seq, Segment::new(at));
        }
        let event = Arc::new(self.event(seq, None, at, kind));
        inner.entries.push_back(LogEntry { event, ends });
        drop(inner);
        self.wake();
        seq
    }

    /// Adds text to the open segment whose start event is `start`. Does nothing if the segment has ended.
    pub(crate) fn delta(&self, at: Timestamp, start: u64, text: &str) {
        if let Some(segment) = self.lock().open.get_mut(&start) {
            segment.push(text, at);
        }
        self.wake();
    }

    /// Closes the log: no event follows.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    /// Returns the id of the session.
    pub(crate) fn session_id(&self) -> &SessionId {
        &self.identity.session_id
    }

    /// Returns the sequence number of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        self.lock().next_seq()
    }

    /// Frees the events before `before`, up to the first event that a reader has not read yet or whose segment is open.
    /// Returns the sequence number of the first event that is kept, and the subagents whose end event was freed.
    pub(crate) fn forget(&self, before: u64) -> (u64, Vec<SessionId>) {
        let mut inner = self.lock();
        let reached =
            inner.readers.iter().filter_map(Weak::upgrade).map(|reader| reader.load(Ordering::Acquire));
        let unread = reached.min().unwrap_or(u64::MAX);
        let open = inner.open.keys().next().copied().unwrap_or(u64::MAX);
        let keep_from = before.min(unread).min(open).clamp(inner.forgotten, inner.next_seq());
        let count = usize::try_from(keep_from - inner.forgotten).unwrap_or(usize::MAX);
        let freed: Vec<LogEntry> = inner.entries.drain(..count).collect();
        inner.forgotten = keep_from;
        // Only with the end event: a reader past the start has not necessarily read the arguments.
        for ended in freed.iter().filter_map(|entry| entry.ends.as_ref()) {
            inner.arguments.remove(&ended.start.seq);
        }
        let ended: Vec<SessionId> = freed.iter().filter_map(ended_subagent).cloned().collect();
        inner.open_subagents.extend(freed.iter().filter_map(spawned_subagent).cloned());
        if !ended.is_empty() {
            let ended: HashSet<&SessionId> = ended.iter().collect();
            inner.open_subagents.retain(|open| !ended.contains(open));
        }
        if inner.entries.capacity() > 2 * inner.entries.len() {
            inner.entries.shrink_to_fit();
        }
        drop(inner);
        // Not under the lock, since freeing takes time and the driver may be waiting.
        drop(freed);
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
    /// Appends an event after running `meanwhile` with the log locked.
    pub(crate) fn append_after(&self, at: Timestamp, kind: EventKind, meanwhile: impl FnOnce()) {
        let mut inner = self.lock();
        meanwhile();
        let event = Arc::new(self.event(inner.next_seq(), None, at, kind));
        inner.entries.push_back(LogEntry { event, ends: None });
        drop(inner);
        self.wake();
    }
}

impl Inner {
    /// Keeps the last part of a call's arguments, and drops the oldest call's arguments if there are too many.
    fn keep_arguments(&mut self, start: u64, segment: Arc<Segment>) {
        self.arguments.insert(start, segment);
        if self.arguments.len() > KEPT_ARGUMENTS {
            self.arguments.pop_first();
        }
    }

    fn event(&self, seq: u64) -> Option<Arc<SessionEvent>> {
        self.entry(seq).map(|entry| Arc::clone(&entry.event))
    }

    fn entry(&self, seq: u64) -> Option<&LogEntry> {
        self.entries.get(usize::try_from(seq.checked_sub(self.forgotten)?).ok()?)
    }

    fn next_seq(&self) -> u64 {
        self.forgotten + self.entries.len() as u64
    }
}

fn spawned_subagent(entry: &LogEntry) -> Option<&SessionId> {
    if let EventKind::SubagentSpawned { child, .. } = &entry.event.kind { Some(child) } else { None }
}

fn ended_subagent(entry: &LogEntry) -> Option<&SessionId> {
    if let EventKind::SubagentEnded { child, .. } = &entry.event.kind { Some(child) } else { None }
}

fn opens(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::AssistantTextStart {}
            | EventKind::ReasoningStart {}
            | EventKind::ToolCallArgumentsStart { .. }
            | EventKind::ToolCallStart { .. }
    )
}

/// Returns the delta event of a segment whose start event is `start`.
fn delta_kind(start: &EventKind, delta: String) -> Option<EventKind> {
    if let EventKind::ToolCallStart { call_id, .. } = start {
        Some(EventKind::ToolCallOutputDelta { call_id: call_id.clone(), delta })
    } else if let EventKind::ToolCallArgumentsStart { call_id, .. } = start {
        Some(EventKind::ToolCallArgumentsDelta { call_id: call_id.clone(), delta })
    } else if matches!(start, EventKind::ReasoningStart {}) {
        Some(EventKind::ReasoningDelta { delta })
    } else if matches!(start, EventKind::AssistantTextStart {}) {
        Some(EventKind::AssistantTextDelta { delta })
    } else {
        None
    }
}

/// Returns the complete text of an end event, if it is in memory.
fn text_of_end(end: &EventKind) -> Option<Cow<'_, str>> {
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

/// Position of a reader in a log.
#[derive(Debug)]
pub(crate) struct Cursor {
    log: Arc<EventLog>,
    next: u64,
    /// Copy of `next` that the log reads: it does not free unread events.
    reached: Arc<AtomicU64>,
    /// Segments whose start this reader has read: sequence number of the start, and bytes read.
    open: BTreeMap<u64, u64>,
    version: watch::Receiver<u64>,
}

/// Result of reading a log.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    Event(Box<SessionEvent>),
    /// No event yet.
    Nothing,
    /// The log is closed and read to its end.
    End,
}

impl Cursor {
    /// Creates a reader that starts with event `from`, or with the first event that was not freed.
    pub(crate) fn new(log: Arc<EventLog>, from: u64) -> Self {
        let version = log.version.subscribe();
        let mut inner = log.lock();
        let next = from.max(inner.forgotten);
        let reached = Arc::new(AtomicU64::new(next));
        inner.readers.retain(|reader| reader.strong_count() > 0);
        inner.readers.push(Arc::downgrade(&reached));
        // A late reader gets the text so far of open segments.
        let open = inner.open.keys().filter(|start| **start < next).map(|start| (*start, 0)).collect();
        drop(inner);
        Self { log, next, reached, open, version }
    }

    /// Returns the subagents that were spawned before the first event of a new reader, and whose end it will read. Only
    /// valid before the first read, since events can be freed afterwards.
    pub(crate) fn open_subagents(&self) -> Vec<SessionId> {
        self.log.lock().open_subagents.clone()
    }

    /// Returns the sequence number of the next lifecycle event.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// Skips the events before `seq`.
    pub(crate) fn skip_to(&mut self, seq: u64) {
        if seq > self.next {
            self.next = seq;
            self.reached.store(seq, Ordering::Release);
            // Segments that started earlier are skipped, too.
            self.open.clear();
        }
    }

    /// Waits until there may be a new event.
    pub(crate) async fn changed(&mut self) {
        // The sender is in the log, which this reader holds.
        let _ = self.version.changed().await;
    }

    /// Returns the next event, without waiting.
    pub(crate) fn find(&mut self) -> ReadOutcome {
        self.version.mark_unchanged();
        let log = Arc::clone(&self.log);
        // The driver may be waiting for the lock, so texts are copied outside the lock where possible.
        let inner = log.lock();
        if let Some(entry) = inner.entry(self.next).cloned() {
            drop(inner);
            return ReadOutcome::Event(Box::new(self.take(&entry)));
        }
        if let Some(delta) = self.unread(&inner) {
            return ReadOutcome::Event(Box::new(delta));
        }
        if inner.closed { ReadOutcome::End } else { ReadOutcome::Nothing }
    }

    /// Returns the next lifecycle event, or the unread rest of the segment that it ends.
    fn take(&mut self, entry: &LogEntry) -> SessionEvent {
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

    fn rest_before_end(&mut self, ended: &EndedSegment, end: &SessionEvent) -> Option<SessionEvent> {
        let read = *self.open.get(&ended.start.seq)?;
        let (rest, at) = match &ended.streamed {
            StreamedText::Kept(segment) => (segment.unread(read)?, segment.at),
            StreamedText::Arguments(total) => {
                let kept = self.log.lock().arguments.get(&ended.start.seq).cloned();
                match kept {
                    Some(segment) => (segment.unread(read)?, segment.at),
                    None if read < *total => (UnreadText::Skipped(*total - read), end.timestamp),
                    None => return None,
                }
            }
            StreamedText::InEndEvent => {
                let text = text_of_end(&end.kind)?;
                let rest = text.get(usize::try_from(read).ok()?..).filter(|rest| !rest.is_empty())?;
                (UnreadText::Text(rest.to_owned()), end.timestamp)
            }
        };
        self.read(&ended.start, rest, at)
    }

    /// Returns the unread text of an open segment, or the gap before it.
    fn unread(&mut self, inner: &Inner) -> Option<SessionEvent> {
        let (start, unread, at) = self.open.iter().find_map(|(start, read)| {
            let segment = inner.open.get(start)?;
            Some((inner.event(*start)?, segment.unread(*read)?, segment.at))
        })?;
        self.read(&start, unread, at)
    }

    /// Advances this reader in the segment whose start event is `start`, and returns the event.
    fn read(&mut self, start: &SessionEvent, unread: UnreadText, at: Timestamp) -> Option<SessionEvent> {
        let read = self.open.get_mut(&start.seq)?;
        let offset = *read;
        let kind = match unread {
            UnreadText::Skipped(skipped) => {
                *read += skipped;
                EventKind::Gap { skipped }
            }
            UnreadText::Text(text) => {
                *read += text.len() as u64;
                delta_kind(&start.kind, text)?
            }
        };
        Some(self.log.event(start.seq, Some(offset), at, kind))
    }
}

#[cfg(test)]
mod tests;
