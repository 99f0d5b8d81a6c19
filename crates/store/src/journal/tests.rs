use super::*;
use crate::memory::MemoryStore;

fn message(text: &str) -> PostedInput {
    PostedInput::Message { text: text.to_owned() }
}

#[tokio::test]
async fn an_inbox_returns_each_input_once_and_in_order() {
    let store = MemoryStore::new();
    let id = SessionId::generate();
    let summary = Summary::new(id.clone(), SystemClock.now());
    let mut journal = StoredJournal::new(store.create(summary.clone()).await.unwrap(), summary);
    for (input_id, text) in [("b", "first"), ("a", "second"), ("b", "again")] {
        let expected = if text == "again" { Posting::Known } else { Posting::Accepted };
        assert_eq!(post_input(&store, &id, input_id, &message(text)).await.unwrap(), expected);
    }
    store.post(&id, "odd", "what is this?").await.unwrap();
    let mut inbox = journal.posted().unwrap();
    assert_eq!(inbox.next().await.unwrap(), Posted::new("b", message("first")));
    inbox.take("b").await.unwrap();
    assert_eq!(inbox.next().await.unwrap(), Posted::new("a", message("second")));
    // It waits for the next one, and what cannot be read stays.
    let third = message("third");
    let (posted, next) = tokio::join!(post_input(&store, &id, "c", &third), inbox.next());
    assert_eq!((posted.unwrap(), next.unwrap()), (Posting::Accepted, Posted::new("c", third)));
    // In another process, what was not taken is returned again.
    let mut inbox = journal.posted().unwrap();
    assert_eq!(inbox.next().await.unwrap().input_id, "a");
    let waiting = journal.writer.lock().await.inbox().await.unwrap();
    assert_eq!(waiting.iter().map(|input| input.input_id.as_str()).collect::<Vec<_>>(), ["a", "odd", "c"]);
}
