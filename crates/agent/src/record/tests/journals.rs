//! Records that are written while the session runs.

use std::io;
use std::time::Duration;

use super::*;
use crate::hooks::{HookSession, Hooks};
use crate::protocol::SessionEndReason;

/// Writer that keeps its text for the test and fails after a number of lines.
#[derive(Clone, Default)]
struct LimitedJournal {
    text: Arc<Mutex<Vec<u8>>>,
    max_lines: Option<usize>,
}

impl LimitedJournal {
    fn record(&self) -> Record {
        Record::read(self.text.lock().unwrap().as_slice()).unwrap()
    }
}

impl Write for LimitedJournal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = self.text.lock().unwrap();
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        if self.max_lines.is_some_and(|max| lines >= max) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn journal_equals_the_record_after_a_crash() {
    let harness = Harness::new(vec![calling(0, &["look", "hang"]), Message::assistant("done")]);
    let written = LimitedJournal::default();
    let session = harness.builder().journal(JsonLines::new(written.clone())).build().unwrap();
    let handle = session.handle();
    let mut run = session.submit("go");
    // The start is in the journal before the call has its effect.
    while !harness.effects().iter().any(|call| call == "t0c1_hang") {
        run.next().await.unwrap();
        tokio::task::yield_now().await;
    }
    let journal = written.record();
    assert_eq!(journal, handle.record().unwrap());
    let is_start = |kind: &InputKind| matches!(kind, InputKind::ToolStarted { .. });
    assert_eq!(journal.entries.iter().filter(|entry| is_start(&entry.input.kind)).count(), 2);
    drop((run, session));

    let mut session =
        harness.builder().journal(JsonLines::new(written.clone())).resume(journal).build().unwrap();
    assert_eq!(session.resumed().unwrap().await.unwrap().text, "done");
    assert_eq!(written.record(), session.record().unwrap(), "new entries were appended");
    assert_eq!(harness.effects(), ["t0c0_look", "t0c1_hang"]);
}

#[tokio::test]
async fn journal_without_record_keeps_nothing_in_memory() {
    let harness = Harness::new(script());
    let written = LimitedJournal::default();
    let session = harness.builder().record(false).journal(JsonLines::new(written.clone())).build().unwrap();
    session.submit("one").await.unwrap();
    assert!(session.record().is_err());
    let replay = written.record().replay().unwrap();
    assert_eq!(replay.history, session.history());
}

/// Wherever the journal fails, no tool runs whose start it lacks, and the session ends.
#[tokio::test]
async fn full_journal_ends_the_session() {
    let answers = [calling(0, &["note", "look"]), Message::assistant("done")];
    let all = {
        let harness = Harness::new(answers.to_vec());
        let session = harness.builder().build().unwrap();
        session.submit("go").await.unwrap();
        session.record().unwrap().entries.len()
    };
    for max_lines in 2..=all {
        let harness = Harness::new(answers.to_vec());
        let written = LimitedJournal { max_lines: Some(max_lines), ..LimitedJournal::default() };
        let session = harness.builder().journal(JsonLines::new(written.clone())).build().unwrap();
        let mut events = session.events();
        let outcome = session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap();
        let recorded = written.record();
        for call in harness.effects() {
            let recorded = recorded.replay().unwrap().events;
            let is_start = |event: &SessionEvent| matches!(&event.kind, EventKind::ToolCallStart { call_id, .. } if *call_id == call);
            assert!(recorded.iter().any(is_start), "{call} ran and is not in a journal of {max_lines} lines");
        }
        for result in session.history().iter().flat_map(|turn| turn.item.results()) {
            let ran = harness.effects().contains(&result.tool_call_id);
            assert!(ran || result.text().starts_with("Not run"), "{max_lines}: {}", result.text());
        }
        if outcome.status == OutcomeStatus::Completed {
            assert_eq!(max_lines, all, "a run does not notice only the loss of its last input");
            continue;
        }
        let error = outcome.error.unwrap().to_string();
        assert!(error.contains("the journal of the session cannot be written"), "{error}");
        while events.next().await.is_some() {}
        assert_eq!(session.state(), SessionState::Closed);
    }
    let full = LimitedJournal { max_lines: Some(0), ..LimitedJournal::default() };
    let error = Harness::new(script()).builder().journal(JsonLines::new(full)).build().unwrap_err();
    assert_eq!(error.to_string(), "the journal cannot be written");
}

/// Journal whose sync ends only once the hook of the session's end runs.
#[derive(Debug)]
struct MeetingJournal(Arc<tokio::sync::Barrier>);

#[async_trait]
impl Journal for MeetingJournal {
    fn begin(&mut self, _header: &RecordHeader) -> io::Result<()> {
        Ok(())
    }

    async fn append(&mut self, _entries: &[Arc<RecordEntry>], _barrier: Barrier) -> io::Result<()> {
        Ok(())
    }

    async fn sync(&mut self) -> io::Result<()> {
        self.0.wait().await;
        Ok(())
    }
}

#[derive(Debug)]
struct MeetingHooks(Arc<tokio::sync::Barrier>);

#[async_trait]
impl Hooks for MeetingHooks {
    async fn session_ended(&self, _session: &HookSession, _reason: SessionEndReason) {
        self.0.wait().await;
    }
}

/// A session that ends waits for the disk and for its work at the same time.
#[tokio::test]
async fn journal_is_synced_while_the_work_ends() {
    for suspends in [false, true] {
        let harness = Harness::new(vec![Message::assistant("done")]);
        let meeting = Arc::new(tokio::sync::Barrier::new(2));
        let hooks = MeetingHooks(Arc::clone(&meeting));
        let session = harness.builder().hooks(hooks).journal(MeetingJournal(meeting)).build().unwrap();
        session.submit("go").await.unwrap();
        let end = async {
            if suspends {
                session.suspend().await;
            } else {
                session.close().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), end).await.expect("each waits for the other");
    }
}

/// Journal that cannot be synced.
#[derive(Debug)]
struct FailingSync(Arc<Mutex<Vec<&'static str>>>);

#[async_trait]
impl Journal for FailingSync {
    fn begin(&mut self, _header: &RecordHeader) -> io::Result<()> {
        Ok(())
    }

    async fn append(&mut self, _entries: &[Arc<RecordEntry>], _barrier: Barrier) -> io::Result<()> {
        let calls = self.0.lock().unwrap();
        assert!(calls.is_empty(), "it has failed");
        Ok(())
    }

    async fn sync(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().push("sync");
        Err(io::ErrorKind::StorageFull.into())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().push("close");
        Ok(())
    }
}

#[tokio::test]
async fn journal_that_cannot_be_synced_is_not_closed() {
    let harness = Harness::new(vec![Message::assistant("done")]);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let session = harness.builder().journal(FailingSync(Arc::clone(&calls))).build().unwrap();
    let mut events = session.events();
    session.submit("go").await.unwrap();
    session.close().await;
    while events.next().await.is_some() {}
    assert_eq!(*calls.lock().unwrap(), ["sync"]);
}
