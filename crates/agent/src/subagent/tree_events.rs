//! Events of a whole tree of sessions in one stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::future::select_all;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;

use super::Tree;
use super::tree::UnreadLogs;
use crate::event_log::{Cursor, EventLog, ReadOutcome};
use crate::protocol::{EventKind, SessionEvent, SessionId};

/// Events of a session and of all its subagents as they occur, after all past events in the order of their times.
///
/// A stream misses no event from its creation on, however slowly it is read. It contains the newest 64 subagents that
/// ended earlier; older ones appear only in their parents' events.
///
/// Events keep the `seq` of their session and are in that order within it; `session_id`, `depth` and `parent` identify
/// the session. A subagent's events are between the [`SubagentSpawned`](EventKind::SubagentSpawned) and the
/// [`SubagentEnded`](EventKind::SubagentEnded) of its parent. The stream ends after the session's last event and, like
/// [`Events`](crate::Events), never delays the session.
pub struct TreeEvents {
    events: BoxStream<'static, SessionEvent>,
}

impl TreeEvents {
    pub(crate) fn new(tree: Arc<Tree>, root: SessionId, log: Arc<EventLog>) -> Self {
        let (joined, unread) = (tree.joined(), tree.subscribe());
        // Read through `log`.
        let _ = unread.take(&root);
        let cursor = Cursor::new(log, 0);
        // Their `SubagentSpawned` event was freed. Logs of subagents never free events.
        let announced = cursor.open_subagents();
        let readers = vec![Reader::new(root, cursor)];
        let merge = Box::new(Merge { _tree: tree, joined, unread, readers, announced });
        let next = |mut merge: Box<Merge>| async move { Some((merge.next().await?, merge)) };
        Self { events: stream::unfold(merge, next).fuse().boxed() }
    }

    /// Returns the next event; `None` after the last one. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        self.events.next().await
    }
}

impl Stream for TreeEvents {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        self.events.poll_next_unpin(cx)
    }
}

impl std::fmt::Debug for TreeEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeEvents").finish_non_exhaustive()
    }
}

/// Merges the logs of all sessions whose `SubagentSpawned` was delivered.
struct Merge {
    /// Keeps the sender of `joined` alive.
    _tree: Arc<Tree>,
    joined: watch::Receiver<u64>,
    unread: Arc<UnreadLogs>,
    readers: Vec<Reader>,
    /// Sessions that were announced and have not joined the tree yet.
    announced: Vec<SessionId>,
}

struct Reader {
    id: SessionId,
    cursor: Cursor,
    /// Next event, read ahead.
    head: Option<SessionEvent>,
    is_done: bool,
}

impl Reader {
    fn new(id: SessionId, cursor: Cursor) -> Self {
        Self { id, cursor, head: None, is_done: false }
    }

    fn read(&mut self) {
        if self.head.is_none() && !self.is_done {
            match self.cursor.find() {
                ReadOutcome::Event(event) => self.head = Some(*event),
                ReadOutcome::Nothing => {}
                ReadOutcome::End => self.is_done = true,
            }
        }
    }
}

impl Merge {
    /// Waits for the next event; `None` after the last one. Cancel safe.
    async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            let oldest = self.take_oldest();
            if oldest.is_some() || self.readers.is_empty() {
                return oldest;
            }
            self.changed().await;
        }
    }

    /// Returns the oldest event that can be delivered now.
    fn take_oldest(&mut self) -> Option<SessionEvent> {
        self.joined.mark_unchanged();
        self.readers.iter_mut().for_each(Reader::read);
        // After the heads were read: a subagent joins before its end is logged, so its end is never delivered before its
        // events.
        self.open_announced();
        self.readers.retain(|reader| !reader.is_done || reader.head.is_some());
        let at = |index: usize| self.readers.get(index).and_then(|reader| reader.head.as_ref());
        let deliverable = (0..self.readers.len())
            .filter(|index| at(*index).is_some_and(|event| self.is_deliverable(event)));
        let oldest = deliverable.min_by_key(|index| at(*index).map(|event| event.timestamp))?;
        let event = self.readers.get_mut(oldest)?.head.take()?;
        self.track(&event);
        Some(event)
    }

    /// Returns whether all events that must precede this one were delivered: a subagent's end follows all its events.
    fn is_deliverable(&self, event: &SessionEvent) -> bool {
        match ended_child(&event.kind) {
            Some(child) => !self.readers.iter().any(|reader| reader.id == *child),
            None => true,
        }
    }

    /// Updates the announced sessions after an event was delivered.
    fn track(&mut self, event: &SessionEvent) {
        if let EventKind::SubagentSpawned { child, .. } = &event.kind {
            self.announced.push(child.clone());
        } else if let Some(child) = ended_child(&event.kind) {
            // A subagent that was closed before it started never joins.
            self.announced.retain(|announced| announced != child);
            let _ = self.unread.take(child);
        }
    }

    /// Opens readers for announced sessions that have joined.
    fn open_announced(&mut self) {
        let (unread, readers) = (&self.unread, &mut self.readers);
        self.announced.retain(|id| match unread.take(id) {
            Some(log) => {
                let mut reader = Reader::new(id.clone(), Cursor::new(log, 0));
                reader.read();
                readers.push(reader);
                false
            }
            None => true,
        });
    }

    /// Waits until there may be a new event.
    async fn changed(&mut self) {
        let readers = self.readers.iter_mut().filter(|reader| reader.head.is_none());
        let read = readers.map(|reader| Box::pin(reader.cursor.changed()));
        let read = async {
            let read: Vec<_> = read.collect();
            if read.is_empty() {
                return std::future::pending().await;
            }
            select_all(read).await;
        };
        tokio::select! {
            () = read => {}
            // Cannot fail: this stream holds the tree, which owns the sender.
            _ = self.joined.changed() => {}
        }
    }
}

fn ended_child(kind: &EventKind) -> Option<&SessionId> {
    if let EventKind::SubagentEnded { child, .. } = kind { Some(child) } else { None }
}
