//! Whose event it is: the names of subagents, as a person reads them.

use std::collections::HashMap;

use pintle_agent::{EventKind, SessionEvent, SessionId};

/// The subagents that have begun and not ended.
#[derive(Debug, Default)]
pub(super) struct SubagentNames {
    names: HashMap<SessionId, String>,
}

impl SubagentNames {
    /// The subagent whose event this is; `None` if it is one of the session itself. Every event has to pass here.
    pub(super) fn of(&mut self, event: &SessionEvent) -> Option<String> {
        let whose = (event.depth > 0).then(|| self.names.get(&event.session_id).cloned());
        // One whose beginning nobody has told.
        let whose = whose.map(|name| name.unwrap_or_else(|| event.session_id.as_str().to_owned()));
        if let EventKind::SubagentSpawned { agent_id, child, .. } = &event.kind {
            self.names.insert(child.clone(), below(whose.as_deref(), agent_id));
        } else if let EventKind::SubagentEnded { child, .. } = &event.kind {
            self.names.remove(child);
        }
        whose
    }
}

/// The name of a subagent among all: those of different parents may have the same.
pub(super) fn below(parent: Option<&str>, agent_id: &str) -> String {
    parent.map_or_else(|| agent_id.to_owned(), |parent| format!("{parent}/{agent_id}"))
}

/// Tells a call from those of other sessions, which may have the same id.
pub(crate) fn mark(subagent: Option<&SessionId>, call_id: &str) -> String {
    subagent.map_or_else(|| call_id.to_owned(), |session| of_session(session) + call_id)
}

/// How the marks of calls in the session of a subagent begin, and no id that a model gives.
fn of_session(session: &SessionId) -> String {
    format!("\u{1f}{}\u{1f}", session.as_str())
}

/// The mark of a call that this event is about.
pub(super) fn call_key_of(event: &SessionEvent, call_id: &str) -> String {
    mark((event.depth > 0).then_some(&event.session_id), call_id)
}

/// Whether a mark is that of a call in the session of this event.
pub(super) fn belongs_to_session(event: &SessionEvent, call: &str) -> bool {
    if event.depth > 0 {
        call.starts_with(&of_session(&event.session_id))
    } else {
        !call.starts_with('\u{1f}')
    }
}
