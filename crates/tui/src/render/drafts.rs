//! Tool calls of the response that is being streamed.

use pintle_agent::{EventKind, SessionEvent};

use super::draft::Draft;

/// Maximum number of calls tracked per response. Further calls are shown only when they run.
const MAX_CALLS: usize = 16;

/// Drafts of the calls of one response.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    /// Drafts in the order in which their calls started.
    calls: Vec<Draft>,
}

impl Drafts {
    /// Processes an event of the session.
    pub(super) fn event(&mut self, event: &SessionEvent) {
        match &event.kind {
            EventKind::RequestPrepared { .. }
            // The response is lost, and with it the calls before this segment.
            | EventKind::ToolCallArgumentsEnd { interrupted: true, .. }
            | EventKind::AssistantTextEnd { interrupted: true, .. }
            | EventKind::ReasoningEnd { interrupted: true, .. } => self.calls.clear(),
            EventKind::ToolCallArgumentsStart { call_id, tool_name, .. } => {
                self.calls.retain(|draft| draft.call_id != *call_id);
                self.start(call_id, tool_name, event.seq);
            }
            EventKind::ToolCallArgumentsDelta { call_id, delta } => {
                self.update(call_id, |draft| draft.push(delta));
            }
            EventKind::ToolCallArgumentsEnd { call_id, .. } => self.update(call_id, Draft::finish),
            EventKind::ToolCallStart { call_id, tool_name, arguments, .. } => {
                // Arguments that arrived in one piece were not streamed.
                if !self.calls.iter().any(|draft| draft.call_id == *call_id) {
                    self.start(call_id, tool_name, event.seq);
                }
                self.update(call_id, |draft| draft.complete(arguments));
            }
            EventKind::Gap { .. } => {
                for draft in self.calls.iter_mut().filter(|draft| draft.seq == event.seq) {
                    draft.miss();
                }
            }
            // All other kinds, and those unknown to this version.
            EventKind::SessionStart { .. } | _ => {}
        }
    }

    /// Returns the drafts in the order in which their calls started.
    pub(super) fn calls(&self) -> &[Draft] {
        &self.calls
    }

    fn start(&mut self, call_id: &str, tool_name: &str, seq: u64) {
        if self.calls.len() < MAX_CALLS {
            self.calls.push(Draft::new(call_id, tool_name, seq));
        }
    }

    fn update(&mut self, call_id: &str, update: impl FnOnce(&mut Draft)) {
        if let Some(draft) = self.calls.iter_mut().find(|draft| draft.call_id == call_id) {
            update(draft);
        }
    }
}
