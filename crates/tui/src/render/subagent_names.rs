//! Names of subagents, and keys of their calls.

use std::collections::HashMap;

use pintle_agent::{EventKind, SessionEvent, SessionId};

/// Names of the running subagents by session.
#[derive(Debug, Default)]
pub(super) struct SubagentNames {
    names: HashMap<SessionId, String>,
}

impl SubagentNames {
    /// Returns the name of the subagent that emitted the event, or `None` for the session itself. Must see every event.
    pub(super) fn name_of(&mut self, event: &SessionEvent) -> Option<String> {
        let name = (event.depth > 0).then(|| self.names.get(&event.session_id).cloned());
        // Without a spawn event, fall back to the session id.
        let name = name.map(|name| name.unwrap_or_else(|| event.session_id.as_str().to_owned()));
        if let EventKind::SubagentSpawned { agent_id, child, .. } = &event.kind {
            self.names.insert(child.clone(), qualified_name(name.as_deref(), agent_id));
        } else if let EventKind::SubagentEnded { child, .. } = &event.kind {
            self.names.remove(child);
        }
        name
    }
}

/// Returns the path of a subagent, since different parents may use the same id.
pub(super) fn qualified_name(parent: Option<&str>, agent_id: &str) -> String {
    parent.map_or_else(|| agent_id.to_owned(), |parent| format!("{parent}/{agent_id}"))
}

/// Returns a key that identifies a call across sessions, which may use the same call id.
pub(crate) fn call_key(subagent: Option<&SessionId>, call_id: &str) -> String {
    subagent.map_or_else(|| call_id.to_owned(), |session| key_prefix(session) + call_id)
}

/// Returns the prefix of a subagent's call keys. Call ids from models never start with a unit separator.
fn key_prefix(session: &SessionId) -> String {
    format!("\u{1f}{}\u{1f}", session.as_str())
}

/// Returns the key of a call of the event's session.
pub(super) fn call_key_of(event: &SessionEvent, call_id: &str) -> String {
    call_key((event.depth > 0).then_some(&event.session_id), call_id)
}

/// Returns whether a call key belongs to the event's session.
pub(super) fn belongs_to_session(event: &SessionEvent, key: &str) -> bool {
    if event.depth > 0 { key.starts_with(&key_prefix(&event.session_id)) } else { !key.starts_with('\u{1f}') }
}
