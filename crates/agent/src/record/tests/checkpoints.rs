//! Checkpoints around calls, and rewinding of a session.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use pintle_env::ExecutionEnvironment;

use super::*;
use crate::checkpoints::Checkpoints;
use crate::protocol::{Checkpoint, CheckpointReason};

/// Checkpoints of a workspace that differs each time, or that never differs.
#[derive(Clone, Debug, Default)]
struct Counted {
    taken: Arc<AtomicU64>,
    is_constant: bool,
    fails: bool,
}

#[async_trait]
impl Checkpoints for Counted {
    async fn take(&self, env: &dyn ExecutionEnvironment) -> io::Result<Checkpoint> {
        assert_eq!(env.working_directory().to_str(), Some("/project"));
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        if self.fails {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(Checkpoint::new(format!("c{}", if self.is_constant { 0 } else { number }), 1))
    }
}

async fn run(checkpoints: Counted, answers: &[Message]) -> (Harness, Record) {
    let harness = Harness::new(answers.to_vec());
    let session = harness.builder().checkpoints(checkpoints).build().unwrap();
    assert_eq!(session.submit("go").await.unwrap().text, "done");
    (harness, session.record().unwrap())
}

/// Returns the order of checkpoints, starts and ends of calls.
fn order(record: &Record) -> Vec<String> {
    let events = record.replay().unwrap().events;
    let told = events.iter().filter_map(|event| {
        if let EventKind::CheckpointTaken { reason, .. } = &event.kind {
            let is_before = *reason == CheckpointReason::BeforeCall;
            return Some(if is_before { "before" } else { "after" }.to_owned());
        }
        let EventKind::ToolCallEnd { tool_name, .. } = &event.kind else { return None };
        Some(tool_name.clone())
    });
    told.collect()
}

#[tokio::test]
async fn calls_that_change_files_have_a_checkpoint_before_and_after() {
    let answers =
        [calling(0, &["look"]), calling(1, &["note"]), calling(2, &["run"]), Message::assistant("done")];
    let (harness, record) = run(Counted::default(), &answers).await;
    assert_eq!(order(&record), ["look", "before", "after", "note", "before", "after", "run"]);
    assert_eq!(harness.effects().len(), 3);
    // What did not change is not recorded again.
    let (_, record) = run(Counted { is_constant: true, ..Counted::default() }, &answers).await;
    assert_eq!(order(&record), ["look", "before", "note", "run"]);
}

#[tokio::test]
async fn a_checkpoint_that_fails_stops_no_call() {
    let checkpoints = Counted { fails: true, ..Counted::default() };
    let (harness, record) =
        run(checkpoints.clone(), &[calling(0, &["note"]), Message::assistant("done")]).await;
    assert_eq!((harness.effects().len(), checkpoints.taken.load(Ordering::Relaxed)), (1, 2));
    assert_eq!(order(&record), ["note"]);
}

#[tokio::test]
async fn a_session_is_rewound_and_resumed() {
    let harness =
        Harness::new(vec![calling(0, &["note"]), Message::assistant("first"), Message::assistant("x")]);
    let session = harness.builder().build().unwrap();
    let handle = session.handle();
    assert_eq!(session.submit("one").await.unwrap().text, "first");
    let refused = handle.rewind(9).await.unwrap_err();
    assert_eq!(refused.to_string(), "the session was not rewound: the history has 4 entries");
    handle.rewind(0).await.unwrap();
    assert!(session.history().is_empty());
    let record = session.record().unwrap();
    drop(session);
    let session = harness.builder().resume(record).build().unwrap();
    assert_eq!(session.submit("again").await.unwrap().text, "first");
    assert_eq!(session.history().first().unwrap().item.text(), "again");
    assert_eq!(session.record().unwrap().replay().unwrap().history, session.history());
}
