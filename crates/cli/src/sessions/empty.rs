//! Sessions without a message. Lists show them only with `--all`, and they are deleted when their conversation ends.

use pintle_agent::protocol::InputKind;
use pintle_agent::{Record, SessionId};
use pintle_store::{SessionStore, StoreError, Summary, delete_tree, read_record};

use super::Sessions;
use crate::process_env::ProcessEnv;

/// Returns whether a record has a message: an input of a user, or the history of the session that it was forked from.
pub(super) fn has_message(record: &Record) -> bool {
    let is_message = |kind: &InputKind| {
        matches!(kind, InputKind::Submit { .. } | InputKind::Steer { .. } | InputKind::FollowUp { .. })
    };
    !record.header.start.history.is_empty()
        || record.entries.iter().any(|entry| is_message(&entry.input.kind))
}

/// Returns whether a session has no message, also none in its inbox. A session that cannot be read may have some.
pub(super) async fn is_empty(store: &dyn SessionStore, summary: &Summary) -> bool {
    if !summary.title.is_empty() {
        return false;
    }
    let is_empty = match read_record(store, &summary.id).await {
        Ok(record) => !has_message(&record),
        Err(error) => matches!(error, StoreError::NotFound(_)),
    };
    is_empty && !store.has_posted(&summary.id).await.unwrap_or(true)
}

/// Deletes a session that has ended without a message, unless another process has it or has posted to it. Errors are
/// ignored: lists leave out a session that could not be deleted.
pub(crate) async fn delete_if_empty(id: &SessionId, process_env: &ProcessEnv) {
    let Ok(sessions) = Sessions::open(process_env).await else { return };
    let store = sessions.store();
    let Ok(Some(summary)) = store.summary(id).await else { return };
    if is_empty(store, &summary).await {
        // Another process may have it.
        let _ = delete_tree(store, id).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns a record with these inputs.
    fn record(inputs: &[Value]) -> Record {
        let header = json!({
            "version": Record::VERSION, "made_by": "x", "session_id": "s", "start": {"limits": {}},
        });
        let mut text = format!("{header}\n");
        for input in inputs {
            text.push_str(&format!("{input}\n"));
        }
        Record::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_messages_fill_a_session() {
        let interrupt = json!({"at": "2026-11-23T10:00:00.000Z", "input": "interrupt"});
        let submit = json!({"at": "2026-11-23T10:00:00.000Z", "input": "submit", "run": 0, "text": "Go"});
        assert!(!has_message(&record(&[])));
        assert!(!has_message(&record(std::slice::from_ref(&interrupt))));
        assert!(has_message(&record(&[interrupt, submit])));
    }
}
