//! A place for one row of the matrix, and what is counted before and after it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Once, PoisonError},
    time::{Duration, Instant},
};

use pintle_env::{ExecRequest, ExecResult, ExecutionEnvironment, LocalEnvironment, OutputLimits};
use tempfile::TempDir;

/// Ten times what a row should take.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Marks all processes of a row, beside the marks of the environment.
const VARIABLE: &str = "PINTLE_TEST_WORLD";

static ALONE: Mutex<()> = Mutex::new(());
static WARM: Once = Once::new();

pub(crate) struct World {
    pub(crate) environment: Arc<LocalEnvironment>,
    directory: PathBuf,
    spool: PathBuf,
}

/// Runs a row, then looks whether anything of it is left.
pub(crate) fn in_a_world(row: impl AsyncFnOnce(&World)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The runtime keeps descriptors of its own from the first process on.
    WARM.call_once(|| play(async |world| drop(world.run("true").await)));
    let before = descriptors();
    play(row);
    let left = || {
        let more = |(name, count): &(PathBuf, usize)| *count > before.get(name).copied().unwrap_or(0);
        descriptors().into_iter().filter(more).collect::<Vec<_>>()
    };
    // A thread of the row that is on its way out may hold its descriptors for a moment longer.
    let started = Instant::now();
    while !left().is_empty() && started.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(), [], "descriptors are left");
}

fn play(row: impl AsyncFnOnce(&World)) {
    let directory = TempDir::new().unwrap();
    let spool = TempDir::new().unwrap();
    let world = World::new(directory.path(), spool.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        row(&world).await;
        world.environment.cleanup().await.unwrap();
    });
    assert_eq!(world.running(), 0, "processes are left");
    assert_eq!(children(), [], "children are left");
    assert_eq!(fs::read_dir(spool.path()).unwrap().count(), 0, "spool files are left");
    let hidden = fs::read_dir(directory.path()).unwrap().flatten();
    let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "temporary files are left");
}

impl World {
    /// The same place for every process that is given the same directory.
    pub(crate) fn new(directory: &Path, spool: &Path) -> Self {
        let (directory, spool) = (directory.canonicalize().unwrap(), spool.to_path_buf());
        let limits = OutputLimits::default().with_spool_dir(&spool);
        let environment = LocalEnvironment::builder(&directory)
            .variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            .variable(VARIABLE, &directory)
            .output_limits(limits)
            .build()
            .unwrap();
        Self { environment: Arc::new(environment), directory, spool }
    }

    /// One more environment, which keeps this many bytes of an output.
    pub(crate) fn environment_with_total(&self, bytes: u64) -> LocalEnvironment {
        let limits = OutputLimits::default().with_spool_dir(&self.spool).with_total(bytes);
        LocalEnvironment::builder(&self.directory)
            .variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            .output_limits(limits)
            .build()
            .unwrap()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) async fn run(&self, line: &str) -> ExecResult {
        let request = ExecRequest::new(line).with_timeout(LONG);
        self.environment.exec_command(request).await.unwrap()
    }

    /// The line that a command wrote to a file, once it is there.
    pub(crate) async fn written(&self, name: &str) -> String {
        let started = Instant::now();
        loop {
            let content = fs::read_to_string(self.at(name)).unwrap_or_default();
            if let Some(line) = content.strip_suffix('\n') {
                return line.to_owned();
            }
            assert!(started.elapsed() < LONG, "{name} was not written");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many processes carry the mark of this world.
    pub(crate) fn running(&self) -> usize {
        let mark = format!("{VARIABLE}={}", self.directory.display());
        let carries = |id: &i32| {
            let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        processes().filter(carries).count()
    }
}

/// The text of the standard output.
pub(crate) fn text(result: &ExecResult) -> String {
    result.stdout.to_text_lossy().unwrap()
}

/// The children of this process, zombies among them.
pub(crate) fn children() -> Vec<i32> {
    let parent = std::process::id().cast_signed();
    processes().filter(|id| fields(*id).is_some_and(|(_, of)| of == parent)).collect()
}

/// Whether a process runs: one that ended and is not yet waited for does not.
pub(crate) fn is_running(id: i32) -> bool {
    fields(id).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// A line of this process's status, in bytes.
pub(crate) fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Makes `VmHWM` begin anew.
pub(crate) fn reset_memory_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// What the open descriptors stand for, and how many do. The one through which they are listed is gone before
/// its name could be asked for.
fn descriptors() -> BTreeMap<PathBuf, usize> {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten().collect::<Vec<_>>();
    let mut named = BTreeMap::new();
    for name in open.iter().filter_map(|entry| fs::read_link(entry.path()).ok()) {
        *named.entry(name).or_default() += 1;
    }
    named
}

fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
}

/// The state and the parent.
fn fields(id: i32) -> Option<(String, i32)> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
