//! Forks of a session.

use pintle_agent::SessionId;

use super::{append, create, lines, summary, texts};
use crate::blob::MAX_INLINE_STRING;
use crate::{Position, SessionStore, SessionWriter, StoreError};

async fn fork(store: &dyn SessionStore, origin: &str, at: u64, id: &str) -> Box<dyn SessionWriter> {
    store.fork(&SessionId::new(origin), at, summary(id)).await.expect("it is forked")
}

async fn verify(store: &dyn SessionStore, id: &str, head: &Position) {
    let verified = store.verify(&SessionId::new(id), Some(head)).await.expect("it is verified");
    assert!(verified.is_intact(), "{id}: {verified:?}");
    assert_eq!(verified.matches_head, Some(true), "{id}: {verified:?}");
}

/// A fork starts with the lines of its origin, and both continue separately. This includes forks of forks.
pub async fn a_fork_begins_with_the_lines_of_its_origin(store: &dyn SessionStore) {
    let mut origin = create(store, "a").await;
    append(origin.as_mut(), &[r#"{"t":1}"#]).await;
    drop(origin);
    let mut origin = store.open(&SessionId::new("a")).await.expect("no process has it open").writer;
    let at = append(origin.as_mut(), &[r#"{"t":2}"#]).await;
    append(origin.as_mut(), &[r#"{"t":3}"#]).await;
    let mut first = fork(store, "a", at.seq, "b").await;
    assert_eq!(texts(store, "b").await, ["1", "2"]);
    verify(store, "b", &at).await;
    // The origin keeps its writer, and the fork has another one.
    append(origin.as_mut(), &[r#"{"t":4}"#]).await;
    let end = append(first.as_mut(), &[r#"{"t":5}"#]).await;
    assert!(first.epoch() > at.epoch, "an id of a line is used once");
    drop(first);
    let mut first = store.open(&SessionId::new("b")).await.expect("no process has it open").writer;
    append(first.as_mut(), &[r#"{"t":6}"#]).await;
    let mut second = fork(store, "b", end.seq, "c").await;
    append(second.as_mut(), &[r#"{"t":7}"#]).await;
    // Fork at a line that the session inherited from its origin's origin.
    let mut third = fork(store, "c", at.seq, "d").await;
    append(third.as_mut(), &[r#"{"t":8}"#]).await;
    for (id, expected, head) in [
        ("a", vec!["1", "2", "3", "4"], at),
        ("b", vec!["1", "2", "5", "6"], end),
        ("c", vec!["1", "2", "5", "7"], end),
        ("d", vec!["1", "2", "8"], at),
    ] {
        assert_eq!(texts(store, id).await, expected, "{id}");
        verify(store, id, &head).await;
        let all = lines(store, id, 1).await;
        for line in &all {
            let rest: Vec<_> = all.iter().filter(|other| other.seq >= line.seq).cloned().collect();
            assert_eq!(lines(store, id, line.seq).await, rest, "{id} from {}", line.seq);
        }
    }
}

/// A fork survives the deletion of its origin, and the origin the deletion of a fork.
pub async fn a_fork_survives_its_origin(store: &dyn SessionStore) {
    let large = "x".repeat(MAX_INLINE_STRING + 1);
    let mut origin = create(store, "a").await;
    let at = append(origin.as_mut(), &[&format!("{{\"t\":{large:?}}}")]).await;
    append(origin.as_mut(), &[r#"{"t":1}"#]).await;
    drop((fork(store, "a", at.seq, "b").await, fork(store, "a", at.seq, "c").await, origin));
    assert!(store.delete(&SessionId::new("c")).await.expect("no process has it open"));
    assert_eq!(texts(store, "a").await, [format!("{large:?}"), "1".to_owned()]);
    assert!(store.delete(&SessionId::new("a")).await.expect("no process has it open"));
    store.sweep(pintle_agent::Timestamp::from_millis(i64::MAX)).await.expect("it is swept");
    let mut fork = store.open(&SessionId::new("b")).await.expect("no process has it open").writer;
    append(fork.as_mut(), &[r#"{"t":2}"#]).await;
    assert_eq!(texts(store, "b").await, [format!("{large:?}"), "2".to_owned()]);
    verify(store, "b", &at).await;
}

/// A fork needs a line of its origin, and a new id.
pub async fn impossible_forks_are_typed(store: &dyn SessionStore) {
    let mut origin = create(store, "a").await;
    let head = append(origin.as_mut(), &[r#"{"t":1}"#]).await;
    let id = SessionId::new("a");
    for at in [0, head.seq + 1, u64::MAX] {
        let refused = store.fork(&id, at, summary("b")).await;
        assert!(
            matches!(&refused, Err(StoreError::NoSuchLine { session, seq }) if *session == id && *seq == at),
            "{at}: {refused:?}"
        );
    }
    let missing = store.fork(&SessionId::new("x"), 1, summary("b")).await;
    assert!(matches!(missing, Err(StoreError::NotFound(_))), "{missing:?}");
    drop(create(store, "y").await);
    let taken = store.fork(&id, head.seq, summary("y")).await;
    assert!(matches!(taken, Err(StoreError::Exists(_))), "{taken:?}");
    assert!(store.summary(&SessionId::new("b")).await.expect("it is looked up").is_none());
    drop(fork(store, "a", head.seq, "b").await);
}
