//! The events of a whole tree of sessions in one stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::future::select_all;
use tokio::sync::watch;

use super::Tree;
use super::tree::Unread;
use crate::event_log::{Cursor, EventLog, Found};
use crate::protocol::{EventKind, SessionEvent, SessionId};

/// The events of a session and of every subagent below it, as they come; those of the past first, by their times.
///
/// A stream has everything from its own beginning on, however slowly it is read. Of subagents that ended before, it has
/// the newest 64; of others, what their parents' events tell.
///
/// Within a session the order is that of `seq`, and nothing is numbered anew: `session_id`, `depth` and `parent` say
/// where an event comes from. Between two sessions, a subagent's events stand between the
/// [`SubagentSpawned`](EventKind::SubagentSpawned) and the [`SubagentEnded`](EventKind::SubagentEnded) of its parent.
/// It ends after the session's last event and, as [`Events`](crate::Events), never holds anyone up.
pub struct TreeEvents {
    state: State,
}

enum State {
    Ready(Box<Merge>),
    Waiting(Pin<Box<dyn Future<Output = Box<Merge>> + Send>>),
    Done,
}

impl TreeEvents {
    pub(crate) fn new(tree: Arc<Tree>, root: SessionId, log: Arc<EventLog>) -> Self {
        let (grown, unread) = (tree.grown(), tree.unread());
        // Its own log is read from here.
        let _ = unread.take(&root);
        let cursor = Cursor::new(log, 0);
        // Of these the past says nothing any more. No log of a subagent forgets anything.
        let awaited = cursor.open_subagents();
        let readers = vec![Reader::new(root, cursor)];
        Self { state: State::Ready(Box::new(Merge { _tree: tree, grown, unread, readers, awaited })) }
    }

    /// The next event; `None` after the last one. Cancel safe.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for TreeEvents {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Poll::Ready(None),
                State::Ready(mut merge) => {
                    if let Some(event) = merge.next() {
                        self.state = State::Ready(merge);
                        return Poll::Ready(Some(event));
                    }
                    if merge.readers.is_empty() {
                        return Poll::Ready(None);
                    }
                    self.state = State::Waiting(Box::pin(async move {
                        merge.changed().await;
                        merge
                    }));
                }
                State::Waiting(mut future) => match future.as_mut().poll(cx) {
                    Poll::Ready(merge) => self.state = State::Ready(merge),
                    Poll::Pending => {
                        self.state = State::Waiting(future);
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

impl std::fmt::Debug for TreeEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeEvents").finish_non_exhaustive()
    }
}

/// Readers of the sessions whose beginning has been told.
struct Merge {
    /// Tells of new sessions as long as it is there.
    _tree: Arc<Tree>,
    grown: watch::Receiver<u64>,
    unread: Arc<Unread>,
    readers: Vec<Reader>,
    /// Sessions that were announced and are not there yet.
    awaited: Vec<SessionId>,
}

struct Reader {
    id: SessionId,
    cursor: Cursor,
    /// What was read and not yet given.
    head: Option<SessionEvent>,
    is_over: bool,
}

impl Reader {
    fn new(id: SessionId, cursor: Cursor) -> Self {
        Self { id, cursor, head: None, is_over: false }
    }

    fn read(&mut self) {
        if self.head.is_none() && !self.is_over {
            match self.cursor.find() {
                Found::Event(event) => self.head = Some(*event),
                Found::Nothing => {}
                Found::End => self.is_over = true,
            }
        }
    }
}

impl Merge {
    /// The oldest event of those that are next in their sessions and may be given.
    fn next(&mut self) -> Option<SessionEvent> {
        self.grown.mark_unchanged();
        self.readers.iter_mut().for_each(Reader::read);
        // After the heads: a subagent is there before its end is told, so that no end is given before its events.
        self.find_awaited();
        self.readers.retain(|reader| !reader.is_over || reader.head.is_some());
        let at = |index: usize| self.readers.get(index).and_then(|reader| reader.head.as_ref());
        let free = (0..self.readers.len()).filter(|index| at(*index).is_some_and(|event| self.may_go(event)));
        let oldest = free.min_by_key(|index| at(*index).map(|event| event.timestamp))?;
        let event = self.readers.get_mut(oldest)?.head.take()?;
        self.follow(&event);
        Some(event)
    }

    /// The end of a subagent is told after everything that it told itself.
    fn may_go(&self, event: &SessionEvent) -> bool {
        match ended_child(&event.kind) {
            Some(child) => !self.readers.iter().any(|reader| reader.id == *child),
            None => true,
        }
    }

    fn follow(&mut self, event: &SessionEvent) {
        if let EventKind::SubagentSpawned { child, .. } = &event.kind {
            self.awaited.push(child.clone());
        } else if let Some(child) = ended_child(&event.kind) {
            // One that never came to be has nothing to tell.
            self.awaited.retain(|awaited| awaited != child);
            let _ = self.unread.take(child);
        }
    }

    fn find_awaited(&mut self) {
        let (unread, readers) = (&self.unread, &mut self.readers);
        self.awaited.retain(|id| match unread.take(id) {
            Some(log) => {
                let mut reader = Reader::new(id.clone(), Cursor::new(log, 0));
                reader.read();
                readers.push(reader);
                false
            }
            None => true,
        });
    }

    /// Waits until there may be something new.
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
            // The sender lives in the tree that this stream holds.
            _ = self.grown.changed() => {}
        }
    }
}

fn ended_child(kind: &EventKind) -> Option<&SessionId> {
    if let EventKind::SubagentEnded { child, .. } = kind { Some(child) } else { None }
}
