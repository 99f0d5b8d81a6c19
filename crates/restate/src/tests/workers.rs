//! Workers that die.
#![expect(clippy::disallowed_methods, reason = "tests read the log of a worker, and its environment")]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

use pintle_postgres::{PostgresOptions, PostgresStore};
use pintle_workflow::task::Task;
use serde_json::Value;
use tokio::net::TcpStream;

use super::engine::{TestProcess, free_port, this_test};
use super::*;

/// Variables of a worker: its port, its store, its log, the event at which it dies, the time of its steps, and whether candidates
/// work without end.
const PORT: &str = "PINTLE_TEST_WORKER_PORT";
const STORE: &str = "PINTLE_TEST_WORKER_STORE";
const SCHEMA: &str = "PINTLE_TEST_WORKER_SCHEMA";
const LOG: &str = "PINTLE_TEST_WORKER_LOG";
const DEATH: &str = "PINTLE_TEST_WORKER_DEATH";
const TIME: &str = "PINTLE_TEST_WORKER_TIME";
const HANGS: &str = "PINTLE_TEST_WORKER_HANGS";

/// Lease of a worker on the database.
const LEASE: Duration = Duration::from_secs(5);

/// The worker itself; it ends when it is killed.
#[tokio::test]
async fn worker_process() {
    let Ok(port) = std::env::var(PORT) else { return };
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let store: Arc<dyn SessionStore> = match std::env::var(SCHEMA) {
        Ok(schema) => {
            let connection = std::env::var("PINTLE_TEST_POSTGRES").unwrap();
            let options = PostgresOptions::new().with_schema(schema).with_lease(LEASE);
            Arc::new(PostgresStore::connect(&connection, options).await.unwrap())
        }
        Err(_) => Arc::new(FileStore::open(Path::new(&std::env::var(STORE).unwrap())).unwrap()),
    };
    let performer = ScriptedPerformer::default()
        .with_log(std::env::var(LOG).unwrap().into())
        .with_time(Duration::from_millis(number(TIME)))
        .with_death_at(usize::try_from(number(DEATH)).unwrap());
    let performer = match std::env::var(HANGS) {
        Ok(_) => performer.with_hanging(StepKind::Work),
        Err(_) => performer,
    };
    let supervisor =
        Arc::new(TaskSupervisor::new(store, Arc::new(SinglePerformerFactory(Arc::new(performer)))));
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    serve(listener, supervisor, &IdentityKeys::default(), std::future::pending()).await;
}

fn worker(port: u16, directory: &Path, log: &str) -> Command {
    let mut command = this_test("tests::workers::worker_process", &directory.join("worker.log"));
    command.env(PORT, port.to_string()).env(STORE, directory.join("store")).env(LOG, directory.join(log));
    command
}

/// Returns how often each step began and ended.
fn events(path: &Path) -> io::Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(path)?.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    Ok(counts)
}

/// Returns the report of a task. Steps of two candidates end in any order.
fn report(task: &Task) -> Value {
    let mut report = serde_json::to_value(TaskReport::from_task(task)).unwrap();
    report["steps"].as_array_mut().unwrap().sort_by_key(|step| step["step"].to_string());
    report
}

/// Each of the ten steps dies at its beginning, and right before its result is on record. The end, the report and the costs are
/// those of a task that nobody killed; only the step at which the worker died begins twice.
#[tokio::test]
async fn a_worker_that_dies_at_any_step_leaves_the_same_end() {
    let Some(engine) = TestEngine::start().await else { return };
    let client = engine.client();
    let whole = MemoryStore::new();
    let mut host = LocalTaskHost::create(&whole, SessionId::new("whole"), contract()).await.unwrap();
    host.run(Arc::new(ScriptedPerformer::default())).await.unwrap();
    let expected = report(host.task());
    // By default, seven deaths, at beginnings and before results.
    for death in (1..=20).step_by(pintle_test_conditions::cases(3, 1)) {
        let directory = tempfile::tempdir().unwrap();
        let (id, port) = (SessionId::new(format!("t{death}")), free_port().await);
        let mut first =
            TestProcess::start(worker(port, directory.path(), "log").env(DEATH, death.to_string()));
        engine.register(port).await;
        client.start(&id, Some(contract())).await.unwrap();
        first.ended().await;
        let second = TestProcess::start(&mut worker(port, directory.path(), "log"));
        let ending = tokio::time::timeout(PATIENCE, client.run(&id, None)).await.unwrap().unwrap();
        assert_eq!(ending, Some(TaskEnd::Done), "death {death}");
        drop(second);
        let store = FileStore::open(directory.path().join("store")).unwrap();
        let task = read_task(&store, &id).await.unwrap();
        assert_eq!(report(&task), expected, "death {death}");
        let events = events(&directory.path().join("log")).unwrap();
        let started: usize =
            events.iter().filter(|(event, _)| event.starts_with("began")).map(|(_, n)| n).sum();
        // The other candidate may have been under way as well.
        assert!((11..=12).contains(&started), "death {death}: {events:?}");
    }
}

/// Passes connections on to the worker that is alive, as the address of several workers does.
async fn balance(listener: TcpListener, ports: [u16; 2]) {
    let mut links = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        links.spawn(async move {
            for port in ports {
                if let Ok(mut worker) = TcpStream::connect(("127.0.0.1", port)).await {
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut worker).await;
                    return;
                }
            }
        });
    }
}

/// Two workers share a database behind one address. The first one is killed in the middle of steps, which never end there, and the
/// second one goes on once the lease has run out.
#[tokio::test]
async fn another_worker_goes_on_with_a_task_of_the_database() {
    let Some(engine) = TestEngine::start().await else { return };
    let Some(database) = Database::new() else { return };
    let store = database.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let ports = [free_port().await, free_port().await];
    let command = |port, log| {
        let mut command = worker(port, directory.path(), log);
        command.env(SCHEMA, &database.schema);
        command
    };
    let mut first = TestProcess::start(command(ports[0], "first").env(HANGS, "1"));
    let second = TestProcess::start(&mut command(ports[1], "second"));
    // The engine keeps its connection, which is to be one to the first worker.
    until("the first worker listens", async || TcpStream::connect(("127.0.0.1", ports[0])).await.is_ok())
        .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().port();
    let mut balancer = JoinSet::new();
    balancer.spawn(balance(listener, ports));
    engine.register(address).await;
    let (id, client) = (SessionId::new("t"), engine.client());
    client.start(&id, Some(contract())).await.unwrap();
    let log = directory.path().join("first");
    until("both work", async || {
        events(&log)
            .is_ok_and(|events| events.keys().filter(|event| event.starts_with("began work")).count() == 2)
    })
    .await;
    first.kill();
    let ending = tokio::time::timeout(2 * PATIENCE, client.run(&id, None)).await.unwrap().unwrap();
    assert_eq!(ending, Some(TaskEnd::Done));
    let (first, second_log) = (events(&log).unwrap(), events(&directory.path().join("second")).unwrap());
    assert_eq!(first.get("ended baseline-1"), Some(&1), "{first:?}");
    assert!(!second_log.contains_key("began baseline-1"), "{second_log:?}");
    assert!(second_log.contains_key("ended review-1-1"), "{second_log:?}");
    let task = read_task(&store, &id).await.unwrap();
    assert_eq!(task.spent().tokens, 1_000);
    second.terminate();
    drop(second);
}

/// The server of the database ends the connections of a worker again and again, as if it had died. Steps whose results were not
/// kept run again, and the end is that of a task that nobody disturbed.
#[tokio::test]
async fn a_database_that_goes_away_leaves_the_same_end() {
    let Some(engine) = TestEngine::start().await else { return };
    let Some(database) = Database::new() else { return };
    let store = database.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let port = free_port().await;
    let mut command = worker(port, directory.path(), "log");
    let named = format!("{} application_name={}", database.connection, database.schema);
    command.env(SCHEMA, &database.schema).env(TIME, "300").env("PINTLE_TEST_POSTGRES", named);
    let worker = TestProcess::start(&mut command);
    engine.register(port).await;
    let (id, client) = (SessionId::new("t"), engine.client());
    client.start(&id, Some(contract())).await.unwrap();
    let mut ended = 0;
    for _ in 0..20 {
        ended += database.end_connections();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(ended > 0);
    let ending = tokio::time::timeout(2 * PATIENCE, client.run(&id, None)).await.unwrap().unwrap();
    assert_eq!(ending, Some(TaskEnd::Done));
    let alone = MemoryStore::new();
    let mut host = LocalTaskHost::create(&alone, id.clone(), contract()).await.unwrap();
    host.run(Arc::new(ScriptedPerformer::default())).await.unwrap();
    let task = read_task(&store, &id).await.unwrap();
    assert_eq!(
        TaskReport::from_task(&task).to_json().unwrap(),
        TaskReport::from_task(host.task()).to_json().unwrap()
    );
    worker.terminate();
    drop(worker);
}

/// Tables of one test.
struct Database {
    connection: String,
    schema: String,
}

impl Database {
    /// Returns `None` without a server.
    fn new() -> Option<Self> {
        if !pintle_test_conditions::POSTGRESQL.is_present() {
            return None;
        }
        let connection = std::env::var("PINTLE_TEST_POSTGRES").unwrap();
        let unique = SessionId::generate().to_string().replace('-', "");
        let schema = format!("restate_{}_{}", &unique[24..], std::process::id());
        Some(Self { connection, schema })
    }

    async fn connect(&self) -> PostgresStore {
        let options = PostgresOptions::new().with_schema(&self.schema);
        PostgresStore::connect(&self.connection, options).await.unwrap()
    }

    /// Ends the connections that have the name of the schema, and returns their number.
    fn end_connections(&self) -> usize {
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{}'",
            self.schema
        );
        self.sql(&sql).trim().parse().unwrap()
    }

    fn sql(&self, sql: &str) -> String {
        let output = Command::new("psql").args([&self.connection, "-qAtc", sql]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Database {
    /// Removes the tables.
    fn drop(&mut self) {
        let schema = &self.schema;
        self.sql(&format!("SET client_min_messages TO warning; DROP SCHEMA IF EXISTS \"{schema}\" CASCADE"));
    }
}
