//! Events of one session from any point: first from the record, then from the open session, across every opening and
//! closing.

mod segments;

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, Stream, StreamExt as _};
use pintle_agent::{SessionEvent, SessionId};
use pintle_store::{IntactRecord, Reader, StoreError, read_intact};
use tokio::sync::broadcast;

use self::segments::RecordSegments;
use crate::hub::{Hub, LiveSession, SessionChange, WatchGuard};

/// Minimum time between two reads of a record that another process writes.
const READ_INTERVAL: Duration = Duration::from_millis(500);

/// Identifies an event that a client has seen. A sequence number may be reused after a crash that lost events before they
/// were on disk. The time distinguishes these events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) seq: u64,
    /// Time of the event in milliseconds; `None` if the client sent only the number.
    pub(crate) millis: Option<i64>,
}

impl EventId {
    pub(crate) fn from_event(event: &SessionEvent) -> Self {
        Self { seq: event.seq, millis: Some(event.timestamp.as_millis()) }
    }

    fn identifies(self, event: &SessionEvent) -> bool {
        self.seq == event.seq && self.millis.is_none_or(|millis| millis == event.timestamp.as_millis())
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.millis {
            Some(millis) => write!(f, "{}-{millis}", self.seq),
            None => write!(f, "{}", self.seq),
        }
    }
}

impl FromStr for EventId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong =
            || format!("`{text}` is no id of an event: expected one that was sent, such as 41-1764140000123");
        let (seq, millis) = match text.split_once('-') {
            Some((seq, millis)) => (seq, Some(millis.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        Ok(Self { seq: seq.parse().map_err(|_| wrong())?, millis })
    }
}

/// Item of a feed.
#[derive(Debug)]
pub(crate) enum FeedItem {
    /// The next event, or a piece of the text of an open segment.
    Event(Box<SessionEvent>),
    /// The client's last event is not in the log. The stream restarts from the first event.
    Reset(&'static str),
    /// All events that existed when the feed started have been sent.
    Ready,
}

type SessionEventStream = Pin<Box<dyn Stream<Item = SessionEvent> + Send>>;

/// Events of one session. Live events are not read ahead, so that a slow client costs one event.
pub(crate) struct SessionFeed {
    hub: Arc<Hub>,
    id: SessionId,
    /// Session that the hub opens for it: the session itself, or the root of its tree.
    root: SessionId,
    /// Last event that was returned or that the client has.
    last: Option<EventId>,
    backlog: VecDeque<SessionEvent>,
    /// Damage of the record after the events of the backlog.
    damage: Option<StoreError>,
    /// Segments of the record, as of the last read.
    segments: RecordSegments,
    source: FeedSource,
    changes: broadcast::Receiver<SessionChange>,
    is_ready: bool,
}

enum FeedSource {
    /// Not determined yet.
    None,
    Live {
        events: SessionEventStream,
        live: Arc<LiveSession>,
        _watching: WatchGuard,
    },
    /// The session is not open in this process.
    Stored {
        reader: Box<dyn Reader>,
    },
}

impl SessionFeed {
    /// Creates the feed of a session whose root is `root`, after an event.
    pub(crate) fn new(hub: Arc<Hub>, id: SessionId, root: SessionId, after: Option<EventId>) -> Self {
        let changes = hub.changes();
        Self {
            hub,
            id,
            root,
            last: after,
            backlog: VecDeque::new(),
            damage: None,
            segments: RecordSegments::default(),
            source: FeedSource::None,
            changes,
            is_ready: false,
        }
    }

    /// Returns the next item. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] once the session is deleted, and the errors of reading a record. Damage is returned after
    /// the preceding events.
    pub(crate) async fn next(&mut self) -> Result<FeedItem, StoreError> {
        match self.advance().await {
            // A deletion removes the files of a session one by one.
            Err(error) if matches!(self.hub.store.summary(&self.id).await, Ok(None)) => {
                tracing::debug!(%error, "the session was deleted");
                Err(StoreError::NotFound(self.id.clone()))
            }
            result => result,
        }
    }

    async fn advance(&mut self) -> Result<FeedItem, StoreError> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                if let Some(event) = self.take(event) {
                    return Ok(FeedItem::Event(event));
                }
                continue;
            }
            if let Some(damage) = self.damage.take() {
                return Err(damage);
            }
            match &mut self.source {
                FeedSource::None => {
                    if let Some(reset) = self.find().await? {
                        return Ok(reset);
                    }
                }
                FeedSource::Live { events, .. } => {
                    if !self.is_ready {
                        match events.next().now_or_never() {
                            Some(Some(event)) => self.backlog.push_back(event),
                            Some(None) => self.source = FeedSource::None,
                            None => {
                                self.is_ready = true;
                                return Ok(FeedItem::Ready);
                            }
                        }
                        continue;
                    }
                    match events.next().await {
                        Some(event) => self.backlog.push_back(event),
                        // The log is closed before the session.
                        None => self.leave().await,
                    }
                }
                FeedSource::Stored { .. } if !self.is_ready => {
                    self.is_ready = true;
                    return Ok(FeedItem::Ready);
                }
                FeedSource::Stored { .. } => self.wait().await?,
            }
        }
    }

    /// Returns the event, unless the client already has it or the complete text of its segment.
    fn take(&mut self, event: SessionEvent) -> Option<Box<SessionEvent>> {
        if event.offset.is_some() {
            if self.segments.has_ended(event.seq) {
                return None;
            }
        } else {
            if self.last.is_some_and(|last| event.seq <= last.seq) {
                return None;
            }
            self.last = Some(EventId::from_event(&event));
        }
        Some(Box::new(event))
    }

    /// Waits until a session whose log is closed has ended.
    async fn leave(&mut self) {
        if let FeedSource::Live { live, .. } = &self.source {
            let live = Arc::clone(live);
            live.wait_until_ended().await;
        }
        self.source = FeedSource::None;
    }

    /// Determines the source of the next events and collects the available ones.
    async fn find(&mut self) -> Result<Option<FeedItem>, StoreError> {
        if let Some(live) = self.hub.live(&self.root)
            && let Some((events, first)) = self.events_of(&live)
        {
            let watching = live.watch();
            let reset = match first {
                Some(first) => self.begin_with(first),
                // The record may have events that the log no longer has, or the client may be ahead.
                None => self.read_record().await?,
            };
            if reset.is_some() {
                // The next call determines the source again, from the first event.
                self.backlog.clear();
                self.damage = None;
            } else {
                self.source = FeedSource::Live { events, live, _watching: watching };
            }
            return Ok(reset);
        }
        // The reader is opened before the record is read, so that no event is missed.
        let mut reader = self.hub.store.read(&self.id, 1).await?;
        loop {
            match reader.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // The events before the damage are sent first.
                Err(error) if error.is_damage() => break,
                Err(error) => return Err(error),
            }
        }
        let reset = self.read_record().await?;
        self.source = FeedSource::Stored { reader };
        Ok(reset)
    }

    /// Returns the events of an open session. If the log still has the event that the client saw last, also returns this
    /// event and the preceding pieces of text.
    fn events_of(&self, live: &LiveSession) -> Option<(SessionEventStream, Option<VecDeque<SessionEvent>>)> {
        if self.id != self.root {
            let id = self.id.clone();
            let events = live.tree_events()?.filter(move |event| std::future::ready(event.session_id == id));
            return Some((Box::pin(events), None));
        }
        let from = self.last.map_or(0, |last| last.seq);
        let mut events = live.events_from(from)?;
        let mut read = VecDeque::new();
        while let Some(Some(event)) = events.next().now_or_never() {
            let is_durable = event.offset.is_none();
            let is_first = is_durable && event.seq == from;
            read.push_back(event);
            if is_durable {
                let first = is_first.then(|| read.clone());
                let events = futures_util::stream::iter(read).chain(events);
                return Some(match first {
                    Some(first) => (Box::pin(events.skip(first.len())), Some(first)),
                    None => (Box::pin(events), None),
                });
            }
        }
        Some((Box::pin(futures_util::stream::iter(read).chain(events)), None))
    }

    /// Starts with the first events of the log. Returns a reset if they do not contain the event that the client saw last.
    fn begin_with(&mut self, first: VecDeque<SessionEvent>) -> Option<FeedItem> {
        let seen = first.iter().find(|event| event.offset.is_none());
        if let (Some(last), Some(seen)) = (self.last, seen)
            && !last.identifies(seen)
        {
            self.last = None;
            return Some(FeedItem::Reset("the last event that you have is not what happened"));
        }
        self.backlog = first;
        None
    }

    /// Reads the events after the client's last event from the record, up to the first damaged line.
    async fn read_record(&mut self) -> Result<Option<FeedItem>, StoreError> {
        let IntactRecord { record, damage, .. } = match read_intact(self.hub.store.as_ref(), &self.id).await {
            Ok(intact) => intact,
            // The session has not written its first line yet.
            Err(StoreError::NotFound(_)) if self.last.is_none() => return Ok(None),
            Err(error) => return Err(error),
        };
        let events = match record.replay() {
            Ok(replay) => replay.events,
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "the record cannot be replayed");
                Vec::new()
            }
        };
        self.segments = RecordSegments::from_events(&events);
        self.damage = damage;
        let mut reset = None;
        if let Some(last) = self.last {
            let index = usize::try_from(last.seq).unwrap_or(usize::MAX);
            if !events.get(index).is_some_and(|event| last.identifies(event)) {
                self.last = None;
                reset = Some(FeedItem::Reset("events that you have were lost, or never were"));
            }
        }
        let next =
            self.last.map_or(0, |last| usize::try_from(last.seq).unwrap_or(usize::MAX).saturating_add(1));
        self.backlog = events.into_iter().skip(next).collect();
        Ok(reset)
    }

    /// Waits until a session that is not open in this process may have more events.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let FeedSource::Stored { reader } = &mut self.source else { return Ok(()) };
        loop {
            tokio::select! {
                changed = self.changes.recv() => match changed {
                    Ok(change) if *change.id() != self.root => {}
                    // A missed change may concern this session.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        if self.hub.live(&self.root).is_some() {
                            break;
                        }
                    }
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
                () = reader.wait() => {
                    tokio::time::sleep(READ_INTERVAL).await;
                    break;
                }
            }
        }
        self.source = FeedSource::None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_events_are_read_back() {
        for (text, expected) in [
            ("0-1764140000123", Some((0, Some(1_764_140_000_123)))),
            ("41", Some((41, None))),
            ("", None),
            ("-1", None),
            ("1-", None),
            ("1-x", None),
            ("18446744073709551616", None),
        ] {
            let id = text.parse::<EventId>().ok();
            assert_eq!(id.map(|id| (id.seq, id.millis)), expected, "{text}");
            if let Some(id) = id {
                assert_eq!(id.to_string(), text);
            }
        }
    }
}
