//! Workers, and tasks on a real engine. `PINTLE_TEST_RESTATE` is the path of its program; without it the tests of tasks
//! are skipped.

mod engine;
mod serialised;
mod workers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_store::{FileStore, MemoryStore, SessionId, SessionStore};
use pintle_workflow::contract::DecisionGate;
use pintle_workflow::report::TaskReport;
use pintle_workflow::task::{GateAnswer, StepKind};
use pintle_workflow::testing::{ScriptedPerformer, SinglePerformerFactory, contract};
use pintle_workflow::{LocalTaskHost, TaskEnd, TaskStatus, TaskSupervisor, read_task};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::engine::{PATIENCE, TestEngine, until};
use crate::{EngineError, IdentityKeys, RestateEngine, serve};

/// A worker in this process.
struct TestWorker {
    store: Arc<dyn SessionStore>,
    performer: Arc<ScriptedPerformer>,
    engine: RestateEngine,
    port: u16,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl TestWorker {
    async fn start(engine: &TestEngine, performer: ScriptedPerformer) -> Self {
        Self::on(engine, Arc::new(MemoryStore::new()), performer).await
    }

    async fn on(engine: &TestEngine, store: Arc<dyn SessionStore>, performer: ScriptedPerformer) -> Self {
        let worker = Self::answering(&engine.client(), store, performer, IdentityKeys::default()).await;
        engine.register(worker.port).await;
        worker
    }

    /// Serves tasks to engines with these keys, which do not know it yet.
    async fn answering(
        engine: &RestateEngine,
        store: Arc<dyn SessionStore>,
        performer: ScriptedPerformer,
        keys: IdentityKeys,
    ) -> Self {
        let performer = Arc::new(performer);
        let performers = Arc::new(SinglePerformerFactory(Arc::clone(&performer)));
        let supervisor = Arc::new(TaskSupervisor::new(Arc::clone(&store), performers));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, mut serving) = (CancellationToken::new(), JoinSet::new());
        let stopped = stop.clone().cancelled_owned();
        serving.spawn(async move { serve(listener, supervisor, &keys, stopped).await });
        Self { store, performer, engine: engine.clone(), port, stop, serving }
    }

    async fn status(&self, id: &SessionId) -> TaskStatus {
        self.engine.status(id).await.unwrap().status
    }

    async fn close(mut self) {
        self.stop.cancel();
        self.serving.join_next().await.unwrap().unwrap();
    }
}

fn status_of(error: &EngineError) -> u16 {
    let EngineError::Refused { status, .. } = error else { panic!("{error:?}") };
    *status
}

/// Otherwise each step would wait for a delayed acknowledgement of the engine.
#[tokio::test]
async fn connections_of_a_worker_send_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let same = listener.try_clone().unwrap();
    let performers = Arc::new(SinglePerformerFactory(Arc::new(ScriptedPerformer::default())));
    let supervisor = Arc::new(TaskSupervisor::new(Arc::new(MemoryStore::new()), performers));
    let listener = TcpListener::from_std(listener).unwrap();
    serve(listener, supervisor, &IdentityKeys::default(), std::future::ready(())).await;
    let same = TcpListener::from_std(same).unwrap();
    let address = same.local_addr().unwrap();
    let (_client, accepted) = tokio::join!(TcpStream::connect(address), same.accept());
    assert!(accepted.unwrap().0.nodelay().unwrap());
}

/// Both hosts give the same report, with one candidate, and the same choice with two.
#[tokio::test]
async fn a_task_ends_as_it_does_without_an_engine() {
    let Some(engine) = TestEngine::start().await else { return };
    let worker = TestWorker::start(&engine, ScriptedPerformer::default()).await;
    let mut alone = contract();
    alone.candidates.truncate(1);
    for (name, contract) in [("one", alone), ("two", contract())] {
        let id = SessionId::new(name);
        let here = MemoryStore::new();
        let mut host = LocalTaskHost::create(&here, id.clone(), contract.clone()).await.unwrap();
        host.run(Arc::new(ScriptedPerformer::default())).await.unwrap();
        let ending = tokio::time::timeout(PATIENCE, worker.engine.run(&id, Some(contract))).await;
        assert_eq!(ending.unwrap().unwrap(), Some(TaskEnd::Done));
        let (there, here) =
            (read_task(worker.store.as_ref(), &id).await.unwrap(), read_task(&here, &id).await.unwrap());
        assert_eq!(
            TaskReport::from_task(&there).to_json().unwrap(),
            TaskReport::from_task(&here).to_json().unwrap()
        );
        // A task that has ended is not begun again.
        assert_eq!(worker.engine.run(&id, None).await.unwrap(), Some(TaskEnd::Done));
    }
    assert_eq!(worker.performer.started().len(), 10 + 10);
    let unknown = worker.engine.run(&SessionId::new("none"), None).await.unwrap_err();
    assert_eq!(status_of(&unknown), 404);
    let mut wrong = contract();
    wrong.goal = " ".to_owned();
    let wrong = worker.engine.run(&SessionId::new("wrong"), Some(wrong)).await.unwrap_err();
    assert_eq!(status_of(&wrong), 400);
    assert!(wrong.to_string().contains("expected a text"), "{wrong}");
    worker.close().await;
}

/// A worker with a key answers the engine that has it, and no other one.
#[tokio::test]
async fn a_worker_answers_the_engines_of_its_keys_alone() {
    let wrong = IdentityKeys::new(["publickeyv1_!"]).unwrap_err().to_string();
    assert!(wrong.starts_with("`publickeyv1_!` is no identity key of an engine: "), "{wrong}");
    let Some((engine, key)) = TestEngine::start_with_identity().await else { return };
    let Some(stranger) = TestEngine::start().await else { return };
    let keys = IdentityKeys::new([key]).unwrap();
    let store = Arc::new(MemoryStore::new());
    let worker = TestWorker::answering(&engine.client(), store, ScriptedPerformer::default(), keys).await;
    let address = format!("http://127.0.0.1:{}", worker.port);
    let refused = RestateEngine::register(&stranger.admin(), &address).await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    engine.register(worker.port).await;
    let id = SessionId::new("t");
    let ending = tokio::time::timeout(PATIENCE, worker.engine.run(&id, Some(contract()))).await;
    assert_eq!(ending.unwrap().unwrap(), Some(TaskEnd::Done));
    worker.close().await;
}

/// Prints what a step costs more on an engine than in a process alone, both with stores in files.
#[tokio::test]
async fn a_step_costs_some_requests_to_the_engine() {
    const TASKS: u32 = 10;
    let Some(engine) = TestEngine::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str| Arc::new(FileStore::open(directory.path().join(name)).unwrap());
    let (here, there) = (open("here"), open("there"));
    let worker = TestWorker::on(&engine, there, ScriptedPerformer::default()).await;
    let mut times = [Duration::ZERO; 2];
    for number in 0..TASKS {
        let id = SessionId::new(format!("t{number}"));
        let started = Instant::now();
        let mut host = LocalTaskHost::create(here.as_ref(), id.clone(), contract()).await.unwrap();
        host.run(Arc::new(ScriptedPerformer::default())).await.unwrap();
        times[0] += started.elapsed();
        let started = Instant::now();
        let ending = tokio::time::timeout(PATIENCE, worker.engine.run(&id, Some(contract()))).await;
        let ending = ending.unwrap_or_else(|_| panic!("task {number} has not ended within {PATIENCE:?}"));
        assert_eq!(ending.unwrap(), Some(TaskEnd::Done));
        times[1] += started.elapsed();
    }
    let [local, engine] = times.map(|time| time.as_secs_f64() * 1_000.0 / f64::from(TASKS * 10));
    eprintln!("a step: {local:.2} ms alone, {engine:.2} ms on the engine, ratio {:.2}", engine / local);
    // Some 5 ms on an idle machine.
    assert!(engine < 1_000.0, "{engine}");
    worker.close().await;
}

/// A task that waits for a person is held by no process, and goes on as soon as somebody has decided.
#[tokio::test]
async fn people_decide_steer_and_cancel() {
    let Some(engine) = TestEngine::start().await else { return };
    let worker = TestWorker::start(&engine, ScriptedPerformer::default().with_hanging(StepKind::Work)).await;
    let id = SessionId::new("t");
    worker.engine.start(&id, Some(contract().with_gate(DecisionGate::Anchor))).await.unwrap();
    let asked = async || {
        let status = worker.engine.status(&id).await;
        status.is_ok_and(|status| status.status == TaskStatus::Asked(DecisionGate::Anchor))
    };
    until("a person is asked", asked).await;
    until("nobody has it", async || worker.store.holder(&id).await.unwrap().is_none()).await;
    let decision = |gate| GateAnswer { gate, is_approved: true, words: None };
    let refused = worker.engine.decide(&id, &decision(DecisionGate::Result)).await.unwrap_err();
    assert_eq!(status_of(&refused), 409, "{refused}");
    worker.engine.decide(&id, &decision(DecisionGate::Anchor)).await.unwrap();
    let working =
        async || worker.performer.started().iter().filter(|step| step.starts_with("work")).count() == 2;
    until("both work", working).await;
    let again = worker.engine.decide(&id, &decision(DecisionGate::Anchor)).await.unwrap_err();
    assert_eq!(status_of(&again), 409, "{again}");
    worker.engine.steer(&id, Some(1), "use integers").await.unwrap();
    until("it is told", async || worker.performer.steered() == ["work-1-1: use integers"]).await;
    let nobody = worker.engine.steer(&id, Some(2), "no").await.unwrap_err();
    assert_eq!(status_of(&nobody), 409, "{nobody}");
    worker.engine.cancel(&id, "enough").await.unwrap();
    let ended = async || worker.status(&id).await == TaskStatus::Ended(TaskEnd::Aborted);
    until("it ends", ended).await;
    until("both are stopped", async || worker.performer.cancelled() == 2).await;
    until("it is cleaned", async || worker.performer.cleaned() == 1).await;
    assert_eq!(worker.engine.run(&id, None).await.unwrap(), Some(TaskEnd::Aborted));
    let late = worker.engine.cancel(&id, "again").await.unwrap_err();
    assert_eq!(status_of(&late), 409, "{late}");
    worker.close().await;
}

/// A decision posted to the store itself is found once the run is woken.
#[tokio::test]
async fn a_decision_in_the_store_counts_as_well() {
    let Some(engine) = TestEngine::start().await else { return };
    let worker = TestWorker::start(&engine, ScriptedPerformer::default()).await;
    let id = SessionId::new("t");
    worker.engine.start(&id, Some(contract().with_gate(DecisionGate::Result))).await.unwrap();
    let asked = async || {
        let status = worker.engine.status(&id).await;
        status.is_ok_and(|status| status.status == TaskStatus::Asked(DecisionGate::Result))
    };
    until("a person is asked", asked).await;
    let decision = GateAnswer { gate: DecisionGate::Result, is_approved: true, words: None };
    let signal = pintle_workflow::task::TaskSignal::Decide(decision);
    pintle_workflow::post_signal(worker.store.as_ref(), &id, "d", &signal, None).await.unwrap();
    // The run may not wait yet; it looks into the inbox before it does.
    worker.engine.wake(&id).await.unwrap();
    until("it ends", async || worker.status(&id).await == TaskStatus::Ended(TaskEnd::Done)).await;
    worker.close().await;
}

/// Steps of hours are asked about in slices; here the engine is killed meanwhile, and goes on with what it had.
#[tokio::test]
async fn an_engine_that_is_killed_goes_on() {
    let Some(mut engine) = TestEngine::start().await else { return };
    let worker =
        TestWorker::start(&engine, ScriptedPerformer::default().with_time(Duration::from_millis(300))).await;
    let id = SessionId::new("t");
    worker.engine.start(&id, Some(contract())).await.unwrap();
    for _ in 0..3 {
        let started = worker.performer.started().len();
        // The worker keeps running while the engine restarts, which may take longer than all steps.
        let goes_on = async || worker.performer.started().len() > started || started == 10;
        until("another step begins", goes_on).await;
        engine.kill();
        engine.go_on().await;
    }
    let ended = async || {
        let status = worker.engine.status(&id).await;
        status.is_ok_and(|status| status.status == TaskStatus::Ended(TaskEnd::Done))
    };
    until("it ends", ended).await;
    assert_eq!(
        tokio::time::timeout(PATIENCE, worker.engine.run(&id, None)).await.unwrap().unwrap(),
        Some(TaskEnd::Done)
    );
    assert_eq!(worker.performer.started().len(), 10, "{:?}", worker.performer.started());
    worker.close().await;
}

#[test]
fn an_address_is_one() {
    for wrong in ["", "127.0.0.1:8080", "https://engine.example", "unix:/run/engine"] {
        assert!(matches!(RestateEngine::new(wrong), Err(EngineError::Address(_))), "{wrong}");
    }
    assert!(RestateEngine::new("http://[::1]:8080/").is_ok());
}
