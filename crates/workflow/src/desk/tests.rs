//! Tasks of processes that begin, attach, give up and take over.

use pintle_store::{FileStore, MemoryStore};

use super::*;
use crate::durable::InProcess;
use crate::local::post_signal;
use crate::report::Report;
use crate::task::{Decision, Signal, StepKind};
use crate::testing::{OnePerformer, Scripted, contract};

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

fn desk(store: Arc<dyn SessionStore>, performer: &Arc<Scripted>) -> Arc<Desk> {
    Arc::new(Desk::new(store, Arc::new(OnePerformer(performer.clone()))))
}

async fn attended(desk: &Arc<Desk>, id: &SessionId) -> Ending {
    let host = InProcess::new(Arc::clone(desk), id.clone());
    tokio::time::timeout(PATIENCE, host.attend()).await.unwrap().unwrap()
}

#[tokio::test]
async fn any_number_may_ask_and_each_step_begins_once() {
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let performer = Arc::new(Scripted::default().with_time(Duration::from_millis(5)));
    let desk = desk(store.clone(), &performer);
    for _ in 0..2 {
        desk.create(&id, contract()).await.unwrap();
    }
    let endings = tokio::join!(attended(&desk, &id), attended(&desk, &id), attended(&desk, &id));
    assert_eq!(endings, (Ending::Done, Ending::Done, Ending::Done));
    assert_eq!(performer.begun().len(), 10);
    desk.close().await;
    assert_eq!(performer.cleaned(), 1);
    let wrong = desk.create(&SessionId::new("w"), Contract::new(" ")).await.unwrap_err();
    assert!(matches!(wrong, TaskHostError::Contract(_)), "{wrong:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_makes_room_once_its_files_are_gone() {
    let store = Arc::new(MemoryStore::new());
    let performer = Arc::new(Scripted::default().with_cleaning(Duration::from_millis(100)));
    let desk = Desk::new(store, Arc::new(OnePerformer(performer.clone()))).with_max_tasks(1);
    let desk = Arc::new(desk);
    for number in 0..3 {
        let id = SessionId::new(format!("t{number}"));
        desk.create(&id, contract()).await.unwrap();
        assert_eq!(attended(&desk, &id).await, Ending::Done);
    }
    desk.close().await;
    assert_eq!(performer.cleaned(), 3);
}

#[tokio::test]
async fn a_task_whose_process_died_before_its_contract_was_on_record_gets_it() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn SessionStore>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(FileStore::open(directory.path()).unwrap())];
    for store in stores {
        let id = SessionId::new("t");
        let summary = pintle_store::Summary::new(id.clone(), pintle_agent::Timestamp::from_millis(0));
        store.create(summary).await.unwrap().close().await.unwrap();
        let performer = Arc::new(Scripted::default());
        let desk = desk(store, &performer);
        for _ in 0..2 {
            desk.create(&id, contract()).await.unwrap();
        }
        assert_eq!(attended(&desk, &id).await, Ending::Done);
        desk.close().await;
    }
}

/// The report is that of one process which ran the task as a whole.
#[tokio::test]
async fn the_report_is_that_of_the_whole_task() {
    let id = SessionId::new("t");
    let mut reports = Vec::new();
    for is_whole in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let performer = Arc::new(Scripted::default());
        let mut contract = contract();
        contract.candidates.truncate(1);
        if is_whole {
            let mut host = LocalHost::create(store.as_ref(), id.clone(), contract).await.unwrap();
            host.run(performer.clone()).await.unwrap();
        } else {
            let desk = desk(store.clone(), &performer);
            desk.create(&id, contract).await.unwrap();
            attended(&desk, &id).await;
        }
        reports.push(Report::of(&read_task(store.as_ref(), &id).await.unwrap()).to_json().unwrap());
    }
    assert_eq!(reports.first(), reports.last());
}

#[tokio::test(start_paused = true)]
async fn a_person_is_waited_for_by_no_process() {
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let performer = Arc::new(Scripted::default());
    let desk = desk(store.clone(), &performer);
    desk.create(&id, contract().with_gate(Gate::Anchor)).await.unwrap();
    let waiting = async {
        loop {
            let standing = desk.look(&id).await.unwrap();
            let Standing::Steps(steps) = standing else { return standing };
            desk.wait(&id, &steps[0], PATIENCE).await.unwrap();
        }
    };
    let standing = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(standing, Standing::Asked(Gate::Anchor));
    while store.holder(&id).await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let decision = Decision { gate: Gate::Anchor, is_approved: true, words: None };
    let decide = async {
        post_signal(store.as_ref(), &id, "d", &Signal::Decide(decision), None).await.unwrap();
    };
    let (ending, ()) = tokio::join!(attended(&desk, &id), decide);
    assert_eq!((ending, performer.begun().len()), (Ending::Done, 10));
}

#[tokio::test]
async fn a_task_that_lives_elsewhere_is_watched_and_taken_over_when_it_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let id = SessionId::new("t");
    let open = || Arc::new(FileStore::open(directory.path()).unwrap());
    let hanging = Arc::new(Scripted::default().with_hanging(StepKind::Work));
    let first = desk(open(), &hanging);
    first.create(&id, contract()).await.unwrap();
    let step = loop {
        let Standing::Steps(steps) = first.look(&id).await.unwrap() else { panic!("it has ended") };
        if steps.len() == 2 {
            break steps[0].clone();
        }
        first.wait(&id, &steps[0], PATIENCE).await.unwrap();
    };
    let performer = Arc::new(Scripted::default());
    let second = desk(open(), &performer);
    assert!(matches!(second.look(&id).await.unwrap(), Standing::Steps(steps) if steps.len() == 2));
    let slice = Duration::from_millis(50);
    assert_eq!(second.wait(&id, &step, slice).await.unwrap(), Progress::Pending);
    assert!(performer.begun().is_empty(), "another process has it");
    let waiting = second.wait(&id, &step, PATIENCE);
    let (progress, ()) = tokio::join!(waiting, first.stop(&id));
    assert_eq!(progress.unwrap(), Progress::Ended);
    assert_eq!((hanging.cancelled(), attended(&second, &id).await), (2, Ending::Done));
    // Both candidates had begun before, and nothing that had ended runs again.
    let begun = performer.begun();
    assert_eq!((begun.len(), begun.iter().any(|step| step.starts_with("baseline"))), (8, false), "{begun:?}");
}

#[tokio::test]
async fn cancelling_ends_a_task_wherever_it_is() {
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let performer = Arc::new(Scripted::default().with_hanging(StepKind::Work));
    let desk = desk(store.clone(), &performer);
    desk.create(&id, contract()).await.unwrap();
    let cancel = async {
        while performer.begun().iter().filter(|step| step.starts_with("work")).count() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        post_signal(store.as_ref(), &id, "c", &Signal::Cancel { reason: "enough".to_owned() }, None)
            .await
            .unwrap();
    };
    let (ending, ()) = tokio::join!(attended(&desk, &id), cancel);
    desk.close().await;
    assert_eq!((ending, performer.cancelled(), performer.cleaned()), (Ending::Aborted, 2, 1));
    let idle = SessionId::new("idle");
    desk.create(&idle, contract()).await.unwrap();
    let error = desk.look(&idle).await.unwrap_err();
    assert!(matches!(error, TaskHostError::Stopped), "a closed desk takes nothing up: {error:?}");
    post_signal(store.as_ref(), &idle, "c", &Signal::Cancel { reason: "enough".to_owned() }, None)
        .await
        .unwrap();
    let other = self::desk(store.clone(), &performer);
    assert_eq!(other.look(&idle).await.unwrap(), Standing::Ended(Ending::Aborted));
    assert_eq!(performer.cleaned(), 2);
}

#[tokio::test]
async fn a_full_process_takes_up_nothing_more() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let performer = Arc::new(Scripted::default().with_hanging(StepKind::Baseline));
    let performers = Arc::new(OnePerformer(performer.clone()));
    let desk = Desk::new(store, performers).with_max_tasks(1);
    let (one, two) = (SessionId::new("one"), SessionId::new("two"));
    desk.create(&one, contract()).await.unwrap();
    desk.create(&two, contract()).await.unwrap();
    assert!(matches!(desk.look(&one).await.unwrap(), Standing::Steps(_)));
    assert_eq!(desk.look(&two).await.unwrap(), Standing::Full);
    desk.stop(&one).await;
    assert!(matches!(desk.look(&two).await.unwrap(), Standing::Steps(_)));
    desk.close().await;
    let missing = desk.look(&SessionId::new("none")).await.unwrap_err();
    assert!(matches!(missing, TaskHostError::Store(StoreError::NotFound(_))), "{missing:?}");
}
