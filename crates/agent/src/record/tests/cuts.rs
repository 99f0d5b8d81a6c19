//! Processes that die at any moment, and resumption from the record.

use std::collections::BTreeSet;
use std::time::Duration;

use pintle_env::LocalEnvironment;
use proptest::prelude::*;

use super::*;
use crate::Timestamp;
use crate::protocol::{Limits, Timer, TurnKind, TurnLimits};
use crate::turn::Machine;

/// Resumes from this record, finishes the unfinished run, and returns the new record.
async fn resume_in(harness: &Harness, record: Record) -> (Record, Session) {
    let mut session = harness.builder().resume(record).build().unwrap();
    if let Some(run) = session.resumed() {
        let outcome = tokio::time::timeout(Duration::from_secs(20), run).await.unwrap().unwrap();
        assert_eq!((outcome.status, outcome.error), (OutcomeStatus::Completed, None));
    }
    (session.record().unwrap(), session)
}

/// Returns the calls of this record that started and did not end, and those that ended.
fn started_and_ended(record: &Record) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut started, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in record.replay().unwrap().events {
        if let EventKind::ToolCallStart { call_id, .. } = event.kind {
            started.insert(call_id);
        } else if let EventKind::ToolCallEnd { call_id, .. } = event.kind {
            started.remove(&call_id);
            ended.insert(call_id);
        }
    }
    (started, ended)
}

/// Checks that every call has one result in order, that events are in order, and that the record replays.
fn judge(record: &Record) {
    let replay = record.replay().unwrap();
    well_formed(&replay.history);
    let mut open = BTreeSet::new();
    let mut started = BTreeSet::new();
    let mut segments = 0_i64;
    for (seq, event) in replay.events.iter().enumerate() {
        assert_eq!(event.seq, seq as u64);
        if let EventKind::ToolCallStart { call_id, .. } = &event.kind {
            assert!(open.insert(call_id) && started.insert(call_id), "{call_id} started twice");
        } else if let EventKind::ToolCallEnd { call_id, .. } = &event.kind {
            assert!(open.remove(call_id), "{call_id} ended without a start");
        } else if matches!(event.kind, EventKind::AssistantTextStart {}) {
            segments += 1;
        } else if matches!(event.kind, EventKind::AssistantTextEnd { .. }) {
            segments -= 1;
        }
    }
    assert_eq!((open.len(), segments), (0, 0), "everything that began has ended");
}

/// Runs a session to its end and returns its record, with the harness that it changed.
async fn run_to_end(answers: &[Message]) -> (Record, Harness) {
    let harness = Harness::new(answers.to_vec());
    let session = harness.builder().build().unwrap();
    session.handle().steer("also this").await.unwrap();
    let outcome = session.submit("one").await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    (session.record().unwrap(), harness)
}

/// Cuts the record and resumes, once for each cut. Returns the last record.
async fn resume_at_cuts(answers: &[Message], cuts: &[usize]) -> Record {
    let (mut record, harness) = run_to_end(answers).await;
    let repeatable = |call: &str| call.ends_with("look");
    for cut in cuts {
        record = record.before(1 + cut % record.entries.len());
        let (started, ended) = started_and_ended(&record);
        harness.effects.lock().unwrap().clear();
        let (next, session) = resume_in(&harness, record).await;
        for call in harness.effects() {
            assert!(!ended.contains(&call), "{call} had ended and was repeated");
            if started.contains(&call) {
                assert!(repeatable(&call), "{call} had started and was repeated");
            }
        }
        let mut once = harness.effects();
        once.sort();
        let all = once.len();
        once.dedup();
        assert_eq!(once.len(), all, "nothing runs twice in one process");
        drop(session);
        record = next;
    }
    judge(&record);
    let submitted = record.entries.iter().any(|entry| matches!(entry.input.kind, InputKind::Submit { .. }));
    let events = record.replay().unwrap().events;
    let steered =
        events.iter().filter(|event| matches!(event.kind, EventKind::SteeringInjected { .. })).count();
    assert_eq!(steered, usize::from(submitted), "queued messages are delivered once");
    record
}

#[tokio::test]
async fn record_cut_at_any_input_resumes_without_repeats() {
    let answers = &script()[..4];
    let (whole, _) = run_to_end(answers).await;
    let expected: Vec<(TurnKind, usize)> =
        whole.replay().unwrap().history.iter().map(|turn| (turn.kind, turn.item.results().count())).collect();
    let submitted =
        whole.entries.iter().position(|entry| matches!(entry.input.kind, InputKind::Submit { .. })).unwrap();
    for cut in submitted..whole.entries.len() {
        let record = resume_at_cuts(answers, &[cut]).await;
        let shape: Vec<(TurnKind, usize)> = record
            .replay()
            .unwrap()
            .history
            .iter()
            .map(|turn| (turn.kind, turn.item.results().count()))
            .collect();
        assert_eq!(shape, expected, "cut after input {cut}");
    }
}

fn round() -> impl Strategy<Value = Vec<&'static str>> {
    let tool = prop_oneof![3 => Just("note"), 3 => Just("look"), 2 => Just("run"), 1 => Just("fail"), 1 => Just("nothing")];
    proptest::collection::vec(tool, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn session_survives_repeated_process_deaths(
        rounds in proptest::collection::vec(round(), 0..4),
        cuts in proptest::collection::vec(any::<usize>(), 1..5),
    ) {
        let mut answers: Vec<Message> =
            rounds.iter().enumerate().map(|(turn, tools)| calling(turn, tools)).collect();
        answers.push(Message::assistant("done"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(resume_at_cuts(&answers, &cuts));
    }
}

/// Returns the events of a resumed session, from the resumption on.
async fn since_resumption(session: Session) -> Vec<SessionEvent> {
    let events = lifecycle(session).await;
    let resumed = events.iter().position(|event| matches!(event.kind, EventKind::SessionResumed { .. }));
    events[resumed.unwrap()..].to_vec()
}

/// Cuts a record after the first input of this kind.
fn after(record: &Record, kind: fn(&InputKind) -> bool) -> Record {
    let at = record.entries.iter().position(|entry| kind(&entry.input.kind)).unwrap();
    record.before(at + 1)
}

#[tokio::test]
async fn interrupted_call_is_answered_or_repeated() {
    let cases: [(&str, &[&str], &[&str], &str); 2] = [
        (
            "note",
            &["t0c0_note"],
            &[],
            "Interrupted: the program that ran this call ended in the middle of it.",
        ),
        ("look", &[], &["t0c0_look"], "look did t0c0_look"),
    ];
    for (tool, expect_interrupted, expect_repeated, result) in cases {
        let answers = [calling(0, &[tool]), Message::assistant("done")];
        let (record, harness) = run_to_end(&answers).await;
        let cut = after(&record, |kind| matches!(kind, InputKind::ToolStarted { .. }));
        harness.effects.lock().unwrap().clear();
        let (_, session) = resume_in(&harness, cut).await;
        assert_eq!(harness.effects().len(), expect_repeated.len());
        let text = session.history()[3].item.results().next().unwrap().text();
        assert!(text.starts_with(result), "{text}");
        let events = since_resumption(session).await;
        let EventKind::SessionResumed { interrupted, repeated, .. } = &events[0].kind else { unreachable!() };
        assert_eq!(
            (&interrupted[..], &repeated[..]),
            (
                &expect_interrupted.iter().map(ToString::to_string).collect::<Vec<_>>()[..],
                &expect_repeated.iter().map(ToString::to_string).collect::<Vec<_>>()[..],
            )
        );
    }
}

#[tokio::test]
async fn cut_off_response_is_requested_again() {
    let (record, harness) = run_to_end(&[Message::assistant("a long answer")]).await;
    let cut = after(&record, |kind| matches!(kind, InputKind::SegmentOpened { .. }));
    let before = harness.requests().len();
    let (_, session) = resume_in(&harness, cut).await;
    let requests = harness.requests();
    assert_eq!(requests.len(), before + 1);
    assert_eq!(requests[before].prefix_chain(), requests[before - 1].prefix_chain(), "the same bytes");
    let events = lifecycle(session).await;
    let mut ends = Vec::new();
    for event in events {
        if let EventKind::AssistantTextEnd { text, interrupted } = event.kind {
            ends.push((text, interrupted));
        }
    }
    assert_eq!(ends, [(String::new(), true), ("a long answer".to_owned(), false)]);
}

#[tokio::test]
async fn pending_approval_is_requested_again() {
    let harness = Harness::new(vec![calling(0, &["run"]), Message::assistant("done")]);
    let session = harness.undecided().build().unwrap();
    let mut run = session.submit("go");
    let first = ticket(&mut run).await;
    let record = session.record().unwrap();
    drop((run, session));
    let mut session = harness.undecided().resume(record).build().unwrap();
    let mut run = session.resumed().unwrap();
    assert!(session.resumed().is_none(), "once");
    assert_eq!(ticket(&mut run).await, first, "it is the same ticket");
    session.handle().decide("t0c0_run", Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(harness.effects(), ["t0c0_run"]);
}

/// Returns id and fingerprint of the next request for approval.
async fn ticket(run: &mut crate::run::Run) -> (String, Fingerprint) {
    loop {
        if let EventKind::ApprovalRequested { call_id, fingerprint, .. } = run.next().await.unwrap().kind {
            return (call_id, fingerprint);
        }
    }
}

/// A decision that was recorded and released nothing releases one start after the resume; nobody is asked again.
#[tokio::test]
async fn approved_call_runs_once_after_a_resume() {
    let harness = Harness::new(vec![calling(0, &["run"]), Message::assistant("done")]);
    let session = harness.builder().build().unwrap();
    session.submit("go").await.unwrap();
    let whole = session.record().unwrap();
    drop(session);
    let is_decision =
        |entry: &Arc<RecordEntry>| matches!(entry.input.kind, InputKind::ApprovalDecided { .. });
    let decided = whole.entries.iter().position(is_decision).unwrap() + 1;

    let again = Harness::new(vec![calling(0, &["run"]), Message::assistant("done")]);
    let mut session = again.undecided().resume(whole.before(decided)).build().unwrap();
    assert_eq!(session.resumed().unwrap().await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(again.effects(), ["t0c0_run"]);
    let asked = session.record().unwrap();
    let decisions = asked.entries.iter().filter(|entry| is_decision(entry)).count();
    assert_eq!(decisions, 1, "nobody was asked again");
    judge(&asked);

    // Once the start is on record, the decision is used up.
    let started = Harness::new(vec![calling(0, &["run"]), Message::assistant("done")]);
    let mut session = started.undecided().resume(whole.before(decided + 1)).build().unwrap();
    assert_eq!(session.resumed().unwrap().await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(started.effects(), [] as [&str; 0], "nobody knows whether it had its effect");
}

#[tokio::test]
async fn resumed_session_keeps_its_identity() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    session.submit("one").await.unwrap();
    let (id, record, history) = (session.id().clone(), session.record().unwrap(), session.history());
    drop(session);
    let mut session = harness.builder().resume(record.clone()).build().unwrap();
    assert!(session.resumed().is_none(), "nothing was in progress");
    assert_eq!((session.id(), session.history(), session.state()), (&id, history, SessionState::Idle));
    assert_eq!(session.submit("two").await.unwrap().text, "second");
    let longer = session.record().unwrap();
    assert_eq!(longer.before(record.entries.len()), record);
    judge(&longer);
    let runs: BTreeSet<u64> = longer.replay().unwrap().outcomes.iter().map(|(run, _)| run.0).collect();
    assert_eq!(runs, BTreeSet::from([0, 1]), "runs are numbered on");
}

#[tokio::test]
async fn unresumable_records_are_rejected() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    session.submit("one").await.unwrap();
    let handle = session.handle();
    session.close().await;
    let record = handle.record().unwrap();
    let error = harness.builder().resume(record.clone()).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the session of the record is closed, so it cannot be resumed; it can be forked"
    );
    let mut forged = record;
    forged.entries.retain(|entry| !matches!(entry.input.kind, InputKind::ContextLoaded { .. }));
    let error = harness.builder().resume(forged).build().unwrap_err();
    assert_eq!(error.to_string(), "the record cannot be resumed");
    assert!(std::error::Error::source(&error).is_some());
}

/// A prompt from the record is not loaded again, but the environment is initialised all the same.
#[tokio::test]
async fn resumed_session_initialises_its_environment() {
    let answers = [calling(0, &["look"]), Message::assistant("done")];
    let (record, harness) = run_to_end(&answers).await;
    let cut = after(&record, |kind| matches!(kind, InputKind::ToolStarted { .. }));
    let directory = tempfile::tempdir().unwrap();
    let client =
        || Client::builder().shared_provider(Arc::clone(&harness.adapter) as Arc<dyn ProviderAdapter>);
    let resume_in = |place: &std::path::Path| {
        let env = LocalEnvironment::with_host_env(place, []).unwrap();
        let builder = Session::builder(client().build().unwrap(), harness.profile(), Arc::new(env));
        builder.resume(cut.clone())
    };
    harness.effects.lock().unwrap().clear();
    let unusable = directory.path().join("gone");
    std::fs::create_dir(&unusable).unwrap();
    let builder = resume_in(&unusable);
    std::fs::remove_dir(&unusable).unwrap();
    let mut session = builder.build().unwrap();
    let outcome = session.resumed().unwrap().await.or_else(crate::RunError::into_outcome).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Failed, "without its environment the turn ends");
    assert_eq!(harness.effects(), [""; 0]);
    let text = session.history()[3].item.results().next().unwrap().text();
    assert!(text.starts_with("The execution environment cannot be used: "), "{text}");

    let mut session = resume_in(directory.path()).build().unwrap();
    session.resumed().unwrap().await.unwrap();
    assert_eq!(harness.effects(), ["t0c0_look"]);
}

/// An interrupt that was in progress when the process died is completed, and nothing more starts.
#[tokio::test]
async fn stopping_turn_stays_stopped() {
    let harness = Harness::new(vec![calling(0, &["hang"]), Message::assistant("never")]);
    let session = harness.builder().build().unwrap();
    let mut run = session.submit("go");
    while !matches!(run.next().await.unwrap().kind, EventKind::ToolCallStart { .. }) {}
    session.handle().stop_turn().unwrap();
    run.await.unwrap();
    let record = after(&session.record().unwrap(), |kind| matches!(kind, InputKind::Interrupt));
    drop(session);
    let mut session = harness.builder().resume(record).build().unwrap();
    let outcome = session.resumed().unwrap().await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Interrupted);
    assert_eq!((session.state(), harness.requests().len()), (SessionState::Idle, 1));
    judge(&session.record().unwrap());
}

#[tokio::test]
async fn closing_session_is_closed() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    session.submit("one").await.unwrap();
    let handle = session.handle();
    session.close().await;
    let record = after(&handle.record().unwrap(), |kind| matches!(kind, InputKind::Close));
    let session = harness.builder().resume(record).build().unwrap();
    let mut events = session.events();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.kind);
    }
    assert!(matches!(last, Some(EventKind::SessionEnd { .. })), "{last:?}");
    assert_eq!(session.state(), SessionState::Closed);
    judge(&session.record().unwrap());
}

/// A run that has used three of its ten seconds has seven left, regardless of the downtime.
#[test]
fn downtime_between_processes_is_not_run_time() {
    let budget = Limits::default().with_wall_time(Duration::from_secs(10));
    let limits = TurnLimits { budget, ..TurnLimits::default() };
    let mut machine = Machine::starting(Start::new(limits, None));
    let run = RunId(0);
    let cases = [
        (0, InputKind::Submit { run, message: "go".into() }, Some(10)),
        (3_000, InputKind::Steer { message: "faster".into() }, None),
        (86_400_000, InputKind::Resumed { attached: Vec::new(), asks: None }, Some(7)),
    ];
    for (at, kind, expected) in cases {
        let actions = machine.step(Input::new(Timestamp::from_millis(at), kind));
        let left = actions.iter().find_map(|action| {
            let Action::SetTimer { timer: Timer::Run(_), after } = action else { return None };
            Some(after.as_secs())
        });
        assert_eq!(left, expected, "at {at}");
    }
}

/// A clock that a test sets.
#[derive(Debug)]
struct SetClock(std::sync::atomic::AtomicI64);

impl crate::Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

/// The machine's clock may be set back between two processes, and while one runs.
#[tokio::test]
async fn time_of_a_session_does_not_go_back_with_the_clock() {
    let day: i64 = 86_400_000;
    let harness =
        Harness::new(vec![calling(0, &["look"]), calling(1, &["look"]), Message::assistant("done")]);
    let clock = Arc::new(SetClock((10 * day).into()));
    let session = harness.builder().with_clock(clock.clone()).build().unwrap();
    session.submit("one").await.unwrap();
    let record = session.record().unwrap();
    drop(session);
    let asked = record.entries.iter().rposition(|entry| entry.request.is_some()).unwrap();

    let budget = Limits::default().with_wall_time(Duration::from_secs(3_600));
    for cut in [asked - 1, asked, asked + 1] {
        let earlier = Arc::new(SetClock((3 * day).into()));
        let config = crate::SessionConfig::default().with_budget(budget);
        let builder = harness.builder().with_clock(earlier.clone()).with_config(config);
        let mut session = builder.resume(record.before(cut)).build().unwrap();
        let outcome = session.resumed().unwrap().await.unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Completed, "no time has passed: {outcome:?}");
        earlier.0.store(0, std::sync::atomic::Ordering::Relaxed);
        let handle = session.handle();
        session.close().await;
        let record = handle.record().unwrap();
        let times: Vec<i64> = record.entries.iter().map(|entry| entry.input.at.as_millis()).collect();
        assert!(times.is_sorted() && times[0] >= 10 * day, "{times:?}");
        assert_eq!(record.replay().unwrap().state, SessionState::Closed);
    }
}
