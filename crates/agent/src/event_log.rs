//! The one place where events are kept, and how subscribers read it (design, section 4).
//!
//! Lifecycle events stand in an append-only list that every subscriber reads by its own cursor, so none is lost and
//! nobody is waited for. The text of an open segment stands beside it; a subscriber takes what it has not read yet,
//! so a slow one gets fewer and larger deltas. Only the newest part of an open segment is kept: who lags behind
//! that gets a [`Gap`](EventKind::Gap).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_env::Output;
use tokio::sync::watch;

use crate::event::{EventKind, SessionEvent};
use crate::id::SessionId;
use crate::timestamp::Timestamp;

/// How much of an open segment is kept for subscribers, in bytes.
const KEPT: usize = 1 << 20;

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
    entries: Vec<Entry>,
    open: BTreeMap<u64, Segment>,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    event: Arc<SessionEvent>,
    /// The start that this event ends.
    ends: Option<u64>,
}

/// The newest text of an open segment.
#[derive(Debug, Default)]
struct Segment {
    total: u64,
    newest: String,
}

impl Segment {
    fn push(&mut self, text: &str) {
        self.total += text.len() as u64;
        self.newest.push_str(text);
        if self.newest.len() > 2 * KEPT {
            let mut cut = self.newest.len() - KEPT;
            while !self.newest.is_char_boundary(cut) {
                cut += 1;
            }
            self.newest.drain(..cut);
        }
    }

    fn base(&self) -> u64 {
        self.total - self.newest.len() as u64
    }
}

impl EventLog {
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity, inner: Mutex::default(), version: watch::Sender::new(0) }
    }

    /// Appends an event and gives its number. Starts of segments open one.
    pub(crate) fn append(&self, at: Timestamp, kind: EventKind) -> u64 {
        self.add(at, kind, None)
    }

    /// Appends the end of the segment that began at `start`.
    pub(crate) fn append_end(&self, at: Timestamp, start: u64, kind: EventKind) -> u64 {
        self.add(at, kind, Some(start))
    }

    fn add(&self, at: Timestamp, kind: EventKind, ends: Option<u64>) -> u64 {
        let mut inner = self.lock();
        let seq = inner.entries.len() as u64;
        if opens(&kind) {
            inner.open.insert(seq, Segment::default());
        }
        if let Some(start) = ends {
            inner.open.remove(&start);
        }
        let event = Arc::new(self.event(seq, None, at, kind));
        inner.entries.push(Entry { event, ends });
        drop(inner);
        self.wake();
        seq
    }

    /// Adds text to the open segment that began at `start`; nothing if it has ended.
    pub(crate) fn delta(&self, start: u64, text: &str) {
        if let Some(segment) = self.lock().open.get_mut(&start) {
            segment.push(text);
        }
        self.wake();
    }

    /// Says that nothing follows.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    /// The number that the next event will have.
    pub(crate) fn next_seq(&self) -> u64 {
        self.lock().entries.len() as u64
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
fn whole_text(end: &EventKind) -> Option<String> {
    if let EventKind::AssistantTextEnd { text, .. } | EventKind::ReasoningEnd { text, .. } = end {
        Some(text.clone())
    } else if let EventKind::ToolCallEnd { output, .. } = end {
        inline_text(output)
    } else {
        None
    }
}

fn inline_text(output: &Output) -> Option<String> {
    if output.is_spooled() { None } else { output.to_text_lossy().ok() }
}

/// One reader of a log.
#[derive(Debug)]
pub(crate) struct Cursor {
    log: Arc<EventLog>,
    next: u64,
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
    /// A reader that begins with event `from`.
    pub(crate) fn new(log: Arc<EventLog>, from: u64) -> Self {
        let version = log.version.subscribe();
        let mut cursor = Self { log, next: from, open: BTreeMap::new(), version };
        // A late reader gets the text so far of what is still open.
        let open: Vec<u64> = cursor.log.lock().open.keys().copied().filter(|start| *start < from).collect();
        cursor.open.extend(open.into_iter().map(|start| (start, 0)));
        cursor
    }

    /// The number of the next lifecycle event that this reader will get.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// Waits until there may be something new.
    pub(crate) async fn changed(&mut self) {
        // The sender lives in the log that this reader holds.
        let _ = self.version.changed().await;
    }

    /// The next event, without waiting.
    pub(crate) fn find(&mut self) -> Found {
        let log = Arc::clone(&self.log);
        self.version.mark_unchanged();
        let inner = log.lock();
        let index = usize::try_from(self.next).unwrap_or(usize::MAX);
        if let Some(entry) = inner.entries.get(index) {
            if let Some(start) = entry.ends
                && let Some(rest) = self.rest_before_end(&log, &inner, start, &entry.event)
            {
                return Found::Event(Box::new(rest));
            }
            self.next += 1;
            if opens(&entry.event.kind) {
                self.open.insert(entry.event.seq, 0);
            }
            if let Some(start) = entry.ends {
                self.open.remove(&start);
            }
            return Found::Event(Box::new((*entry.event).clone()));
        }
        if let Some(delta) = self.unread(&log, &inner) {
            return Found::Event(Box::new(delta));
        }
        if inner.closed { Found::End } else { Found::Nothing }
    }

    /// What this reader has not read of a segment whose end is next.
    fn rest_before_end(
        &mut self,
        log: &EventLog,
        inner: &Inner,
        start: u64,
        end: &SessionEvent,
    ) -> Option<SessionEvent> {
        let read = self.open.get_mut(&start)?;
        let whole = whole_text(&end.kind)?;
        let offset = *read;
        let rest = whole.get(usize::try_from(offset).ok()?..)?;
        if rest.is_empty() {
            return None;
        }
        *read = whole.len() as u64;
        let kind = delta_kind(&start_of(inner, start)?.kind, rest.to_owned())?;
        Some(log.event(start, Some(offset), end.timestamp, kind))
    }

    /// The unread text of an open segment, or the gap before it.
    fn unread(&mut self, log: &EventLog, inner: &Inner) -> Option<SessionEvent> {
        for (start, read) in &mut self.open {
            let Some(segment) = inner.open.get(start) else { continue };
            if *read >= segment.total {
                continue;
            }
            let event = start_of(inner, *start)?;
            let (offset, base) = (*read, segment.base());
            let kind = if offset < base {
                *read = base;
                EventKind::Gap { skipped: base - offset }
            } else {
                let at = usize::try_from(offset - base).ok()?;
                *read = segment.total;
                delta_kind(&event.kind, segment.newest.get(at..)?.to_owned())?
            };
            return Some(log.event(*start, Some(offset), event.timestamp, kind));
        }
        None
    }
}

fn start_of(inner: &Inner, start: u64) -> Option<&SessionEvent> {
    inner.entries.get(usize::try_from(start).ok()?).map(|entry| entry.event.as_ref())
}

#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "tests look at few kinds of events")]
mod tests {
    use super::*;

    fn log() -> Arc<EventLog> {
        let identity = Identity { session_id: SessionId::new("s"), depth: 0, parent: None };
        Arc::new(EventLog::new(identity))
    }

    const NOW: fn() -> Timestamp = || Timestamp::from_millis(0);

    fn drain(cursor: &mut Cursor) -> Vec<(u64, Option<u64>, String)> {
        let mut seen = Vec::new();
        while let Found::Event(event) = cursor.find() {
            let text = match &event.kind {
                EventKind::AssistantTextDelta { delta } => delta.clone(),
                EventKind::AssistantTextEnd { text, .. } => format!("end:{text}"),
                EventKind::Gap { skipped } => format!("gap:{skipped}"),
                EventKind::AssistantTextStart {} => "start".into(),
                other => format!("{other:?}"),
            };
            seen.push((event.seq, event.offset, text));
        }
        seen
    }

    fn end(text: &str) -> EventKind {
        EventKind::AssistantTextEnd { text: text.into(), interrupted: false }
    }

    #[test]
    fn every_reader_gets_every_lifecycle_event_and_deltas_that_add_up() {
        let log = log();
        let mut quick = Cursor::new(Arc::clone(&log), 0);
        let start = log.append(NOW(), EventKind::AssistantTextStart {});
        log.delta(start, "ab");
        assert_eq!(drain(&mut quick), [(0, None, "start".into()), (0, Some(0), "ab".into())]);
        log.delta(start, "cd");
        let mut late = Cursor::new(Arc::clone(&log), 1);
        assert_eq!(drain(&mut late), [(0, Some(0), "abcd".into())], "a late reader gets the text so far");
        log.append_end(NOW(), start, end("abcd"));
        assert_eq!(drain(&mut quick), [(0, Some(2), "cd".into()), (1, None, "end:abcd".into())]);
        assert_eq!(drain(&mut late), [(1, None, "end:abcd".into())]);
        let mut after = Cursor::new(Arc::clone(&log), 0);
        assert_eq!(
            drain(&mut after),
            [(0, None, "start".into()), (0, Some(0), "abcd".into()), (1, None, "end:abcd".into())]
        );
        assert!(matches!(quick.find(), Found::Nothing));
        log.close();
        assert!(matches!(quick.find(), Found::End));
    }

    #[test]
    fn a_reader_that_lags_behind_what_is_kept_is_told_how_much_it_missed() {
        let log = log();
        let mut slow = Cursor::new(Arc::clone(&log), 0);
        let start = log.append(NOW(), EventKind::AssistantTextStart {});
        for _ in 0..3 * KEPT / 1024 {
            log.delta(start, &"é".repeat(512));
        }
        let seen = drain(&mut slow);
        assert_eq!(seen.len(), 3);
        let skipped: u64 = seen[1].2.strip_prefix("gap:").unwrap().parse().unwrap();
        assert_eq!(skipped + seen[2].2.len() as u64, 3 * KEPT as u64);
        assert_eq!(seen[2].1, Some(skipped));
        assert!(seen[2].2.len() <= 2 * KEPT + 1024);
    }

    #[tokio::test]
    async fn waiting_ends_when_something_comes() {
        let log = log();
        let mut cursor = Cursor::new(Arc::clone(&log), 0);
        assert!(matches!(cursor.find(), Found::Nothing));
        log.append(NOW(), EventKind::AssistantTextStart {});
        cursor.changed().await;
        assert!(matches!(cursor.find(), Found::Event(_)));
    }
}
