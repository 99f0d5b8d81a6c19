//! Tasks on a durable engine, compared with the same tasks in one process.
//!
//! Both use file stores and steps that do no work, so only the cost of durability is measured. The engine is the one that
//! `cargo xtask services up restate` installs; without it the rows are skipped.
#![expect(clippy::disallowed_methods, reason = "the engine must be started")]

use std::cell::Cell;
use std::env;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pintle_restate::{IdentityKeys, RestateEngine, serve};
use pintle_store::{FileStore, SessionId};
use pintle_workflow::testing::{ScriptedPerformer, SinglePerformerFactory, contract};
use pintle_workflow::{LocalTaskHost, TaskEnd, TaskSupervisor};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::measure::Comparison;
use crate::report::Report;

const TASK: &str = "a task of ten steps on Restate";

/// Allowed multiple of the time of the same task in one process.
const AIM: f64 = 3.0;

/// Steps of a task.
const STEPS: f64 = 10.0;

const ROUNDS: usize = 15;

/// Time limit of a start.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(wanted: &str) -> Report {
    let mut report = Report::default();
    if !TASK.contains(wanted) {
        return report;
    }
    let Some(program) = env::var_os("PINTLE_TEST_RESTATE") else {
        println!("SKIPPED: {TASK}, PINTLE_TEST_RESTATE is not set, see `cargo xtask services up restate`");
        return report;
    };
    let runtime = crate::runtime();
    let directory = TempDir::new().expect("there is room for a directory");
    let store = |name: &str| Arc::new(FileStore::open(directory.path().join(name)).expect("it is new"));
    let engine = LocalEngine::start(&runtime, Path::new(&program), &directory.path().join("engine"));
    let here = store("here");
    let worker = Arc::new(TaskSupervisor::new(
        store("there"),
        Arc::new(SinglePerformerFactory(Arc::new(ScriptedPerformer::default()))),
    ));
    engine.add_worker(&runtime, worker);
    let number = Cell::new(0_u32);
    let id = || {
        number.set(number.get() + 1);
        SessionId::new(format!("t{}", number.get()))
    };
    let row = Comparison::new(TASK, "the same task in one process", AIM).with_rounds(ROUNDS).measure(
        || {
            let (store, id) = (Arc::clone(&here), id());
            crate::on_a_worker(&runtime, async move {
                let mut host =
                    LocalTaskHost::create(store.as_ref(), id, contract()).await.expect("it is new");
                host.run(Arc::new(ScriptedPerformer::default())).await.expect("the store holds it")
            })
        },
        || {
            let (client, id) = (engine.client(), id());
            crate::on_a_worker(&runtime, async move {
                let ending = client.run(&id, Some(contract())).await.expect("the engine answers");
                assert_eq!(ending, Some(TaskEnd::Done));
            });
        },
    );
    let more = row.spread(crate::measure::Round::more).map_or(0.0, |spread| spread.median);
    report.rows.push(row.with_note(format!("{TASK}: {:.2} ms more for each step", more / STEPS)));
    report
}

/// An engine with a directory and ports of its own.
struct LocalEngine {
    process: Child,
    ingress: u16,
    admin: u16,
}

impl LocalEngine {
    fn start(runtime: &Runtime, program: &Path, directory: &Path) -> Self {
        let [ingress, admin, node] = std::array::from_fn(|_| free_port());
        let mut command = Command::new(program);
        command.args(["--no-logo", "--node-name", "one", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1"]);
        command.args(["--advertised-host", "127.0.0.1", "--bind-port", &node.to_string()]);
        command.arg("--base-dir").arg(directory);
        for (name, value) in [
            ("RESTATE_INGRESS__BIND_PORT", ingress.to_string()),
            ("RESTATE_ADMIN__BIND_PORT", admin.to_string()),
            ("RESTATE_DISABLE_TELEMETRY", "true".to_owned()),
            ("RESTATE_DEFAULT_NUM_PARTITIONS", "1".to_owned()),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let engine = Self { process: command.spawn().expect("the engine is installed"), ingress, admin };
        runtime.block_on(until(async || engine.client().check().await.is_ok()));
        engine
    }

    fn client(&self) -> RestateEngine {
        RestateEngine::new(&format!("http://127.0.0.1:{}", self.ingress)).expect("it is an address")
    }

    /// Serves the tasks of a supervisor until the runtime ends.
    fn add_worker(&self, runtime: &Runtime, supervisor: Arc<TaskSupervisor>) {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            let address = listener.local_addr().expect("it listens");
            runtime.spawn(async move {
                serve(listener, supervisor, &IdentityKeys::default(), std::future::pending()).await;
            });
            let admin = format!("http://127.0.0.1:{}", self.admin);
            until(async || RestateEngine::register(&admin, &format!("http://{address}")).await.is_ok()).await;
        });
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < end, "the engine is not ready within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it listens").port()
}
