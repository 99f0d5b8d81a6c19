//! Text of open segments. After a reconnect the server sends the text again, and the known part is cut off.

use std::hash::Hasher as _;

use pintle_agent::{EventKind, SessionEvent};
use siphasher::sip::SipHasher13;

/// Maximum number of open segments that are tracked. A session runs fewer concurrent calls.
const MAX_SEGMENTS: usize = 64;

/// Kind of a segment, with the call that it belongs to.
#[derive(Debug, PartialEq, Eq)]
enum SegmentKind {
    Text,
    Reasoning,
    Arguments(String),
    Output(String),
}

/// Text of an open segment, by its hash.
#[derive(Debug)]
struct OpenSegment {
    /// Number of its start event.
    seq: u64,
    kind: SegmentKind,
    /// Offset of its end, in bytes.
    end: u64,
    /// Hash of the text up to its end; `None` if its beginning was missed.
    hash: Option<SipHasher13>,
}

/// Open segments of a session.
#[derive(Debug, Default)]
pub(crate) struct OpenSegments {
    /// The oldest first.
    open: Vec<OpenSegment>,
}

impl OpenSegments {
    /// Adds a delta, and cuts off the text that was already received. Returns whether new text remains.
    pub(crate) fn add(&mut self, event: &mut SessionEvent) -> bool {
        let (seq, offset) = (event.seq, event.offset.unwrap_or_default());
        let Some((kind, delta)) = parts(&mut event.kind) else { return true };
        let index = match self.open.iter().position(|segment| segment.seq == seq && segment.kind == kind) {
            Some(index) => index,
            None => self.begin(seq, kind),
        };
        let Some(segment) = self.open.get_mut(index) else { return true };
        if offset == 0 && segment.end > 0 {
            let known = usize::try_from(segment.end).unwrap_or(usize::MAX);
            if let (Some(before), Some(rest), Some(hash)) =
                (delta.get(..known), delta.get(known..), &segment.hash)
                && hash_of(before).finish() == hash.finish()
            {
                *delta = rest.to_owned();
                event.offset = Some(segment.end);
                if delta.is_empty() {
                    return false;
                }
            } else {
                (segment.end, segment.hash) = (0, Some(SipHasher13::new()));
            }
        } else if offset != segment.end {
            (segment.end, segment.hash) = (offset, None);
        }
        segment.end += delta.len() as u64;
        if let Some(hash) = &mut segment.hash {
            hash.write(delta.as_bytes());
        }
        true
    }

    /// Removes the segment that an event ends.
    pub(crate) fn end(&mut self, kind: &EventKind) {
        let ended = match kind {
            EventKind::AssistantTextEnd { .. } => SegmentKind::Text,
            EventKind::ReasoningEnd { .. } => SegmentKind::Reasoning,
            EventKind::ToolCallArgumentsEnd { call_id, .. } => SegmentKind::Arguments(call_id.clone()),
            EventKind::ToolCallEnd { call_id, .. } => SegmentKind::Output(call_id.clone()),
            EventKind::SessionStart { .. } | _ => return,
        };
        self.open.retain(|segment| segment.kind != ended);
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    fn begin(&mut self, seq: u64, kind: SegmentKind) -> usize {
        if self.open.len() >= MAX_SEGMENTS {
            self.open.remove(0);
        }
        self.open.push(OpenSegment { seq, kind, end: 0, hash: Some(SipHasher13::new()) });
        self.open.len() - 1
    }
}

fn hash_of(text: &str) -> SipHasher13 {
    let mut hasher = SipHasher13::new();
    hasher.write(text.as_bytes());
    hasher
}

/// Returns the segment and the text of a delta.
fn parts(kind: &mut EventKind) -> Option<(SegmentKind, &mut String)> {
    match kind {
        EventKind::AssistantTextDelta { delta } => Some((SegmentKind::Text, delta)),
        EventKind::ReasoningDelta { delta } => Some((SegmentKind::Reasoning, delta)),
        EventKind::ToolCallArgumentsDelta { call_id, delta } => {
            Some((SegmentKind::Arguments(call_id.clone()), delta))
        }
        EventKind::ToolCallOutputDelta { call_id, delta } => {
            Some((SegmentKind::Output(call_id.clone()), delta))
        }
        EventKind::SessionStart { .. } | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn delta(seq: u64, offset: u64, text: &str) -> SessionEvent {
        let event = json!({
            "seq": seq, "offset": offset, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": "s",
            "kind": "ASSISTANT_TEXT_DELTA", "data": {"delta": text},
        });
        serde_json::from_value(event).unwrap()
    }

    fn added(segments: &mut OpenSegments, offset: u64, text: &str) -> Option<(u64, String)> {
        let mut event = delta(4, offset, text);
        if !segments.add(&mut event) {
            return None;
        }
        let EventKind::AssistantTextDelta { delta } = event.kind else { panic!("{event:?}") };
        Some((event.offset.unwrap(), delta))
    }

    #[test]
    fn text_that_is_sent_again_is_cut_off() {
        let segments = &mut OpenSegments::default();
        assert_eq!(added(segments, 0, "Grü"), Some((0, "Grü".to_owned())));
        assert_eq!(added(segments, 4, "ße"), Some((4, "ße".to_owned())));
        assert_eq!(added(segments, 0, "Grüße"), None, "nothing is new");
        assert_eq!(added(segments, 0, "Grüße an"), Some((7, " an".to_owned())));
        assert_eq!(added(segments, 10, "!"), Some((10, "!".to_owned())));
    }

    #[test]
    fn another_text_begins_again() {
        let segments = &mut OpenSegments::default();
        added(segments, 0, "one");
        assert_eq!(added(segments, 0, "two and more"), Some((0, "two and more".to_owned())));
        assert_eq!(added(segments, 0, "t"), Some((0, "t".to_owned())), "it is shorter");
        assert_eq!(added(segments, 9, "late"), Some((9, "late".to_owned())));
        assert_eq!(added(segments, 0, "t and lat"), Some((0, "t and lat".to_owned())), "a part was missed");
        segments.end(&EventKind::AssistantTextEnd { text: String::new(), interrupted: false });
        assert!(segments.open.is_empty());
    }
}
