//! Sessions without a message. Lists show them only with `--all`, and they are deleted when their conversation ends.

use std::collections::BTreeSet;

use pintle_agent::protocol::InputKind;
use pintle_agent::{Record, SessionId, Timestamp};
use pintle_store::{SessionStore, StoreError, Summary, delete_tree, read_record};

use super::Sessions;
use crate::process_env::ProcessEnv;

/// Property of the sessions that a server created, to which a client may send a message at any time.
const SERVED: &str = "served";

/// Returns whether a record has a message: an input of a user, or the history of the session that it was forked from.
pub(super) fn has_message(record: &Record) -> bool {
    let is_message = |kind: &InputKind| {
        matches!(kind, InputKind::Submit { .. } | InputKind::Steer { .. } | InputKind::FollowUp { .. })
    };
    !record.header.start.history.is_empty()
        || record.entries.iter().any(|entry| is_message(&entry.input.kind))
}

/// Returns whether a session has no message, also none in its inbox. A session that cannot be read may have some.
pub async fn is_empty(store: &dyn SessionStore, summary: &Summary) -> bool {
    if !summary.title.is_empty() {
        return false;
    }
    let is_empty = match read_record(store, &summary.id).await {
        Ok(record) => !has_message(&record),
        Err(error) => matches!(error, StoreError::NotFound(_)),
    };
    is_empty && !store.has_posted(&summary.id).await.unwrap_or(true)
}

/// Deletes a session that has ended without a message, unless another process has it open or has posted to it. Errors
/// are ignored: lists leave out a session that could not be deleted.
pub async fn delete_if_empty(id: &SessionId, process_env: &ProcessEnv) {
    let Ok(sessions) = Sessions::open(process_env).await else { return };
    let store = sessions.store();
    let Ok(Some(summary)) = store.summary(id).await else { return };
    if is_empty(store, &summary).await {
        // Another process may have it.
        let _ = delete_tree(store, id).await;
    }
}

/// Returns the sessions without a message that killed processes left, and that were last used before a time.
pub(super) async fn find_abandoned_empty(
    store: &dyn SessionStore,
    all: &[Summary],
    spared: &BTreeSet<SessionId>,
    before: Timestamp,
) -> Vec<Summary> {
    let mut left = Vec::new();
    for summary in all {
        let is_old = summary.updated_at < before && !spared.contains(&summary.id);
        if is_old
            && !summary.properties.contains_key(SERVED)
            && matches!(store.holder(&summary.id).await, Ok(None))
            && is_empty(store, summary).await
        {
            left.push(summary.clone());
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use pintle_store::MemoryStore;
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

    #[tokio::test]
    async fn empty_sessions_of_killed_processes_are_found() {
        let store = MemoryStore::new();
        let session = |id: &str, millis| Summary::new(SessionId::new(id), Timestamp::from_millis(millis));
        let mut titled = session("titled", 0);
        titled.title = "Go".to_owned();
        let served = session("served", 0).with_property(SERVED, "true");
        let mut all = vec![session("old", 0), session("spared", 0), session("young", 2_000), titled, served];
        for summary in &all {
            drop(store.create(summary.clone()).await.unwrap());
        }
        let held = session("held", 0);
        let _writer = store.create(held.clone()).await.unwrap();
        all.push(held);
        let spared = BTreeSet::from([SessionId::new("spared")]);
        let found = find_abandoned_empty(&store, &all, &spared, Timestamp::from_millis(1_000)).await;
        let ids: Vec<&str> = found.iter().map(|summary| summary.id.as_str()).collect();
        assert_eq!(ids, ["old"]);
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
