//! Open segments of the event log, and the only way by which streamed text reaches it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Driver;
use crate::clock::SteadyClock;
use crate::event_log::EventLog;
use crate::protocol::{EventKind, InputKind, SegmentId, Timestamp};

/// Appends text to one open segment of the log: text, reasoning and arguments of the model as well as output of a tool.
#[derive(Clone, Debug)]
pub(super) struct SegmentWriter {
    log: Arc<EventLog>,
    clock: Arc<SteadyClock>,
    /// Sequence number of the start event.
    start: u64,
}

impl SegmentWriter {
    /// Appends text. Does nothing once the segment has ended.
    pub(super) fn write(&self, text: &str) {
        if !text.is_empty() {
            self.log.delta(self.clock.now(), self.start, text);
        }
    }
}

/// Segments whose start event is in the log and whose end event is not.
#[derive(Debug, Default)]
pub(super) struct OpenSegments {
    segments: HashMap<SegmentId, SegmentWriter>,
    /// Running calls, by the model's id.
    calls: HashMap<String, SegmentWriter>,
}

impl OpenSegments {
    pub(super) fn of_segment(&self, segment: SegmentId) -> Option<&SegmentWriter> {
        self.segments.get(&segment)
    }

    pub(super) fn of_call(&self, call_id: &str) -> Option<SegmentWriter> {
        self.calls.get(call_id).cloned()
    }
}

/// Start or end of a segment of a model response, as an input and the event that follows from it report it.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentBoundary {
    Start(SegmentId),
    End(SegmentId),
}

impl SegmentBoundary {
    pub(super) fn from_input(kind: &InputKind) -> Option<Self> {
        if let InputKind::SegmentOpened { segment, .. } | InputKind::ArgumentsOpened { segment, .. } = kind {
            Some(Self::Start(*segment))
        } else if let InputKind::SegmentClosed { segment, .. } | InputKind::ArgumentsClosed { segment, .. } =
            kind
        {
            Some(Self::End(*segment))
        } else {
            None
        }
    }
}

impl Driver {
    /// Appends an event to the log and keeps track of the segment that it starts or ends.
    pub(super) fn emit(&mut self, at: Timestamp, event: EventKind, boundary: Option<SegmentBoundary>) {
        if let EventKind::ToolCallStart { call_id, .. } = &event {
            let call_id = call_id.clone();
            let writer = self.start_segment(at, event);
            self.segments.calls.insert(call_id, writer);
            return;
        }
        let ended = if let EventKind::ToolCallEnd { call_id, .. } = &event {
            self.segments.calls.remove(call_id)
        } else if let Some(SegmentBoundary::End(segment)) = boundary {
            self.segments.segments.remove(&segment)
        } else {
            None
        };
        if let Some(writer) = ended {
            self.log.append_end(at, writer.start, event);
        } else if let Some(SegmentBoundary::Start(segment)) = boundary {
            let writer = self.start_segment(at, event);
            self.segments.segments.insert(segment, writer);
        } else {
            self.log.append(at, event);
        }
    }

    fn start_segment(&self, at: Timestamp, event: EventKind) -> SegmentWriter {
        let start = self.log.append(at, event);
        SegmentWriter { log: Arc::clone(&self.log), clock: Arc::clone(&self.clock), start }
    }
}
