//! Segments of a session that have ended according to a record.

use std::collections::{HashMap, HashSet};

use pintle_agent::{EventKind, SessionEvent};

/// Segments that started in a record, identified by the sequence number of their start event.
///
/// The log of an open session can still have a piece of a text whose end is in the record. A client that gets the end from
/// the record gets the complete text with it.
#[derive(Debug, Default)]
pub(super) struct RecordSegments {
    /// Sequence number of the first event after the record.
    next: u64,
    /// Segments without an end in the record.
    open: HashSet<u64>,
}

/// Identifies an open segment. A session has at most one open text, and calls have ids.
#[derive(PartialEq, Eq, Hash)]
enum SegmentKey<'a> {
    Text,
    Reasoning,
    Arguments(&'a str),
    Output(&'a str),
}

impl RecordSegments {
    /// Creates the segments from all events of a record.
    pub(super) fn from_events(events: &[SessionEvent]) -> Self {
        let mut open = HashMap::new();
        for event in events {
            match &event.kind {
                EventKind::AssistantTextStart {} => drop(open.insert(SegmentKey::Text, event.seq)),
                EventKind::AssistantTextEnd { .. } => drop(open.remove(&SegmentKey::Text)),
                EventKind::ReasoningStart {} => drop(open.insert(SegmentKey::Reasoning, event.seq)),
                EventKind::ReasoningEnd { .. } => drop(open.remove(&SegmentKey::Reasoning)),
                EventKind::ToolCallArgumentsStart { call_id, .. } => {
                    open.insert(SegmentKey::Arguments(call_id), event.seq);
                }
                EventKind::ToolCallArgumentsEnd { call_id, .. } => {
                    open.remove(&SegmentKey::Arguments(call_id));
                }
                EventKind::ToolCallStart { call_id, .. } => {
                    open.insert(SegmentKey::Output(call_id), event.seq);
                }
                EventKind::ToolCallEnd { call_id, .. } => drop(open.remove(&SegmentKey::Output(call_id))),
                EventKind::SessionStart { .. } | _ => {}
            }
        }
        let next = events.last().map_or(0, |event| event.seq.saturating_add(1));
        Self { next, open: open.into_values().collect() }
    }

    /// Returns whether the record contains the end of the segment that starts with event `start`.
    pub(super) fn has_ended(&self, start: u64) -> bool {
        start < self.next && !self.open.contains(&start)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn segments_have_ended_unless_the_record_leaves_them_open() {
        let call = |call_id: &str| json!({"call_id": call_id, "tool_name": "shell", "arguments": {}, "output": "", "duration_ms": 1});
        let kinds: [(&str, Value); 9] = [
            ("ASSISTANT_TEXT_START", json!({})),
            ("REASONING_START", json!({})),
            ("ASSISTANT_TEXT_END", json!({"text": "One."})),
            ("TOOL_CALL_START", call("a")),
            ("TOOL_CALL_START", call("b")),
            ("TOOL_CALL_ARGUMENTS_START", call("a")),
            ("TOOL_CALL_END", call("a")),
            ("ASSISTANT_TEXT_START", json!({})),
            ("TOOL_CALL_ARGUMENTS_END", call("a")),
        ];
        let events = kinds.iter().enumerate().map(|(seq, (kind, data))| {
            let at = "2026-01-02T03:04:05.000Z";
            let event = json!({"seq": seq, "timestamp": at, "session_id": "s", "kind": kind, "data": data});
            serde_json::from_value(event).unwrap()
        });
        let segments = RecordSegments::from_events(&events.collect::<Vec<SessionEvent>>());
        let ended: Vec<u64> =
            [0, 1, 3, 4, 5, 7].into_iter().filter(|start| segments.has_ended(*start)).collect();
        assert_eq!(ended, [0, 3, 5]);
        assert!(!segments.has_ended(9), "it begins after the record");
        assert!(!RecordSegments::default().has_ended(0), "nothing was read");
    }
}
