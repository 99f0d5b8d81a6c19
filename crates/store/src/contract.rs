//! Conformance suite of stores. Every implementation of [`SessionStore`] has to pass its tests, called questions.
//!
//! ```text
//! mod contract {
//!     pintle_store::store_contract!(async || (MyStore::connect().await, ()));
//! }
//! ```
//!
//! Each question is a function that panics if the answer is wrong. It gets its own empty store. A store that needs a
//! service which may be missing writes `optional: async || MyStore::find().await.map(|store| (store, ()))` instead;
//! without a store, the tests pass without checking anything. A store that also keeps [`Ledgers`](crate::Ledgers) adds
//! `store_contract!(ledgers, …)` with the same argument.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a wrong answer ends the test")]

mod forks;
mod ledgers;

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pintle_agent::{Barrier, SessionId, Timestamp};

pub use self::forks::{
    a_fork_begins_with_the_lines_of_its_origin, a_fork_survives_its_origin, impossible_forks_are_typed,
};
pub use self::ledgers::{a_ledger_is_replaced_by_who_read_it_last, no_change_of_a_ledger_is_lost};
use crate::blob::{MAX_INLINE_STRING, move_from_blobs};
use crate::{
    Filter, Hash, Line, LineId, Page, Position, Posting, Reader, SessionStore, SessionWriter, StoreError,
    Summary,
};

/// Longest wait for an operation that a store finishes within a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Generates a test per question from an async closure that returns an empty store and a guard kept until the test ends.
#[macro_export]
macro_rules! store_contract {
    (optional: $make:expr) => {
        $crate::store_contract!(@tests $make;
            lines_come_back_in_order,
            odd_values_come_back,
            large_values_are_blobs,
            a_second_writer_is_refused,
            a_dropped_writer_gives_the_session_back,
            the_chain_goes_on_over_writers,
            the_fence_follows_the_writer,
            missing_sessions_are_typed,
            a_session_is_created_once,
            sessions_are_isolated,
            lists_are_ordered_filtered_and_paged,
            subagents_are_listed_under_their_parent,
            deleting_takes_nothing_from_others,
            the_inbox_keeps_order_and_ids,
            the_inbox_tells_its_writer,
            a_journal_proves_its_head,
            reading_starts_at_any_line,
            a_reader_follows_the_writer,
            a_reader_follows_takeovers,
            a_waiting_reader_sees_what_is_written,
            cancelled_calls_of_a_reader_lose_nothing,
            a_reader_continues_after_a_line,
            a_reader_ahead_of_a_takeover_is_reset,
            a_reader_of_a_deleted_session_ends,
            a_fork_begins_with_the_lines_of_its_origin,
            a_fork_survives_its_origin,
            impossible_forks_are_typed,
        );
    };
    ($make:expr) => {
        $crate::store_contract!(optional: async || Some(($make)().await));
    };
    (ledgers, optional: $make:expr) => {
        $crate::store_contract!(@of_ledgers $make;
            a_ledger_is_replaced_by_who_read_it_last,
            no_change_of_a_ledger_is_lost,
        );
    };
    (ledgers, $make:expr) => {
        $crate::store_contract!(ledgers, optional: async || Some(($make)().await));
    };
    (@of_ledgers $make:expr; $($question:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $question() {
                let Some((store, _kept)) = ($make)().await else { return };
                $crate::contract::$question(std::sync::Arc::new(store)).await;
            }
        )+
    };
    (@tests $make:expr; $($question:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $question() {
                let Some((store, _kept)) = ($make)().await else { return };
                $crate::contract::$question(&store).await;
            }
        )+
    };
}

fn summary(id: &str) -> Summary {
    Summary::new(SessionId::new(id), Timestamp::from_millis(1_000))
}

async fn create(store: &dyn SessionStore, id: &str) -> Box<dyn SessionWriter> {
    store.create(summary(id)).await.expect("the session is created")
}

async fn append(writer: &mut dyn SessionWriter, objects: &[&str]) -> Position {
    let objects = objects.iter().map(|object| (*object).to_owned()).collect();
    writer.append(objects, Barrier::Synced).await.expect("the lines are written")
}

/// Returns the lines from `from` on that the tests wrote, without the lines of the store.
async fn lines(store: &dyn SessionStore, id: &str, from: u64) -> Vec<Line> {
    let mut reader = store.read(&SessionId::new(id), from).await.expect("the journal is read");
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await.expect("a line is read") {
        lines.push(line);
    }
    lines.retain(|line| line.object.starts_with("{\"t\":"));
    lines
}

async fn texts(store: &dyn SessionStore, id: &str) -> Vec<String> {
    let blobs = store.blobs(&SessionId::new(id));
    let mut texts = Vec::new();
    for line in lines(store, id, 1).await {
        let object = move_from_blobs(line.object, blobs.as_ref()).await.expect("its values are there");
        let value: serde_json::Value = serde_json::from_str(&object).expect("it is JSON");
        texts.push(value["t"].to_string());
    }
    texts
}

/// Lines come back as they were written, with rising numbers.
pub async fn lines_come_back_in_order(store: &dyn SessionStore) {
    let mut writer = create(store, "a").await;
    let first = append(writer.as_mut(), &[r#"{"t":1}"#, r#"{"t":2}"#]).await;
    let second = append(writer.as_mut(), &[r#"{"t":3}"#]).await;
    assert_eq!(second.seq, first.seq + 1);
    assert_eq!(writer.head(), second);
    let found = lines(store, "a", 1).await;
    assert_eq!(found.iter().map(|line| line.seq).collect::<Vec<_>>(), [first.seq - 1, first.seq, second.seq]);
    assert!(found.iter().all(|line| line.epoch == writer.epoch()));
    assert_eq!(texts(store, "a").await, ["1", "2", "3"]);
}

/// Values that JSON implementations tend to change come back unchanged.
pub async fn odd_values_come_back(store: &dyn SessionStore) {
    let odd = [
        "null",
        "1.0",
        "1e300",
        "18446744073709551615",
        "-9223372036854775808",
        r#""\u0000\u001f\"\\""#,
        r#""ü\u2028🦀""#,
        "[]",
        r#"{"":{}}"#,
    ];
    let mut writer = create(store, "a").await;
    for value in odd {
        append(writer.as_mut(), &[&format!("{{\"t\":{value}}}")]).await;
    }
    for (line, value) in lines(store, "a", 1).await.iter().zip(odd) {
        assert!(line.object.starts_with(&format!("{{\"t\":{value},\"seq\":")), "{value} in {}", line.object);
    }
}

/// A large value is not in its line, and comes back.
pub async fn large_values_are_blobs(store: &dyn SessionStore) {
    let long = "x".repeat(MAX_INLINE_STRING + 1);
    let mut writer = create(store, "a").await;
    append(writer.as_mut(), &[&format!("{{\"t\":\"{long}\"}}"), r#"{"t":2}"#]).await;
    let found = lines(store, "a", 1).await;
    assert!(found.iter().all(|line| line.object.len() < 1_000), "{found:?}");
    assert_eq!(texts(store, "a").await, [format!("\"{long}\""), "2".to_owned()]);
    let blobs = store.blobs(&SessionId::new("a"));
    let hash = Hash::of(long.as_bytes());
    assert_eq!(blobs.get(&hash).await.expect("it is read"), Some(long.into_bytes()));
    assert_eq!(blobs.get(&Hash::of(b"never kept")).await.expect("it is looked up"), None);
}

/// A session has one writer, and the error for a second one names the holder.
pub async fn a_second_writer_is_refused(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    let error = store.open(&id).await.expect_err("it is in use");
    assert!(
        matches!(&error, StoreError::InUse { holder, .. } if holder.pid == std::process::id()),
        "{error:?}"
    );
    let holder = store.holder(&id).await.expect("it is looked up");
    assert_eq!(holder.map(|holder| holder.pid), Some(std::process::id()));
    let error = store.delete(&id).await.expect_err("it is in use");
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    append(writer.as_mut(), &[r#"{"t":1}"#]).await;
    drop(writer);
    assert_eq!(store.holder(&id).await.expect("it is looked up"), None);
}

/// The next writer has a higher number.
pub async fn a_dropped_writer_gives_the_session_back(store: &dyn SessionStore) {
    let first = create(store, "a").await;
    let epoch = first.epoch();
    drop(first);
    let second = store.open(&SessionId::new("a")).await.expect("no process has it open").writer;
    assert!(second.epoch() > epoch);
    let mut second = second;
    second.close().await.expect("it is closed");
    drop(second);
    let third = store.open(&SessionId::new("a")).await.expect("no process has it open").writer;
    assert!(third.epoch() > epoch + 1);
}

/// The lines of all writers form one journal.
pub async fn the_chain_goes_on_over_writers(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    append(writer.as_mut(), &[r#"{"t":1}"#]).await;
    drop(writer);
    for number in 2..5 {
        let mut opened = store.open(&id).await.expect("no process has it open");
        assert_eq!(opened.torn, None);
        append(opened.writer.as_mut(), &[&format!("{{\"t\":{number}}}")]).await;
        opened.writer.close().await.expect("it is closed");
    }
    assert_eq!(texts(store, "a").await, ["1", "2", "3", "4"]);
    assert!(store.verify(&id, None).await.expect("it is verified").is_intact());
}

/// The fence fails once the writer is gone, and succeeds while it writes.
pub async fn the_fence_follows_the_writer(store: &dyn SessionStore) {
    let mut writer = create(store, "a").await;
    let fence = writer.fence();
    {
        let mut appends = std::pin::pin!(async {
            for _ in 0..20 {
                append(writer.as_mut(), &[r#"{"t":1}"#]).await;
            }
        });
        std::future::poll_fn(|cx| {
            let polled = appends.as_mut().poll(cx);
            fence.check().expect("the writer has the session");
            polled
        })
        .await;
    }
    drop(writer);
    fence.check().expect_err("the writer is gone");
}

/// Missing sessions have a separate error, or are `None`.
pub async fn missing_sessions_are_typed(store: &dyn SessionStore) {
    let id = SessionId::new("never created");
    assert!(matches!(store.open(&id).await, Err(StoreError::NotFound(missing)) if missing == id));
    assert!(matches!(store.read(&id, 1).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.verify(&id, None).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.post(&id, "i", "{}".to_owned()).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.summary(&id).await.expect("it is looked up"), None);
    assert!(!store.delete(&id).await.expect("there is nothing to delete"));
    assert_eq!(store.list(&Filter::default(), &Page::default()).await.expect("it is listed"), []);
}

/// An id belongs to one session, whether it is open or not.
pub async fn a_session_is_created_once(store: &dyn SessionStore) {
    let writer = create(store, "a").await;
    drop(writer);
    assert!(matches!(store.create(summary("a")).await, Err(StoreError::Exists(_))));
    assert!(matches!(store.create(summary("")).await, Err(StoreError::InvalidId(_))));
    for id in ["..", "a/b", "%", "A", "ü"] {
        let mut writer = create(store, id).await;
        append(writer.as_mut(), &[r#"{"t":1}"#]).await;
        assert_eq!(texts(store, id).await, ["1"], "{id}");
    }
}

/// Sessions with similar ids share nothing.
pub async fn sessions_are_isolated(store: &dyn SessionStore) {
    let mut one = create(store, "a").await;
    let mut other = create(store, "a.1").await;
    append(one.as_mut(), &[r#"{"t":1}"#]).await;
    append(other.as_mut(), &[r#"{"t":2}"#]).await;
    store.post(&SessionId::new("a"), "i", "{}".to_owned()).await.expect("it is posted");
    assert_eq!((texts(store, "a").await, texts(store, "a.1").await), (vec!["1".into()], vec!["2".into()]));
    assert_eq!(other.inbox().await.expect("it is read"), []);
}

/// The most recently changed session is the first; pages do not overlap.
pub async fn lists_are_ordered_filtered_and_paged(store: &dyn SessionStore) {
    for (id, changed, place, model) in
        [("a", 5, "/x", "m"), ("b", 9, "/x", "n"), ("c", 7, "/y", "m"), ("d", 7, "/x", "m")]
    {
        let mut summary = summary(id).with_property("place", place).with_property("model", model);
        summary.title = format!("session {id}");
        let mut writer = store.create(summary.clone()).await.expect("it is created");
        summary.updated_at = Timestamp::from_millis(changed);
        writer.set_summary(summary).await.expect("it is set");
    }
    let list = async |filter: Filter, page: Page| {
        let found = store.list(&filter, &page).await.expect("it is listed");
        found.iter().map(|summary| summary.id.to_string()).collect::<Vec<_>>().join("")
    };
    let all = Filter::default();
    assert_eq!(list(all.clone(), Page::default()).await, "bcda");
    assert_eq!(list(all.clone(), Page::of(0)).await, "");
    let place = Filter::default().with_property("place", "/x");
    assert_eq!(list(place.clone(), Page::default()).await, "bda");
    assert_eq!(list(place.with_property("model", "m"), Page::default()).await, "da");
    assert_eq!(list(Filter::default().with_property("none", "x"), Page::default()).await, "");
    let first = store.list(&all, &Page::of(2)).await.expect("it is listed");
    assert_eq!(list(all.clone(), Page::of(2).after(&first[1])).await, "da");
    assert_eq!(first[0].title, "session b");
    assert_eq!(store.summary(&SessionId::new("b")).await.expect("it is read").as_ref(), Some(&first[0]));
}

/// A list without a parent contains no subagents.
pub async fn subagents_are_listed_under_their_parent(store: &dyn SessionStore) {
    create(store, "a").await;
    let child = summary("b").with_parent(SessionId::new("a"));
    store.create(child).await.expect("it is created");
    let ids = async |filter: Filter| {
        let found = store.list(&filter, &Page::default()).await.expect("it is listed");
        found.iter().map(|summary| summary.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(Filter::default()).await, ["a"]);
    assert_eq!(ids(Filter::default().with_parent(SessionId::new("a"))).await, ["b"]);
}

/// Deleting removes a session completely and frees its id; a value that another session has stays.
pub async fn deleting_takes_nothing_from_others(store: &dyn SessionStore) {
    let object = format!("{{\"t\":\"{}\"}}", "x".repeat(MAX_INLINE_STRING + 1));
    for id in ["a", "b"] {
        let mut writer = create(store, id).await;
        append(writer.as_mut(), &[&object]).await;
    }
    let before = texts(store, "b").await;
    assert!(store.delete(&SessionId::new("a")).await.expect("it is deleted"));
    assert!(!store.delete(&SessionId::new("a")).await.expect("it is gone"));
    assert!(matches!(store.open(&SessionId::new("a")).await, Err(StoreError::NotFound(_))));
    assert_eq!(texts(store, "b").await, before);
    assert!(store.verify(&SessionId::new("b"), None).await.expect("it is verified").is_intact());
    let mut writer = create(store, "a").await;
    assert_eq!(writer.inbox().await.expect("it is read"), []);
    assert_eq!(texts(store, "a").await, [""; 0]);
}

/// Posting an input twice adds it once, even after it was taken.
pub async fn the_inbox_keeps_order_and_ids(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    assert!(!store.has_posted(&id).await.expect("it is looked up"));
    let ids = ["z", "a", "m/../", "", "ü"];
    for (index, input_id) in ids.iter().enumerate() {
        let input = format!("{{\"n\":{index}}}");
        assert_eq!(store.post(&id, input_id, input).await.expect("it is posted"), Posting::Accepted);
    }
    assert_eq!(store.post(&id, "z", "{\"other\":1}".to_owned()).await.expect("it is known"), Posting::Known);
    let found = writer.inbox().await.expect("it is read");
    assert_eq!(found.iter().map(|posted| posted.input_id.as_str()).collect::<Vec<_>>(), ids);
    assert_eq!(found[0].input, "{\"n\":0}");
    writer.take("a").await.expect("it is taken");
    writer.take("a").await.expect("it was taken");
    drop(writer);
    let mut writer = store.open(&id).await.expect("no process has it open").writer;
    assert_eq!(store.post(&id, "a", "{}".to_owned()).await.expect("it is known"), Posting::Known);
    assert_eq!(writer.inbox().await.expect("it is read").len(), ids.len() - 1);
    for input_id in ids {
        assert!(store.has_posted(&id).await.expect("it is looked up"), "before {input_id:?}");
        writer.take(input_id).await.expect("it is taken");
    }
    assert!(!store.has_posted(&id).await.expect("it is looked up"));
    assert!(matches!(store.has_posted(&SessionId::new("none")).await, Err(StoreError::NotFound(_))));
}

/// Posting wakes the writer, even if it does not wait at that moment. The signal may also wake it early, but comes to
/// rest.
pub async fn the_inbox_tells_its_writer(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    let mut signal = writer.inbox_signal();
    for number in 1..=3 {
        store.post(&id, &number.to_string(), "{}".to_owned()).await.expect("it is posted");
        while writer.inbox().await.expect("it is read").len() < number {
            let waited = tokio::time::timeout(PATIENCE, signal.wait()).await;
            waited.expect("it looks at least after a while");
        }
        let _ = tokio::time::timeout(Duration::from_millis(1), signal.wait()).await;
    }
}

/// A head that was kept elsewhere is a line of the journal, unless the journal was changed.
pub async fn a_journal_proves_its_head(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    let first = append(writer.as_mut(), &[r#"{"t":1}"#]).await;
    let second = append(writer.as_mut(), &[r#"{"t":2}"#]).await;
    let last = writer.close().await.expect("it is closed");
    let verify = async |head: Option<&Position>| store.verify(&id, head).await.expect("it is verified");
    let found = verify(None).await;
    assert!(found.is_intact() && found.matches_head.is_none());
    assert_eq!(found.head, last);
    assert!(found.synced >= second.seq, "{found:?}");
    for head in [first, second, last] {
        assert_eq!(verify(Some(&head)).await.matches_head, Some(true));
    }
    let mut other = create(store, "b").await;
    append(other.as_mut(), &[r#"{"t":1}"#]).await;
    let foreign = Position { seq: first.seq, ..other.head() };
    let later = Position { seq: last.seq + 1, ..last };
    for head in [foreign, later] {
        let found = verify(Some(&head)).await;
        assert!(!found.is_intact(), "{head:?}: {found:?}");
    }
}

/// Any line may be the first one that is read.
pub async fn reading_starts_at_any_line(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut last = create(store, "a").await;
    for number in 0..4 {
        append(last.as_mut(), &[&format!("{{\"t\":{number}}}"), r#"{"t":0}"#]).await;
        drop(last);
        last = store.open(&id).await.expect("no process has it open").writer;
    }
    let all = lines(store, "a", 1).await;
    for from in 0..=last.head().seq + 2 {
        let expected: Vec<Line> = all.iter().filter(|line| line.seq >= from).cloned().collect();
        assert_eq!(lines(store, "a", from).await, expected, "from {from}");
    }
}

/// A reader that has reached the end returns the lines that are written later.
pub async fn a_reader_follows_the_writer(store: &dyn SessionStore) {
    let mut writer = create(store, "a").await;
    let mut reader = store.read(&SessionId::new("a"), writer.head().seq + 1).await.expect("it is read");
    assert_eq!(reader.next().await.expect("it is read"), None);
    for number in 0..3 {
        let head = append(writer.as_mut(), &[&format!("{{\"t\":{number}}}")]).await;
        let line = reader.next().await.expect("it is read").expect("it was written");
        assert_eq!(line.seq, head.seq);
        assert_eq!(reader.next().await.expect("it is read"), None);
    }
}

/// Returns the lines that are present now, without the lines of the store.
async fn present(reader: &mut dyn Reader) -> Vec<Line> {
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await.expect("a line is read") {
        lines.push(line);
    }
    lines.retain(|line| line.object.starts_with("{\"t\":"));
    lines
}

/// Waits for the next line that the tests wrote.
async fn awaited(reader: &mut dyn Reader) -> Line {
    let line = async {
        loop {
            match reader.next().await.expect("a line is read") {
                Some(line) if line.object.starts_with("{\"t\":") => return line,
                Some(_) => {}
                None => reader.wait().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, line).await.expect("the line is found")
}

/// A reader that has reached the end continues with the lines of later writers.
pub async fn a_reader_follows_takeovers(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut reader = None;
    let mut writer = create(store, "a").await;
    let mut followed = Vec::new();
    for number in 0..4 {
        append(writer.as_mut(), &[&format!("{{\"t\":{number}}}")]).await;
        let reader = match &mut reader {
            Some(reader) => reader,
            None => reader.insert(store.read(&id, 1).await.expect("it is read")),
        };
        // Every other takeover finds the reader behind the end of the segment.
        if number % 2 == 0 {
            followed.extend(present(reader.as_mut()).await);
        }
        writer.close().await.expect("it is closed");
        drop(writer);
        writer = store.open(&id).await.expect("no process has it open").writer;
    }
    followed.extend(present(reader.expect("it was created").as_mut()).await);
    assert_eq!(followed, lines(store, "a", 1).await);
    assert_eq!(followed.len(), 4);
}

/// A waiting reader wakes for each line, also for lines of later writers.
pub async fn a_waiting_reader_sees_what_is_written(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    let mut reader = store.read(&id, 1).await.expect("it is read");
    present(reader.as_mut()).await;
    for number in 0..3 {
        let object = format!("{{\"t\":{number}}}");
        let objects = [object.as_str()];
        let (line, head) = tokio::join!(awaited(reader.as_mut()), append(writer.as_mut(), &objects));
        assert_eq!((line.seq, line.epoch), (head.seq, writer.epoch()));
        drop(writer);
        writer = store.open(&id).await.expect("no process has it open").writer;
    }
}

/// A reader can be used in a `select!`: a cancelled call does not lose, repeat or hide a line, even one written later.
pub async fn cancelled_calls_of_a_reader_lose_nothing(store: &dyn SessionStore) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut writer = create(store, "a").await;
    let mut reader = store.read(&SessionId::new("a"), 1).await.expect("it is read");
    let mut found = Vec::new();
    for number in 0..20 {
        append(writer.as_mut(), &[&format!("{{\"t\":{number}}}")]).await;
        if let Poll::Ready(next) = pin!(reader.next()).poll(&mut cx) {
            found.extend(next.expect("a line is read"));
        }
        if number % 3 == 0 {
            let _ = pin!(reader.wait()).poll(&mut cx);
        }
        if number % 5 == 0 {
            tokio::task::yield_now().await;
        }
    }
    found.retain(|line| line.object.starts_with("{\"t\":"));
    found.extend(present(reader.as_mut()).await);
    assert_eq!(found, lines(store, "a", 1).await);
    let _ = pin!(reader.wait()).poll(&mut cx);
    let head = append(writer.as_mut(), &[r#"{"t":20}"#]).await;
    assert_eq!(awaited(reader.as_mut()).await.seq, head.seq);
}

/// A reader continues after the last line of an earlier reader, even if another writer has the session.
pub async fn a_reader_continues_after_a_line(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    append(writer.as_mut(), &[r#"{"t":1}"#, r#"{"t":2}"#]).await;
    drop(writer);
    let mut writer = store.open(&id).await.expect("no process has it open").writer;
    append(writer.as_mut(), &[r#"{"t":3}"#, r#"{"t":4}"#]).await;
    let all = lines(store, "a", 1).await;
    for (index, line) in all.iter().enumerate() {
        let mut reader = store.read_after(&id, line.id()).await.expect("it is read");
        assert_eq!(present(reader.as_mut()).await, all[index + 1..], "after {line:?}");
    }
    assert!(matches!(
        store.read_after(&SessionId::new("b"), LineId { epoch: 1, seq: 1 }).await,
        Err(StoreError::NotFound(_))
    ));
}

/// A reader that is ahead of a takeover, as if its last three lines were lost in a crash, is reset to the first lost line.
pub async fn a_reader_ahead_of_a_takeover_is_reset(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let mut writer = create(store, "a").await;
    let head = append(writer.as_mut(), &[r#"{"t":1}"#]).await;
    let ahead = LineId { epoch: head.epoch, seq: head.seq + 3 };
    let mut reader = store.read_after(&id, ahead).await.expect("it is read");
    assert_eq!(reader.next().await.expect("the writer may not have written them yet"), None);
    drop(writer);
    let mut writer = store.open(&id).await.expect("no process has it open").writer;
    append(writer.as_mut(), &[r#"{"t":2}"#, r#"{"t":3}"#, r#"{"t":4}"#, r#"{"t":5}"#]).await;
    let mut late = store.read_after(&id, ahead).await.expect("it is read");
    for reader in [&mut reader, &mut late] {
        let reset = reader.next().await.expect_err("its lines are void");
        assert!(
            matches!(&reset, StoreError::Reset { session, seq } if *session == id && *seq == head.seq + 1),
            "{reset:?}"
        );
        assert_eq!(present(reader.as_mut()).await, lines(store, "a", head.seq + 1).await);
    }
}

/// Deleting a session ends its readers.
pub async fn a_reader_of_a_deleted_session_ends(store: &dyn SessionStore) {
    let id = SessionId::new("a");
    let writer = create(store, "a").await;
    drop(writer);
    let mut reader = store.read(&id, 1).await.expect("it is read");
    present(reader.as_mut()).await;
    assert!(store.delete(&id).await.expect("no process has it open"));
    let gone = async {
        loop {
            match reader.next().await {
                Ok(None) => reader.wait().await,
                Ok(Some(line)) => assert!(!line.object.starts_with("{\"t\":"), "no writer wrote {line:?}"),
                Err(error) => return error,
            }
        }
    };
    let error = tokio::time::timeout(PATIENCE, gone).await.expect("it is noticed");
    assert!(matches!(&error, StoreError::NotFound(missing) if *missing == id), "{error:?}");
}
