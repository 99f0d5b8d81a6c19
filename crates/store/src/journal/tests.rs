use super::*;
use crate::memory::MemoryStore;

fn message(text: &str) -> PostedInput {
    PostedInput::Message { message: text.into(), by: None }
}

#[tokio::test]
async fn an_inbox_returns_each_input_once_and_in_order() {
    let store = MemoryStore::new();
    let id = SessionId::generate();
    let summary = Summary::new(id.clone(), SystemClock.now());
    let mut journal = StoredJournal::new(store.create(summary.clone()).await.unwrap(), summary);
    for (input_id, text) in [("b", "first"), ("a", "second"), ("b", "again")] {
        let expected = if text == "again" { Posting::Known } else { Posting::Accepted };
        assert_eq!(post_input(&store, &id, input_id, message(text)).await.unwrap(), expected);
    }
    store.post(&id, "odd", "what is this?".to_owned()).await.unwrap();
    let mut inbox = journal.posted().unwrap();
    assert_eq!(inbox.next().await.unwrap(), PostedItem::new("b", message("first")));
    inbox.take("b").await.unwrap();
    assert_eq!(inbox.next().await.unwrap(), PostedItem::new("a", message("second")));
    // It waits for the next one, and what cannot be read stays.
    let third = message("third");
    let (posted, next) = tokio::join!(post_input(&store, &id, "c", third.clone()), inbox.next());
    assert_eq!((posted.unwrap(), next.unwrap()), (Posting::Accepted, PostedItem::new("c", third)));
    // In another process, what was not taken is returned again.
    let mut inbox = journal.posted().unwrap();
    assert_eq!(inbox.next().await.unwrap().input_id, "a");
    let waiting = journal.writer.lock().await.inbox().await.unwrap();
    assert_eq!(waiting.iter().map(|input| input.input_id.as_str()).collect::<Vec<_>>(), ["a", "odd", "c"]);
}

/// Lines of a session that was given a task, and has not answered yet.
const TASKS: [&str; 4] = [
    r#"{"version":4,"made_by":"0.1.0","session_id":"a","start":{"limits":{}}}"#,
    r#"{"at":"2026-11-23T14:00:00.000Z","input":"opened","provider":"p","model":"m","working_directory":"/w"}"#,
    r#"{"at":"2026-11-23T14:00:01.000Z","input":"submit","run":0,"text":"one","followed":{"begun":1}}"#,
    r#"{"at":"2026-11-23T14:00:02.000Z","input":"steer","text":"two"}"#,
];

fn named(id: &str) -> Summary {
    Summary::new(SessionId::new(id), SystemClock.now())
}

/// Begins the record of a session with this start.
async fn begin(journal: &mut StoredJournal, id: &str, start: &Start) -> RecordHeader {
    let header = serde_json::json!({"version": 4, "made_by": "0.1.0", "session_id": id, "start": start});
    let header = RecordHeader::parse(&header.to_string()).unwrap();
    journal.begin(&header).unwrap();
    journal.append(&[], Barrier::Synced).await.unwrap();
    header
}

async fn header_lines(store: &MemoryStore, id: &SessionId) -> Vec<String> {
    let mut reader = store.read(id, 1).await.unwrap();
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await.unwrap() {
        lines.push(line.object);
    }
    lines.retain(|line| line.contains("\"session_id\""));
    lines
}

#[tokio::test]
async fn a_fork_refers_to_the_history_of_its_origin() {
    let store = MemoryStore::new();
    let (a, b, c) = (SessionId::new("a"), SessionId::new("b"), SessionId::new("c"));
    let mut writer = store.create(named("a")).await.unwrap();
    writer.append(TASKS.map(str::to_owned).to_vec(), Barrier::Synced).await.unwrap();
    let StoredFork { start, mut journal } = fork(&store, &a, None, named("b")).await.unwrap();
    assert_eq!(start.history.len(), 1, "{start:?}");
    // Until it has a record, it is not that of its origin.
    assert!(matches!(read_record(&store, &b).await, Err(StoreError::NotFound(_))));
    let header = begin(&mut journal, "b", &start).await;
    assert!(!header_lines(&store, &b).await[1].contains("one"));
    assert_eq!(read_record(&store, &b).await.unwrap().header, header);
    // A fork of the fork, whose history is that of the first session.
    let again = fork(&store, &b, Some(1), named("c")).await.unwrap();
    assert_eq!(again.start.history, start.history);
    let mut journal = again.journal;
    let header = begin(&mut journal, "c", &again.start).await;
    drop(writer);
    store.delete(&a).await.unwrap();
    assert_eq!(read_record(&store, &c).await.unwrap().header, header);
    let refused = fork(&store, &c, Some(2), named("d")).await.unwrap_err();
    assert_eq!(refused.to_string(), "session `c` has 1 entry, so it cannot be forked at 2");
    assert!(store.summary(&SessionId::new("d")).await.unwrap().is_none());
}

/// An application may begin a fork with another history than the one it has been given.
#[tokio::test]
async fn a_fork_with_another_history_keeps_it() {
    let store = MemoryStore::new();
    let mut writer = store.create(named("a")).await.unwrap();
    writer.append(TASKS.map(str::to_owned).to_vec(), Barrier::Synced).await.unwrap();
    let StoredFork { mut start, mut journal } =
        fork(&store, &SessionId::new("a"), None, named("b")).await.unwrap();
    let twice = start.history[0].clone();
    start.history.push(twice);
    let header = begin(&mut journal, "b", &start).await;
    assert_eq!(read_record(&store, &SessionId::new("b")).await.unwrap().header, header);
}
