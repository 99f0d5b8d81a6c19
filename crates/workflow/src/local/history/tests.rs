//! Journals that are read while they are written.

use pintle_store::{FileStore, SessionStore};

use super::*;
use crate::LocalTaskHost;
use crate::contract::{AnchorPlan, TaskCheck};
use crate::task::TaskSignal;

fn contract() -> Contract {
    let anchor = AnchorPlan::None { because: "it is a test".to_owned() };
    Contract::new("Mend it.").with_check(TaskCheck::new("tests", "make test")).with_anchor(anchor)
}

#[tokio::test]
async fn a_reader_follows_a_task() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let id = SessionId::new("t");
    let mut host = LocalTaskHost::create(&store, id.clone(), contract()).await.unwrap();
    let mut reader = TaskReader::open(&store, &id).await.unwrap();
    let first = reader.next().await.unwrap();
    assert_eq!(first, Some(TaskLine::Contract(Box::new(contract()))));
    assert_eq!(reader.next().await.unwrap(), None);
    // Large values are kept apart, and come back.
    let words = "x".repeat(100_000);
    let signal = TaskSignal::Steer { candidate: Some(0), text: words.clone() };
    crate::post_signal(&store, &id, "s1", &signal, None).await.unwrap();
    host.settle().await.unwrap();
    let Some(TaskLine::Input(read)) = reader.next().await.unwrap() else { panic!("expected an input") };
    assert_eq!(read.posted.as_deref(), Some("s1"));
    assert_eq!(read.input, TaskInput::Signal(signal));
    let lines = pintle_store::read_objects(&store, &id).await.unwrap();
    assert!(lines[read.seq as usize - 1].contains(&words), "the number is that of the line");
    assert!(read.at > Timestamp::from_millis(0));
}

#[tokio::test]
async fn other_journals_are_no_tasks() {
    let store = pintle_store::MemoryStore::new();
    let id = SessionId::new("l");
    let summary = pintle_store::Summary::new(id.clone(), Timestamp::from_millis(0));
    let mut writer = store.create(summary).await.unwrap();
    let line = "{\"task\": 9, \"contract\": {}}".to_owned();
    writer.append(vec![line], pintle_store::Barrier::Synced).await.unwrap();
    let mut reader = TaskReader::open(&store, &id).await.unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(&error, TaskHostError::NotATask { .. }) && error.to_string().contains("version 9"),
        "{error}"
    );
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test changes what the store has written")]
async fn a_task_is_read_up_to_the_damage() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::open(directory.path()).unwrap();
    let id = SessionId::new("t");
    let mut host = LocalTaskHost::create(&store, id.clone(), contract()).await.unwrap();
    for words in ["first", "second", "third"] {
        let signal = TaskSignal::Steer { candidate: Some(0), text: words.to_owned() };
        crate::post_signal(&store, &id, words, &signal, None).await.unwrap();
        host.settle().await.unwrap();
    }
    drop(host);
    let posted = |read: &IntactTask| -> Vec<String> {
        read.inputs.iter().filter_map(|recorded| recorded.posted.clone()).collect()
    };
    let intact = read_intact_task(&store, &id).await.unwrap();
    assert!(intact.damage.is_none() && posted(&intact) == ["first", "second", "third"], "{intact:?}");

    let journal = directory.path().join("sessions/t/0000000001.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let changed = text.replacen("\"second\"", "\"Second\"", 1);
    assert_ne!(changed, text);
    std::fs::write(&journal, changed).unwrap();
    let intact = read_intact_task(&store, &id).await.unwrap();
    assert!(intact.damage.as_ref().is_some_and(StoreError::is_damage), "{intact:?}");
    assert_eq!(posted(&intact), ["first"]);
    assert_eq!(intact.task.contract().goal, "Mend it.");
    let report = crate::report::TaskReport::from_task(&intact.task).with_damage(intact.damage.as_ref());
    assert!(report.to_markdown().contains("The rest of the record cannot be read: "), "{report:?}");
    assert!(report.to_json().unwrap().contains("\"damage\": \"the journal of"), "{report:?}");
    // It does not continue.
    for error in [
        crate::read_task(&store, &id).await.unwrap_err(),
        LocalTaskHost::open(&store, &id).await.unwrap_err(),
    ] {
        assert!(matches!(&error, TaskHostError::Store(error) if error.is_damage()), "{error:?}");
    }
}
