//! Records that are written while the session runs.

use std::io;

use super::*;

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
        let outcome = session.submit("go").await.unwrap();
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
