//! The program of a host: this test binary, which runs a session on its own scripted server.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::protocol::InputKind;
use pintle_agent::{
    Barrier, Fence, Journal, OutcomeStatus, PostedInputs, RecordEntry, RecordHeader, Session, SessionId,
    SessionStatus, SubagentJournals, Timestamp,
};
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_postgres::{PostgresOptions, PostgresStore};
use pintle_store::{
    SessionStore as _, StoreError, StoredJournal, Summary, WorkspaceMatch, match_workspace, read_record,
};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

use crate::harness::{KEY, client, profile};

pub(super) const CONNECTION: &str = "PINTLE_TEST_POSTGRES";
pub(super) const SCHEMA: &str = "PINTLE_TEST_SCHEMA";
/// `begin` or `go_on`; without it, this is not the program of a host.
pub(super) const ROLE: &str = "PINTLE_TEST_HOST";
/// Where the first host stops.
pub(super) const POINT: &str = "PINTLE_TEST_POINT";

/// The start of the command is on record, and the command was not started.
pub(super) const AFTER_COMMIT: &str = "after the commit";
/// The start of the command is not on record.
pub(super) const BEFORE_COMMIT: &str = "before the commit";

pub(super) const WORK: &str = "/work";
/// Directory in which a host says that it has reached its point, and is told to go on.
pub(super) const CONTROL: &str = "/control";

pub(super) const LEASE: Duration = Duration::from_secs(5);

/// Exit code of a host that does not reach the files of the session.
pub(super) const STRANDED: i32 = 3;
/// Exit code of a host that lost the session, or could not finish its work.
const UNFINISHED: i32 = 4;

const DIALECT: Dialect = Dialect::AnthropicMessages;

const SCRIPT: &str = r#"
name = "hosts"
[[turn]]
[[turn.call]]
tool = "write_file"
arguments = { file_path = "notes.txt", content = "begun\n" }
[[turn]]
[[turn.call]]
tool = "shell"
arguments = { command = "hostname >> effects" }
[[turn]]
text = "All done."
"#;

/// Returns the arguments that run the program of a host, in a container.
pub(super) fn arguments() -> [&'static str; 4] {
    let name = concat!(module_path!(), "::run_as_host");
    ["/program", "--exact", name.split_once("::").unwrap().1, "--nocapture"]
}

pub(super) fn id() -> SessionId {
    SessionId::new("s")
}

#[test]
fn run_as_host() {
    let Ok(role) = std::env::var(ROLE) else { return };
    // One thread: what it does not do by itself, nobody does for it while it waits at its point.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::process::exit(runtime.block_on(work(&role)));
}

/// Returns the exit code.
async fn work(role: &str) -> i32 {
    let variable = |name: &str| std::env::var(name).unwrap();
    let options = PostgresOptions::new().with_schema(variable(SCHEMA)).with_lease(LEASE);
    let store = PostgresStore::connect(&variable(CONNECTION), options).await.unwrap();
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(LocalEnvironment::with_host_env(WORK, std::env::vars_os()).unwrap());
    let script = Script::parse(SCRIPT).unwrap();
    let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
    let builder = Session::builder(client(&server, DIALECT, KEY), profile(DIALECT), Arc::clone(&env));
    let (session, outcome) = if role == "begin" {
        let summary = Summary::new(id(), Timestamp::from_millis(0));
        let mut journal = StoredJournal::new(store.create(summary.clone()).await.unwrap(), summary);
        journal.set_workspace(env.as_ref()).await;
        let journal = Stopping { journal, point: variable(POINT), starts: 0 };
        let session = builder.with_id(id()).journal(journal).build().unwrap();
        let run = session.submit("Work");
        (session, run.await)
    } else {
        let summary = store.summary(&id()).await.unwrap().unwrap();
        if match_workspace(&summary, env.as_ref()).await != WorkspaceMatch::Same {
            return STRANDED;
        }
        let writer = loop {
            match store.open(&id()).await {
                Ok(opened) => break opened.writer,
                Err(StoreError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error:?}"),
            }
        };
        let record = read_record(&store, &id()).await.unwrap();
        let journal = StoredJournal::new(writer, summary);
        let mut session = builder.resume(record).journal(journal).build().unwrap();
        let run = session.resumed().expect("its work is under way");
        (session, run.await)
    };
    println!("{outcome:?}");
    session.close().await;
    let is_done = outcome.is_ok_and(|outcome| outcome.status == OutcomeStatus::Completed);
    if is_done { 0 } else { UNFINISHED }
}

/// Journal that stops its host at the start of the second call.
#[derive(Debug)]
struct Stopping {
    journal: StoredJournal,
    point: String,
    /// Calls that were started.
    starts: usize,
}

impl Stopping {
    /// Says that the point is reached, and waits: the host is killed, or frozen and thawed, meanwhile.
    fn wait(&self) {
        let control = Path::new(CONTROL);
        std::fs::write(control.join("reached"), &self.point).unwrap();
        while !control.join("go").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[async_trait]
impl Journal for Stopping {
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()> {
        self.journal.begin(header)
    }

    async fn append(&mut self, entries: &[Arc<RecordEntry>], barrier: Barrier) -> io::Result<()> {
        let is_start = |entry: &&Arc<RecordEntry>| matches!(entry.input.kind, InputKind::ToolStarted { .. });
        let before = self.starts;
        self.starts += entries.iter().filter(is_start).count();
        let is_here = before < 2 && self.starts == 2;
        if is_here && self.point == BEFORE_COMMIT {
            self.wait();
        }
        let appended = self.journal.append(entries, barrier).await;
        if is_here && self.point == AFTER_COMMIT {
            self.wait();
        }
        appended
    }

    fn fence(&self) -> Fence {
        self.journal.fence()
    }

    fn subagents(&self) -> Option<Arc<dyn SubagentJournals>> {
        self.journal.subagents()
    }

    fn posted(&mut self) -> Option<Box<dyn PostedInputs>> {
        self.journal.posted()
    }

    async fn report_status(&mut self, status: &SessionStatus) -> io::Result<()> {
        self.journal.report_status(status).await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.journal.close().await
    }
}
