//! Tasks of processes that begin, attach, give up and take over.

use pintle_store::{FileStore, MemoryStore};

use super::*;
use crate::durable::InProcessHost;
use crate::local::post_signal;
use crate::report::TaskReport;
use crate::task::{GateAnswer, StepKind, TaskSignal};
use crate::testing::{ScriptedPerformer, SinglePerformerFactory, contract};

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

fn supervisor(store: Arc<dyn SessionStore>, performer: &Arc<ScriptedPerformer>) -> Arc<TaskSupervisor> {
    Arc::new(TaskSupervisor::new(store, Arc::new(SinglePerformerFactory(performer.clone()))))
}

async fn run_task(supervisor: &Arc<TaskSupervisor>, id: &SessionId) -> TaskEnd {
    let host = InProcessHost::new(Arc::clone(supervisor), id.clone());
    tokio::time::timeout(PATIENCE, host.run()).await.unwrap().unwrap()
}

#[tokio::test]
async fn any_number_may_ask_and_each_step_begins_once() {
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let performer = Arc::new(ScriptedPerformer::default().with_time(Duration::from_millis(5)));
    let supervisor = supervisor(store.clone(), &performer);
    for _ in 0..2 {
        supervisor.create(&id, contract()).await.unwrap();
    }
    let endings =
        tokio::join!(run_task(&supervisor, &id), run_task(&supervisor, &id), run_task(&supervisor, &id));
    assert_eq!(endings, (TaskEnd::Done, TaskEnd::Done, TaskEnd::Done));
    assert_eq!(performer.started().len(), 10);
    supervisor.close().await;
    assert_eq!(performer.cleaned(), 1);
    let wrong = supervisor.create(&SessionId::new("w"), Contract::new(" ")).await.unwrap_err();
    assert!(matches!(wrong, TaskHostError::Contract(_)), "{wrong:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_makes_room_once_its_files_are_gone() {
    let store = Arc::new(MemoryStore::new());
    let performer = Arc::new(ScriptedPerformer::default().with_cleaning(Duration::from_millis(100)));
    let supervisor =
        TaskSupervisor::new(store, Arc::new(SinglePerformerFactory(performer.clone()))).with_max_tasks(1);
    let supervisor = Arc::new(supervisor);
    for number in 0..3 {
        let id = SessionId::new(format!("t{number}"));
        supervisor.create(&id, contract()).await.unwrap();
        assert_eq!(run_task(&supervisor, &id).await, TaskEnd::Done);
    }
    supervisor.close().await;
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
        let performer = Arc::new(ScriptedPerformer::default());
        let supervisor = supervisor(store, &performer);
        for _ in 0..2 {
            supervisor.create(&id, contract()).await.unwrap();
        }
        assert_eq!(run_task(&supervisor, &id).await, TaskEnd::Done);
        supervisor.close().await;
    }
}

/// Says that each task has left files.
#[derive(Debug)]
struct LeftoverFactory(Arc<ScriptedPerformer>);

#[async_trait]
impl PerformerFactory for LeftoverFactory {
    async fn performer(&self, _id: &SessionId) -> Result<Arc<dyn Performer>, String> {
        Ok(self.0.clone())
    }

    async fn has_leftovers(&self, _id: &SessionId, _contract: &Contract) -> bool {
        self.0.cleaned() == 0
    }
}

/// The process that ended the task died before it had removed the files.
#[tokio::test]
async fn the_files_of_a_task_that_ended_elsewhere_are_removed() {
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract()).await.unwrap();
    host.run(Arc::new(ScriptedPerformer::default())).await.unwrap();
    let performer = Arc::new(ScriptedPerformer::default());
    let supervisor = TaskSupervisor::new(store, Arc::new(LeftoverFactory(performer.clone())));
    for _ in 0..2 {
        let status = supervisor.ensure_running(&id).await.unwrap();
        assert_eq!(status, TaskStatus::Ended(TaskEnd::Done));
        assert_eq!(performer.cleaned(), 1);
    }
}

/// The report is that of one process which ran the task as a whole.
#[tokio::test]
async fn the_report_is_that_of_the_whole_task() {
    let id = SessionId::new("t");
    let mut reports = Vec::new();
    for is_whole in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let performer = Arc::new(ScriptedPerformer::default());
        let mut contract = contract();
        contract.candidates.truncate(1);
        if is_whole {
            let mut host = LocalTaskHost::create(store.as_ref(), id.clone(), contract).await.unwrap();
            host.run(performer.clone()).await.unwrap();
        } else {
            let supervisor = supervisor(store.clone(), &performer);
            supervisor.create(&id, contract).await.unwrap();
            run_task(&supervisor, &id).await;
        }
        reports
            .push(TaskReport::from_task(&read_task(store.as_ref(), &id).await.unwrap()).to_json().unwrap());
    }
    assert_eq!(reports.first(), reports.last());
}

#[tokio::test(start_paused = true)]
async fn a_person_is_waited_for_by_no_process() {
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let performer = Arc::new(ScriptedPerformer::default());
    let supervisor = supervisor(store.clone(), &performer);
    supervisor.create(&id, contract().with_gate(DecisionGate::Anchor)).await.unwrap();
    let waiting = async {
        loop {
            let status = supervisor.ensure_running(&id).await.unwrap();
            let TaskStatus::Steps(steps) = status else { return status };
            supervisor.wait_for_step(&id, &steps[0], PATIENCE).await.unwrap();
        }
    };
    let status = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(status, TaskStatus::Asked(DecisionGate::Anchor));
    while store.holder(&id).await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let decision = GateAnswer { gate: DecisionGate::Anchor, is_approved: true, words: None };
    let decide = async {
        post_signal(store.as_ref(), &id, "d", &TaskSignal::Decide(decision), None).await.unwrap();
    };
    let (ending, ()) = tokio::join!(run_task(&supervisor, &id), decide);
    assert_eq!((ending, performer.started().len()), (TaskEnd::Done, 10));
}

#[tokio::test]
async fn a_task_that_lives_elsewhere_is_watched_and_taken_over_when_it_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let id = SessionId::new("t");
    let open = || Arc::new(FileStore::open(directory.path()).unwrap());
    let hanging = Arc::new(ScriptedPerformer::default().with_hanging(StepKind::Work));
    let first = supervisor(open(), &hanging);
    first.create(&id, contract()).await.unwrap();
    let step = loop {
        let TaskStatus::Steps(steps) = first.ensure_running(&id).await.unwrap() else {
            panic!("it has ended")
        };
        if steps.len() == 2 {
            break steps[0].clone();
        }
        first.wait_for_step(&id, &steps[0], PATIENCE).await.unwrap();
    };
    let performer = Arc::new(ScriptedPerformer::default());
    let second = supervisor(open(), &performer);
    assert!(
        matches!(second.ensure_running(&id).await.unwrap(), TaskStatus::Steps(steps) if steps.len() == 2)
    );
    let slice = Duration::from_millis(50);
    assert_eq!(second.wait_for_step(&id, &step, slice).await.unwrap(), StepProgress::Pending);
    assert!(performer.started().is_empty(), "another process has it");
    let waiting = second.wait_for_step(&id, &step, PATIENCE);
    let (progress, ()) = tokio::join!(waiting, first.stop(&id));
    assert_eq!(progress.unwrap(), StepProgress::Ended);
    assert_eq!((hanging.cancelled(), run_task(&second, &id).await), (2, TaskEnd::Done));
    // Both candidates had begun before, and nothing that had ended runs again.
    let started = performer.started();
    assert_eq!(
        (started.len(), started.iter().any(|step| step.starts_with("baseline"))),
        (8, false),
        "{started:?}"
    );
}

#[tokio::test]
async fn cancelling_ends_a_task_wherever_it_is() {
    let (store, id) = (Arc::new(MemoryStore::new()), SessionId::new("t"));
    let performer = Arc::new(ScriptedPerformer::default().with_hanging(StepKind::Work));
    let supervisor = supervisor(store.clone(), &performer);
    supervisor.create(&id, contract()).await.unwrap();
    let cancel = async {
        while performer.started().iter().filter(|step| step.starts_with("work")).count() < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        post_signal(store.as_ref(), &id, "c", &TaskSignal::Cancel { reason: "enough".to_owned() }, None)
            .await
            .unwrap();
    };
    let (ending, ()) = tokio::join!(run_task(&supervisor, &id), cancel);
    supervisor.close().await;
    assert_eq!((ending, performer.cancelled(), performer.cleaned()), (TaskEnd::Aborted, 2, 1));
    let idle = SessionId::new("idle");
    supervisor.create(&idle, contract()).await.unwrap();
    let error = supervisor.ensure_running(&idle).await.unwrap_err();
    assert!(matches!(error, TaskHostError::Stopped), "a closed supervisor opens no task: {error:?}");
    post_signal(store.as_ref(), &idle, "c", &TaskSignal::Cancel { reason: "enough".to_owned() }, None)
        .await
        .unwrap();
    let other = self::supervisor(store.clone(), &performer);
    assert_eq!(other.ensure_running(&idle).await.unwrap(), TaskStatus::Ended(TaskEnd::Aborted));
    assert_eq!(performer.cleaned(), 2);
}

#[tokio::test]
async fn a_full_process_takes_up_nothing_more() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let performer = Arc::new(ScriptedPerformer::default().with_hanging(StepKind::Baseline));
    let performers = Arc::new(SinglePerformerFactory(performer.clone()));
    let supervisor = TaskSupervisor::new(store, performers).with_max_tasks(1);
    let (one, two) = (SessionId::new("one"), SessionId::new("two"));
    supervisor.create(&one, contract()).await.unwrap();
    supervisor.create(&two, contract()).await.unwrap();
    assert!(matches!(supervisor.ensure_running(&one).await.unwrap(), TaskStatus::Steps(_)));
    assert_eq!(supervisor.ensure_running(&two).await.unwrap(), TaskStatus::Full);
    supervisor.stop(&one).await;
    assert!(matches!(supervisor.ensure_running(&two).await.unwrap(), TaskStatus::Steps(_)));
    supervisor.close().await;
    let missing = supervisor.ensure_running(&SessionId::new("none")).await.unwrap_err();
    assert!(matches!(missing, TaskHostError::Store(StoreError::NotFound(_))), "{missing:?}");
}
