//! What others see of a session: its events, its state, its history and what it asks.

use std::collections::HashMap;
use std::sync::Arc;

use super::Driver;
use crate::event::EventKind;
use crate::id::SegmentId;
use crate::timestamp::Timestamp;
use crate::turn::InputKind;

/// What has begun and not ended, and the number of the event that began each.
#[derive(Debug, Default)]
pub(super) struct Begun {
    segments: HashMap<SegmentId, u64>,
    /// By the model's id.
    calls: HashMap<String, u64>,
}

impl Begun {
    pub(super) fn segment(&self, segment: SegmentId) -> Option<u64> {
        self.segments.get(&segment).copied()
    }

    pub(super) fn call(&self, call_id: &str) -> Option<u64> {
        self.calls.get(call_id).copied()
    }
}

/// Where an input stands in a segment, if it is about one. Its event stands there as well.
#[derive(Clone, Copy, Debug)]
pub(super) enum Border {
    Start(SegmentId),
    End(SegmentId),
}

impl Border {
    pub(super) fn of(kind: &InputKind) -> Option<Self> {
        if let InputKind::SegmentOpened { segment, .. } = kind {
            Some(Self::Start(*segment))
        } else if let InputKind::SegmentClosed { segment, .. } = kind {
            Some(Self::End(*segment))
        } else {
            None
        }
    }
}

impl Driver {
    pub(super) fn emit(&mut self, at: Timestamp, event: EventKind, border: Option<Border>) {
        if let EventKind::ToolCallStart { call_id, .. } = &event {
            let call_id = call_id.clone();
            let start = self.log.append(at, event);
            self.begun.calls.insert(call_id, start);
            return;
        }
        let ended = if let EventKind::ToolCallEnd { call_id, .. } = &event {
            self.begun.calls.remove(call_id)
        } else if let Some(Border::End(segment)) = border {
            self.begun.segments.remove(&segment)
        } else {
            None
        };
        if let Some(start) = ended {
            self.log.append_end(at, start, event);
            return;
        }
        let start = self.log.append(at, event);
        if let Some(Border::Start(segment)) = border {
            self.begun.segments.insert(segment, start);
        }
    }

    pub(super) fn show(&self) {
        let state = self.machine.state();
        let turns = self.machine.history().len();
        let repairs = self.machine.repairs();
        let asking = &self.calls.asking;
        self.shared.send_if_modified(|shared| {
            if shared.repairs != repairs {
                shared.history.clear();
                shared.repairs = repairs;
            }
            let changed = shared.state != state
                || shared.history.len() != turns
                || shared.asking.len() != asking.len()
                || !shared.asking.iter().all(|request| asking.contains_key(&request.call_id));
            if changed {
                shared.state = state;
                shared
                    .history
                    .extend_from_slice(self.machine.history().get(shared.history.len()..).unwrap_or(&[]));
                shared.asking = asking.values().map(|asking| Arc::clone(&asking.request)).collect();
            }
            changed
        });
    }
}
