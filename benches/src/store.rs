//! Sessions that are kept: what recording costs, and what opening, listing, reading and verifying take.
#![expect(clippy::disallowed_methods, reason = "measures files, and runs this program again")]

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use pintle_agent::{
    Barrier, Fence, Journal, RecordEntry, RecordHeader, Session, SessionId, SessionStatus, Timestamp,
};
use pintle_store::{FileStore, Filter, Page, SessionStore, StoredJournal, Summary, read_record};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::measure::{Aim, Comparison, Moment, Row};
use crate::model::{Endpoint, ModelServer};
use crate::plan::Plan;
use crate::report::{Bound, Fact, Report};
use crate::sessions;
use crate::status::{memory, reset_peak};

/// Argument with which this program reads and verifies a session and prints its memory.
pub(crate) const READ: &str = "read-session";

const ROUNDS: usize = 200;
const CALLS: usize = 8;
const RECORDED: &str = "200 rounds with a shell command, kept in files without syncs";
const SYNCED: &str = "200 rounds with a shell command, kept in files";
const SYNCS: &str = "synced appends per round of 8 parallel shell commands";
const SIZE: &str = "bytes on disk per byte of history, 500 rounds with results of 4 KB";
const OPENED: &str = "a session of 10,000 turns: more time to open than an empty one";
const RESUMED: [(&str, usize); 3] = [
    ("a session of 100 turns: time to read its record and resume it", 100),
    ("a session of 1,000 turns: time to read its record and resume it", 1_000),
    ("a session of 10,000 turns: time to read its record and resume it", TURNS),
];
const LISTED: &str = "10,000 sessions: time to list the newest 20";
const MEMORY: &str = "a journal of 1 GB: peak of memory while it is read, and while it is verified";

/// Turns of a long session: a call and its result in each round.
const TURNS: usize = 10_000;

const SESSIONS: u64 = 10_000;
const LARGE: u64 = 1 << 30;

pub(crate) fn run(wanted: &str) -> Report {
    let bench = Bench { runtime: crate::runtime(), model: ModelServer::start(None) };
    let mut report = Report::default();
    if RECORDED.contains(wanted) {
        report.rows.push(bench.recorded(RECORDED, false, Aim::Cpu(1.05)));
    }
    if SYNCED.contains(wanted) {
        report.rows.push(bench.recorded(SYNCED, true, Aim::Wall(2.0)));
    }
    let mut measure = |name: &str, measure: fn(&Bench) -> Fact| {
        report.facts.extend(name.contains(wanted).then(|| measure(&bench)));
    };
    measure(SYNCS, Bench::syncs);
    measure(SIZE, Bench::size);
    measure(OPENED, Bench::opened);
    measure(LISTED, Bench::listed);
    measure(MEMORY, Bench::memory);
    let resumed = RESUMED.into_iter().filter(|(name, _)| name.contains(wanted));
    report.facts.extend(resumed.map(|(name, turns)| bench.resumed(name, turns)));
    report
}

struct Bench {
    runtime: Runtime,
    model: ModelServer,
}

/// A store in a directory of its own, beside a working directory.
struct Place {
    directory: TempDir,
    store: FileStore,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().expect("there is room for a directory");
        let store = FileStore::open(directory.path().join("store")).expect("the directory can be written");
        Self { directory, store }
    }

    async fn journal(&self) -> (SessionId, StoredJournal) {
        let id = SessionId::generate();
        let summary = Summary::new(id.clone(), Timestamp::from_millis(0));
        let writer = self.store.create(summary.clone()).await.expect("there is room for a session");
        (id, StoredJournal::new(writer, summary))
    }
}

/// Journal that counts the appends that wait for the disk, and does not wait if `is_unsynced`.
#[derive(Debug)]
struct Counting {
    inner: StoredJournal,
    synced: Arc<AtomicU64>,
    is_unsynced: bool,
}

#[async_trait]
impl Journal for Counting {
    fn begin(&mut self, header: &RecordHeader) -> io::Result<()> {
        self.inner.begin(header)
    }

    async fn append(&mut self, entries: &[Arc<RecordEntry>], barrier: Barrier) -> io::Result<()> {
        self.synced.fetch_add(u64::from(barrier == Barrier::Synced), Ordering::Relaxed);
        let barrier = if self.is_unsynced { Barrier::Written } else { barrier };
        self.inner.append(entries, barrier).await
    }

    fn fence(&self) -> Fence {
        self.inner.fence()
    }

    async fn report_status(&mut self, status: &SessionStatus) -> io::Result<()> {
        self.inner.report_status(status).await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

impl Bench {
    /// Compares rounds without a record with recorded ones. What the disk takes to sync, also of CPU, is no part of it
    /// without `is_synced`.
    fn recorded(&self, what: &str, is_synced: bool, aim: Aim) -> Row {
        let side = |is_kept: bool| {
            let endpoint = self.model.endpoint(&Plan::rounds("shell", ROUNDS));
            let place = Place::new();
            let begun = Moment::now();
            self.runtime.block_on(async {
                let journal = if is_kept {
                    let inner = place.journal().await.1;
                    Some(Counting { inner, synced: Arc::default(), is_unsynced: !is_synced })
                } else {
                    None
                };
                work(&endpoint, place.directory.path(), journal).await;
            });
            begun.until(Moment::now()).per(ROUNDS as f64)
        };
        Comparison::new(what, "the same without a record", aim)
            .with_rounds(15)
            .compare(|| side(false), || side(true))
    }

    fn syncs(&self) -> Fact {
        let plan = Plan::Rounds { tool: "shell".to_owned(), rounds: ROUNDS, calls: CALLS };
        let counted = (0..3).map(|_| {
            let (endpoint, place) = (self.model.endpoint(&plan), Place::new());
            let synced = Arc::new(AtomicU64::new(0));
            self.runtime.block_on(async {
                let inner = place.journal().await.1;
                let journal = Counting { inner, synced: Arc::clone(&synced), is_unsynced: false };
                work(&endpoint, place.directory.path(), Some(journal)).await;
            });
            synced.load(Ordering::Relaxed) as f64 / ROUNDS as f64
        });
        // The first of the two is that of the request before the calls.
        Fact::new(SYNCS, "", Bound::AtMost(3.0), counted.collect())
    }

    fn size(&self) -> Fact {
        let ratio = || {
            let (endpoint, place) = (self.model.endpoint(&Plan::rounds("page", 500)), Place::new());
            let history = self.runtime.block_on(async {
                let journal = place.journal().await.1;
                work(&endpoint, place.directory.path(), Some(journal)).await
            });
            size_of(place.store.root()) as f64 / history as f64
        };
        Fact::new(SIZE, "×", Bound::AtMost(1.3), vec![ratio()])
    }

    fn opened(&self) -> Fact {
        let (long, empty) = (self.session_of(TURNS), self.session_of(0));
        let open = |(place, id): &(Place, SessionId)| {
            let begun = Instant::now();
            let opened = self.runtime.block_on(place.store.open(id));
            drop(opened.expect("nobody has it"));
            begun.elapsed().as_secs_f64() * 1_000.0
        };
        let more = (0..7).map(|_| open(&long) - open(&empty));
        Fact::new(OPENED, "ms", Bound::AtMost(100.0), more.collect())
    }

    fn resumed(&self, name: &'static str, turns: usize) -> Fact {
        let (place, id) = self.session_of(turns);
        let endpoint = self.model.endpoint(&Plan::text());
        let times = (0..5).map(|_| {
            let begun = Instant::now();
            self.runtime.block_on(async {
                let record = read_record(&place.store, &id).await.expect("it is intact");
                let client = sessions::client(&endpoint);
                let environment = sessions::environment(place.directory.path());
                let builder = Session::builder(client, sessions::profile(), environment).resume(record);
                drop(builder.build().expect("it can be resumed"));
            });
            begun.elapsed().as_secs_f64() * 1_000.0
        });
        Fact::new(name, "ms", Bound::None, times.collect())
    }

    fn listed(&self) -> Fact {
        let place = Place::new();
        self.runtime.block_on(async {
            for number in 0..SESSIONS {
                let id = SessionId::generate();
                let at = Timestamp::from_millis(i64::try_from(number).unwrap_or(0));
                let summary = Summary::new(id, at).with_property("directory", "/somewhere/or/other");
                drop(place.store.create(summary).await.expect("there is room for a session"));
            }
        });
        let times = (0..7).map(|_| {
            let begun = Instant::now();
            let listed = self.runtime.block_on(place.store.list(&Filter::default(), &Page::of(20)));
            assert_eq!(listed.expect("it can be listed").len(), 20);
            begun.elapsed().as_secs_f64() * 1_000.0
        });
        Fact::new(LISTED, "ms", Bound::AtMost(300.0), times.collect())
    }

    fn memory(&self) -> Fact {
        let place = Place::new();
        let id = self.runtime.block_on(async {
            let id = SessionId::generate();
            let summary = Summary::new(id.clone(), Timestamp::from_millis(0));
            let mut writer = place.store.create(summary).await.expect("there is room for a session");
            // Strings that are short enough to stay in the line.
            let line = format!(r#"{{"input":"x","a":"{0}","b":"{0}"}}"#, "x".repeat(15_000));
            for _ in 0..LARGE / line.len() as u64 {
                writer.append(vec![line.clone()], Barrier::Written).await.expect("there is room");
            }
            id
        });
        let root = place.store.root().display().to_string();
        let peaks = ["read", "verify"].map(|how| {
            let program = std::env::current_exe().expect("this program has a file");
            let output = Command::new(program).args([READ, how, &root, id.as_str()]).output();
            let output = output.expect("this program runs");
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            text.parse::<f64>().expect("it prints its memory") / f64::from(1 << 20)
        });
        Fact::new(MEMORY, "MiB", Bound::AtMost(32.0), peaks.to_vec())
    }

    /// Creates a session with this many turns of a conversation, as a journal has them.
    fn session_of(&self, turns: usize) -> (Place, SessionId) {
        let place = Place::new();
        let endpoint = self.model.endpoint(&Plan::rounds("note", turns / 2));
        let id = self.runtime.block_on(async {
            let (id, journal) = place.journal().await;
            work(&endpoint, place.directory.path(), Some(journal)).await;
            id
        });
        (place, id)
    }
}

/// Runs a session to its end. Returns the size of its history, in bytes.
async fn work(endpoint: &Endpoint, directory: &Path, journal: Option<impl Journal>) -> usize {
    let environment = sessions::environment(directory);
    let mut profile = sessions::profile();
    let page =
        sessions::NoopTool::new("page").with_output("a line of forty characters, more or less\n".repeat(100));
    profile.tool_registry.register(page).expect("the tool is well formed");
    let mut builder =
        Session::builder(sessions::client(endpoint), profile, environment).with_config(sessions::config());
    if let Some(journal) = journal {
        builder = builder.journal(journal);
    }
    let session = builder.build().expect("it is complete");
    sessions::submit(&session, "Do what there is to do.").await;
    let history = session.history();
    session.detach().await;
    let sizes =
        history.iter().map(|turn| serde_json::to_string(turn.item.message()).map_or(0, |text| text.len()));
    sizes.sum()
}

/// Returns the size of all files below a directory.
fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("the directory can be read");
    let sizes = entries.filter_map(Result::ok).map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Runs in the other process: reads or verifies a session, and prints the growth of its peak memory in bytes.
pub(crate) fn print_memory(arguments: &[String]) -> io::Result<()> {
    let [how, root, id] = arguments else { return Err(io::ErrorKind::InvalidInput.into()) };
    let store = FileStore::open(root).map_err(io::Error::other)?;
    let id = SessionId::new(id.as_str());
    let runtime = crate::runtime();
    let before = memory("VmRSS");
    let _ = reset_peak();
    runtime.block_on(async {
        if how == "verify" {
            let verified = store.verify(&id, None).await.map_err(io::Error::other)?;
            assert!(verified.is_intact());
            return Ok(());
        }
        let mut reader = store.read(&id, 1).await.map_err(io::Error::other)?;
        while reader.next().await.map_err(io::Error::other)?.is_some() {}
        Ok::<(), io::Error>(())
    })?;
    println!("{}", memory("VmHWM").saturating_sub(before));
    Ok(())
}
