//! Tasks on stores, whose processes die at every step.

mod serialised;

use std::time::Duration;

use pintle_store::{FileStore, MemoryStore};

use super::*;
use crate::TaskStatus;
use crate::contract::DecisionGate;
use crate::task::{GateAnswer, StepKind};
use crate::testing::{ScriptedPerformer, contract};

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(tokio::time::Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_task_ends_and_can_be_read() {
    let store = MemoryStore::new();
    let id = SessionId::new("t1");
    let mut host = LocalTaskHost::create(&store, id.clone(), contract()).await.unwrap();
    let performer = Arc::new(ScriptedPerformer::default());
    let outcome = host.run(performer.clone()).await.unwrap();
    let TaskOutcome::Done(done) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(done.proof().checks().len(), 1);
    host.close().await.unwrap();
    let read = read_task(&store, &id).await.unwrap();
    assert_eq!((read.outcome(), read.spent().tokens), (Some(&outcome), 1_000));
    let summary = store.summary(&id).await.unwrap().unwrap();
    assert_eq!(summary.title, "Sums of negative numbers are right.");
    assert_eq!(summary.properties.get(KIND).map(String::as_str), Some(KIND_TASK));
    let mut again = LocalTaskHost::open(&store, &id).await.unwrap();
    assert_eq!(again.run(performer.clone()).await.unwrap(), outcome);
    assert_eq!(performer.started().len(), 10, "nothing is done twice");
    let wrong = LocalTaskHost::create(&store, SessionId::new("t2"), Contract::new(" ")).await.unwrap_err();
    assert!(wrong.to_string().contains("goal: expected a text"), "{wrong}");
    assert!(store.summary(&SessionId::new("t2")).await.unwrap().is_none());
}

#[test]
fn messages_reach_the_sessions_that_work_for_their_candidate() {
    let step = |kind, candidate, round| StepId { kind, candidate, attempt: 1, round };
    for (step, candidate, expected) in [
        (step(StepKind::Work, Some(0), 0), None, true),
        (step(StepKind::Work, Some(0), 0), Some(0), true),
        (step(StepKind::Work, Some(0), 0), Some(1), false),
        (step(StepKind::Anchor, None, 0), Some(1), false),
        // The steps of a plan make one change.
        (step(StepKind::Plan, None, 1), Some(1), true),
        (step(StepKind::Work, Some(0), 2), Some(1), true),
    ] {
        assert_eq!(is_recipient(&step, candidate), expected, "{step} {candidate:?}");
    }
}

#[tokio::test]
async fn a_host_can_be_closed_after_any_run() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [Box<dyn SessionStore>; 2] =
        [Box::new(MemoryStore::new()), Box::new(FileStore::open(directory.path()).unwrap())];
    for store in stores {
        let id = SessionId::new("finished");
        let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract()).await.unwrap();
        let performer = Arc::new(ScriptedPerformer::default());
        let outcome = host.run(performer.clone()).await.unwrap();
        assert_eq!(host.run(performer.clone()).await.unwrap(), outcome);
        host.close().await.unwrap();
        assert_eq!(read_task(store.as_ref(), &id).await.unwrap().outcome(), Some(&outcome));

        let id = SessionId::new("stopped");
        let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract()).await.unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        let stopped = host.run_until(performer, &stop).await.unwrap_err();
        assert!(matches!(stopped, TaskHostError::Stopped), "{stopped:?}");
        host.close().await.unwrap();
        LocalTaskHost::open(store.as_ref(), &id).await.unwrap().close().await.unwrap();
    }
}

/// Lets the process die after each number of lines, and compares the end with that of a task that nobody killed.
#[tokio::test]
async fn a_task_whose_process_dies_at_any_line_ends_the_same() {
    let whole = MemoryStore::new();
    let id = SessionId::new("t");
    let mut host = LocalTaskHost::create(&whole, id.clone(), contract()).await.unwrap();
    let expected = host.run(Arc::new(ScriptedPerformer::default())).await.unwrap();
    drop(host);
    let lines: Vec<String> = pintle_store::read_objects(&whole, &id).await.unwrap();
    let inputs: Vec<TaskInput> = lines
        .iter()
        .filter_map(|line| match JournalLine::parse(line).unwrap()? {
            JournalLine::Input { input, .. } => Some(input),
            JournalLine::Contract(_) => None,
        })
        .collect();
    assert_eq!(inputs.len(), 20);
    for dies_after in 0..=inputs.len() {
        let directory = tempfile::tempdir().unwrap();
        let store = FileStore::open(directory.path()).unwrap();
        let mut host = LocalTaskHost::create(&store, id.clone(), contract()).await.unwrap();
        for input in &inputs[..dies_after] {
            host.record(input.clone(), None).await.unwrap();
        }
        drop(host);
        let mut host = LocalTaskHost::open(&store, &id).await.unwrap();
        let performer = Arc::new(ScriptedPerformer::default());
        assert_eq!(host.run(performer.clone()).await.unwrap(), expected, "after {dies_after}");
        // A step whose result is on record does not run again.
        let finished =
            inputs[..dies_after].iter().filter(|input| matches!(input, TaskInput::StepFinished(_))).count();
        assert_eq!(performer.started().len(), 10 - finished, "after {dies_after}");
        assert_eq!(host.task().spent().tokens, 1_000, "after {dies_after}");
    }
}

#[tokio::test]
async fn people_are_waited_for_without_a_process() {
    let store = MemoryStore::new();
    let id = SessionId::new("t");
    let gated = contract().with_gate(DecisionGate::Anchor);
    let mut host = LocalTaskHost::create(&store, id.clone(), gated).await.unwrap();
    let performer = Arc::new(ScriptedPerformer::default());
    let asked = async {
        while TaskStatus::from_task(&read_task(&store, &id).await.unwrap())
            != TaskStatus::Asked(DecisionGate::Anchor)
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // Time for a run that does not wait to end.
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    tokio::select! {
        ended = host.run(performer.clone()) => panic!("it does not wait: {ended:?}"),
        asked = tokio::time::timeout(PATIENCE, asked) => asked.unwrap(),
    }
    drop(host);
    let decision = GateAnswer { gate: DecisionGate::Anchor, is_approved: true, words: None };
    for _ in 0..2 {
        post_signal(&store, &id, "d1", &TaskSignal::Decide(decision.clone()), None).await.unwrap();
    }
    store.post(&id, "rubbish", "{\"what\": 1}".to_owned()).await.unwrap();
    let mut host = LocalTaskHost::open(&store, &id).await.unwrap();
    let outcome = tokio::time::timeout(PATIENCE, host.run(performer.clone())).await.unwrap().unwrap();
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{outcome:?}");
    drop(host);
    assert!(!store.has_posted(&id).await.unwrap());
}

#[tokio::test]
async fn cancelling_stops_what_is_under_way() {
    let store = Arc::new(MemoryStore::new());
    let id = SessionId::new("t");
    let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract()).await.unwrap();
    let performer = Arc::new(ScriptedPerformer::default().with_hanging(StepKind::Work));
    let (working, poster) = (performer.clone(), Arc::clone(&store));
    let cancel = async {
        until(|| working.started().iter().filter(|step| step.starts_with("work")).count() == 2).await;
        let steer = TaskSignal::Steer { candidate: Some(1), text: "use integers".to_owned() };
        post_signal(poster.as_ref(), &id, "s", &steer, None).await.unwrap();
        until(|| !working.steered().is_empty()).await;
        let cancel = TaskSignal::Cancel { reason: "enough".to_owned() };
        post_signal(poster.as_ref(), &id, "c", &cancel, None).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(tokio::time::timeout(PATIENCE, host.run(performer.clone())), cancel);
    assert_eq!(outcome.unwrap().unwrap(), TaskOutcome::Aborted { reason: "enough".to_owned() });
    assert_eq!(performer.cancelled(), 2);
    assert_eq!(performer.steered(), ["work-1-1: use integers"]);
    drop(host);
    // The stopped steps cost 100 tokens each, like those before them.
    let read = read_task(store.as_ref(), &id).await.unwrap();
    let costs: Vec<String> = read.step_costs().iter().map(|cost| cost.step.to_string()).collect();
    assert_eq!((costs.len(), read.spent().tokens), (4, 400), "{costs:?}");
    assert!(costs.contains(&"work-0-1".to_owned()) && costs.contains(&"work-1-1".to_owned()), "{costs:?}");
}

#[tokio::test]
async fn a_task_without_a_process_is_cancelled_without_a_step() {
    let store = MemoryStore::new();
    let id = SessionId::new("t");
    drop(LocalTaskHost::create(&store, id.clone(), contract()).await.unwrap());
    let mut host = LocalTaskHost::open(&store, &id).await.unwrap();
    assert_eq!(host.settle().await.unwrap(), None);
    post_signal(&store, &id, "c", &TaskSignal::Cancel { reason: "enough".to_owned() }, None).await.unwrap();
    let aborted = TaskOutcome::Aborted { reason: "enough".to_owned() };
    assert_eq!(host.settle().await.unwrap(), Some(aborted.clone()));
    drop(host);
    let read = read_task(&store, &id).await.unwrap();
    assert_eq!((read.outcome(), read.baseline()), (Some(&aborted), None));
}

#[tokio::test]
async fn another_process_is_kept_out() {
    let store = MemoryStore::new();
    let id = SessionId::new("t");
    let host = LocalTaskHost::create(&store, id.clone(), contract()).await.unwrap();
    let error = LocalTaskHost::open(&store, &id).await.unwrap_err();
    assert!(matches!(error, TaskHostError::Store(StoreError::InUse { .. })), "{error:?}");
    assert!(read_task(&store, &id).await.is_ok(), "it can be read meanwhile");
    drop(host);
    let session = SessionId::new("s");
    let mut writer = store.create(Summary::new(session.clone(), SystemClock.now())).await.unwrap();
    writer.append(vec!["{\"note\": 1}".to_owned()], Barrier::Synced).await.unwrap();
    drop(writer);
    let error = LocalTaskHost::open(&store, &session).await.unwrap_err();
    assert!(error.to_string().contains("it has no contract"), "{error}");
    let later = SessionId::new("l");
    let mut writer = store.create(Summary::new(later.clone(), SystemClock.now())).await.unwrap();
    writer.append(vec!["{\"task\": 9, \"contract\": {}}".to_owned()], Barrier::Synced).await.unwrap();
    drop(writer);
    let error = LocalTaskHost::open(&store, &later).await.unwrap_err();
    assert!(error.to_string().contains("version 9"), "{error}");
}
