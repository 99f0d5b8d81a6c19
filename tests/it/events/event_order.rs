//! The order of the events of a session.

use std::collections::BTreeMap;

use pintle_agent::{EventKind, SessionEvent, SessionId};

/// Checks every event of a subscriber, from the first one, and panics at one that is out of order.
///
/// Each session of a tree has its own numbers, starts and ends.
#[derive(Debug, Default)]
pub(crate) struct EventOrder {
    sessions: BTreeMap<SessionId, OneSession>,
}

#[derive(Debug, Default)]
struct OneSession {
    next: u64,
    open: BTreeMap<u64, Open>,
    ended: bool,
}

/// A segment that has started but not ended.
#[derive(Debug)]
struct Open {
    start: EventKind,
    text: String,
    read: u64,
    /// Some of its deltas were skipped.
    gap: bool,
}

impl EventOrder {
    pub(crate) fn take(&mut self, event: &SessionEvent) {
        self.sessions.entry(event.session_id.clone()).or_default().take(event);
    }
}

impl OneSession {
    fn take(&mut self, event: &SessionEvent) {
        assert!(!self.ended, "after SESSION_END: {event:?}");
        if event.offset.is_some() {
            return self.delta(event);
        }
        assert_eq!(event.seq, self.next, "numbers are gapless: {event:?}");
        let begins = matches!(event.kind, EventKind::SessionStart { .. });
        assert_eq!(begins, event.seq == 0, "SESSION_START is the first event and comes once: {event:?}");
        self.next += 1;
        match &event.kind {
            EventKind::AssistantTextStart {}
            | EventKind::ReasoningStart {}
            | EventKind::ToolCallArgumentsStart { .. }
            | EventKind::ToolCallStart { .. } => {
                let open = Open { start: event.kind.clone(), text: String::new(), read: 0, gap: false };
                self.open.insert(event.seq, open);
            }
            EventKind::AssistantTextEnd { text, .. } => {
                self.end(event, |open| {
                    matches!(open.start, EventKind::AssistantTextStart {}) && open.says(text)
                });
            }
            EventKind::ReasoningEnd { text, .. } => {
                self.end(event, |open| matches!(open.start, EventKind::ReasoningStart {}) && open.says(text));
            }
            EventKind::ToolCallArgumentsEnd { call_id: ended, .. } => self.end(
                event,
                |open| matches!(&open.start, EventKind::ToolCallArgumentsStart { call_id, .. } if call_id == ended),
            ),
            EventKind::ToolCallEnd { call_id: ended, .. } => self.end(
                event,
                |open| matches!(&open.start, EventKind::ToolCallStart { call_id, .. } if call_id == ended),
            ),
            EventKind::SessionEnd { .. } => {
                assert!(self.open.is_empty(), "SESSION_END leaves something open: {:?}", self.open);
                self.ended = true;
            }
            _ => {}
        }
    }

    fn delta(&mut self, event: &SessionEvent) {
        let open = self.open.get_mut(&event.seq);
        let open = open.unwrap_or_else(|| panic!("nothing is open for this delta: {event:?}"));
        assert_eq!(event.offset, Some(open.read), "deltas follow one another: {event:?}");
        match &event.kind {
            EventKind::AssistantTextDelta { delta }
            | EventKind::ReasoningDelta { delta }
            | EventKind::ToolCallArgumentsDelta { delta, .. }
            | EventKind::ToolCallOutputDelta { delta, .. } => {
                assert!(!delta.is_empty(), "a delta says something: {event:?}");
                open.read += delta.len() as u64;
                open.text.push_str(delta);
            }
            EventKind::Gap { skipped } => {
                open.read += skipped;
                open.gap = true;
            }
            other => panic!("this is no delta and has an offset: {other:?}"),
        }
    }

    fn end(&mut self, event: &SessionEvent, is_its_start: impl Fn(&Open) -> bool) {
        let start = self.open.iter().find(|(_, open)| is_its_start(open)).map(|(seq, _)| *seq);
        let start = start.unwrap_or_else(|| {
            panic!("no start, or not the text of one, for this end: {event:?}\nopen: {:?}", self.open)
        });
        self.open.remove(&start);
    }
}

impl Open {
    fn says(&self, text: &str) -> bool {
        self.gap || self.text == text
    }
}
