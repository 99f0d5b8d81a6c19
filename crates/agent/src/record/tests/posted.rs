//! Inputs that others post to a session, while it runs and while nobody runs it (guarantees G15 and G20).

use std::collections::BTreeMap;
use std::io;

use tokio::sync::Notify;

use super::*;
use crate::protocol::{PostedInput, PostedItem};
use crate::record::{Barrier, Journal, PostedInputs, RecordEntry, RecordHeader};

/// Inbox and record that survive the processes of a test.
#[derive(Clone, Debug, Default)]
struct Kept {
    waiting: Arc<Mutex<BTreeMap<String, PostedInput>>>,
    text: Arc<Mutex<Vec<u8>>>,
    posted: Arc<Notify>,
    /// Whether nothing can be written any more.
    is_full: Arc<Mutex<bool>>,
}

#[derive(Debug)]
struct KeptJournal(Kept);

#[derive(Debug)]
struct KeptInbox {
    kept: Kept,
    returned: Vec<String>,
}

impl Kept {
    fn post(&self, input_id: &str, input: PostedInput) {
        self.waiting.lock().unwrap().insert(input_id.to_owned(), input);
        self.posted.notify_one();
    }

    fn message(&self, input_id: &str, text: &str) {
        self.post(input_id, PostedInput::Message { message: text.into(), by: None });
    }

    fn record(&self) -> Record {
        Record::read(self.text.lock().unwrap().as_slice()).unwrap()
    }

    /// Waits until everything was taken.
    async fn is_empty(&self) {
        while !self.waiting.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    fn write(&self, value: &impl serde::Serialize) -> io::Result<()> {
        if *self.is_full.lock().unwrap() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut text = self.text.lock().unwrap();
        serde_json::to_writer(&mut *text, value)?;
        text.push(b'\n');
        Ok(())
    }
}

#[async_trait]
impl Journal for KeptJournal {
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()> {
        self.0.write(header)
    }

    async fn append(&mut self, entries: &[Arc<RecordEntry>], barrier: Barrier) -> io::Result<()> {
        let is_posted = entries.iter().any(|entry| entry.posted.is_some());
        assert!(!is_posted || barrier == Barrier::Synced, "it is taken out of the inbox next");
        entries.iter().try_for_each(|entry| self.0.write(entry.as_ref()))
    }

    fn posted(&mut self) -> Option<Box<dyn PostedInputs>> {
        Some(Box::new(KeptInbox { kept: self.0.clone(), returned: Vec::new() }))
    }
}

#[async_trait]
impl PostedInputs for KeptInbox {
    async fn next(&mut self) -> io::Result<PostedItem> {
        loop {
            let waiting = self.kept.waiting.lock().unwrap().clone();
            let new = waiting.into_iter().find(|(input_id, _)| !self.returned.contains(input_id));
            if let Some((input_id, input)) = new {
                self.returned.push(input_id.clone());
                return Ok(PostedItem::new(input_id, input));
            }
            self.kept.posted.notified().await;
        }
    }

    async fn take(&mut self, input_id: &str) -> io::Result<()> {
        self.kept.waiting.lock().unwrap().remove(input_id);
        Ok(())
    }
}

/// Texts of the user in the history: inputs and steering.
fn texts(session: &Session) -> Vec<String> {
    let history = session.history();
    let by_user = history.iter().filter(|turn| matches!(turn.kind, TurnKind::User | TurnKind::Steering));
    by_user.map(|turn| turn.item.text()).collect()
}

async fn idle(session: &Session, runs: usize) {
    let mut events = session.events();
    for _ in 0..runs {
        while !matches!(events.next().await.unwrap().kind, EventKind::ProcessingEnd { .. }) {}
    }
}

#[tokio::test]
async fn a_message_starts_a_run_or_follows_the_present_one() {
    let answers = [Message::assistant("one"), calling(1, &["look"]), Message::assistant("three")];
    let harness = Harness::new(answers.to_vec());
    let kept = Kept::default();
    kept.message("1", "first");
    kept.message("2", "second");
    let session = harness.builder().journal(KeptJournal(kept.clone())).build().unwrap();
    kept.is_empty().await;
    idle(&session, 1).await;
    assert_eq!(texts(&session), ["first", "second"]);
    // A message that the host submits has a run of its own.
    drop(session);
    let record = kept.record();
    let ids: Vec<&str> = record.entries.iter().filter_map(|entry| entry.posted.as_deref()).collect();
    assert_eq!(ids, ["1", "2"]);
}

#[tokio::test]
async fn what_is_said_starts_a_run_or_steers_it() {
    let harness = Harness::new(vec![calling(0, &["run"]), Message::assistant("done")]);
    let kept = Kept::default();
    let say = |text: &str| PostedInput::Say { message: text.into(), by: None };
    let session = harness.undecided().journal(KeptJournal(kept.clone())).build().unwrap();
    let mut events = session.events();
    kept.post("1", say("first"));
    while !matches!(events.next().await.unwrap().kind, EventKind::ApprovalRequested { .. }) {}
    kept.post("2", say("second"));
    kept.is_empty().await;
    let call = &session.handle().approvals()[0];
    session.handle().decide(&call.call_id, Decision::Approve).unwrap();
    while !matches!(events.next().await.unwrap().kind, EventKind::ProcessingEnd { .. }) {}
    assert_eq!(texts(&session), ["first", "second"]);
    drop(session);
    let record = kept.record();
    let posted = record.entries.iter().filter(|entry| entry.posted.is_some());
    let is_steering: Vec<bool> =
        posted.map(|entry| matches!(entry.input.kind, InputKind::Steer { .. })).collect();
    assert_eq!(is_steering, [false, true]);
}

#[tokio::test]
async fn the_conversation_is_rewound_and_ended_by_post() {
    let harness = Harness::new(vec![Message::assistant("one"), Message::assistant("two")]);
    let kept = Kept::default();
    kept.message("1", "first");
    let session = harness.builder().journal(KeptJournal(kept.clone())).build().unwrap();
    kept.is_empty().await;
    idle(&session, 1).await;
    assert_eq!(session.history().len(), 2);
    let mut events = session.events();
    kept.post("2", PostedInput::Rewind { turns: 7, by: None });
    kept.post("3", PostedInput::Rewind { turns: 0, by: None });
    kept.is_empty().await;
    assert_eq!(session.history().len(), 0);
    let refused = async {
        loop {
            if let EventKind::Warning { message } = events.next().await.unwrap().kind {
                return message;
            }
        }
    };
    insta::assert_snapshot!(refused.await, @"the session was not rewound: the history has 2 entries");
    kept.post("4", PostedInput::Abort { by: None });
    while events.next().await.is_some() {}
    assert_eq!(session.state(), SessionState::Closed);
    drop(session);
    let record = kept.record();
    let ids: Vec<&str> = record.entries.iter().filter_map(|entry| entry.posted.as_deref()).collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn an_input_on_record_is_not_taken_twice() {
    let answers = ["one", "two", "three"].map(Message::assistant);
    let harness = Harness::new(answers.to_vec());
    let kept = Kept::default();
    kept.message("1", "first");
    let session = harness.builder().journal(KeptJournal(kept.clone())).build().unwrap();
    kept.is_empty().await;
    idle(&session, 1).await;
    drop(session);
    // The process died between the record and the inbox.
    kept.message("1", "first");
    kept.message("2", "second");
    let journal = KeptJournal(kept.clone());
    let session = harness.builder().journal(journal).resume(kept.record()).build().unwrap();
    kept.is_empty().await;
    idle(&session, 2).await;
    assert_eq!(texts(&session), ["first", "second"]);
    let outcome = session.submit("third").await;
    assert!(outcome.is_ok(), "the ids of runs do not collide");
}

#[tokio::test]
async fn an_input_that_cannot_be_recorded_stays_in_the_inbox() {
    let harness = Harness::new(vec![Message::assistant("one")]);
    let kept = Kept::default();
    let session = harness.builder().journal(KeptJournal(kept.clone())).build().unwrap();
    let mut events = session.events();
    while !matches!(events.next().await.unwrap().kind, EventKind::SessionStart { .. }) {}
    *kept.is_full.lock().unwrap() = true;
    kept.message("1", "first");
    while events.next().await.is_some() {}
    drop(session);
    assert_eq!(kept.waiting.lock().unwrap().len(), 1);
    assert!(harness.requests().is_empty());
    *kept.is_full.lock().unwrap() = false;
    let journal = KeptJournal(kept.clone());
    let session = harness.builder().journal(journal).resume(kept.record()).build().unwrap();
    kept.is_empty().await;
    idle(&session, 1).await;
    assert_eq!(texts(&session), ["first"]);
}

fn decision(pending: &crate::record::PendingApproval, decision: Decision) -> PostedInput {
    let (call_id, fingerprint) = (pending.call_id.clone(), pending.fingerprint);
    PostedInput::Decision { call_id, fingerprint, decision, by: None }
}

/// Decides twice while nobody runs the session: the first decision releases the call, the second is told.
#[tokio::test]
async fn decisions_while_nobody_runs_the_session_apply_once() {
    for (first, effects) in [(Decision::Approve, 1), (Decision::Deny { reason: None }, 0)] {
        let harness = Harness::new(vec![calling(0, &["run"]), Message::assistant("done")]);
        let kept = Kept::default();
        let session = harness.undecided().journal(KeptJournal(kept.clone())).build().unwrap();
        let mut run = session.submit("go");
        while !matches!(run.next().await.unwrap().kind, EventKind::ApprovalRequested { .. }) {}
        drop((run, session));

        // The first process was told to interrupt when its run was dropped, or not: only what is on record counts.
        let record = kept.record();
        let cut = record.entries.iter().position(|entry| matches!(entry.input.kind, InputKind::Interrupt));
        let record = record.before(cut.unwrap_or(record.entries.len()));
        let [pending] = &record.replay().unwrap().pending_approvals()[..] else { unreachable!() };
        let mut changed = pending.clone();
        changed.fingerprint = Fingerprint::from_bytes(b"other arguments");
        kept.post("0", decision(&changed, Decision::Approve));
        kept.post("1", decision(pending, first.clone()));
        kept.post("2", decision(pending, Decision::Approve));
        let journal = KeptJournal(kept.clone());
        let mut session = harness.undecided().journal(journal).resume(record).build().unwrap();
        let outcome = session.resumed().unwrap().await.unwrap();
        assert_eq!((outcome.text.as_str(), harness.effects().len()), ("done", effects), "{first:?}");
        kept.is_empty().await;
        let events = lifecycle(session).await;
        let late: Vec<&str> = events
            .iter()
            .filter_map(|event| {
                let EventKind::ApprovalLate { reason, .. } = &event.kind else { return None };
                Some(reason.as_str())
            })
            .collect();
        assert_eq!(
            late,
            [
                "the call has other arguments now",
                "no call of this id waits for a decision: it was decided on before, or has ended"
            ]
        );
    }
}

#[tokio::test]
async fn a_second_decision_in_the_process_is_told() {
    let harness = Harness::new(vec![calling(0, &["run"]), Message::assistant("done")]);
    let session = harness.undecided().build().unwrap();
    let handle = session.handle();
    let mut run = session.submit("go");
    while handle.approvals().is_empty() {
        run.next().await.unwrap();
    }
    let request = handle.approvals()[0].clone();
    let decide = |decision| handle.decide_exactly(&request.call_id, request.fingerprint, decision);
    decide(Decision::Deny { reason: None }).unwrap();
    decide(Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().text, "done");
    let events = lifecycle(session).await;
    let is_late =
        |event: &&SessionEvent| matches!(event.kind, EventKind::ApprovalLate { approved: true, .. });
    assert_eq!((events.iter().filter(is_late).count(), harness.effects().len()), (1, 0));
}
