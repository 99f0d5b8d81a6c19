//! Environment for one case of the matrix, with checks for leftovers.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Once, PoisonError},
    time::{Duration, Instant},
};

use pintle_env::{ExecRequest, ExecResult, ExecutionEnvironment, LocalEnvironment, OutputLimits};
use tempfile::TempDir;

/// Ten times what a case should take.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Variable that identifies all processes of a case, in addition to the environment's own tag.
const VARIABLE: &str = "PINTLE_TEST_CASE";

static ALONE: Mutex<()> = Mutex::new(());
static WARM_UP: Once = Once::new();

pub(crate) struct Harness {
    pub(crate) environment: Arc<LocalEnvironment>,
    directory: PathBuf,
    spool: PathBuf,
}

/// Runs a case, then checks that it left nothing behind.
pub(crate) fn run_case(case: impl AsyncFnOnce(&Harness)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The runtime keeps some descriptors from the first process on.
    WARM_UP.call_once(|| run_once(async |harness| drop(harness.run("true").await)));
    let before = descriptors();
    run_once(case);
    let left = || {
        let more = |(name, count): &(PathBuf, usize)| *count > before.get(name).copied().unwrap_or(0);
        descriptors().into_iter().filter(more).collect::<Vec<_>>()
    };
    // An exiting thread of the case may hold its descriptors for a moment longer.
    let started = Instant::now();
    while !left().is_empty() && started.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(), [], "descriptors are left");
}

fn run_once(case: impl AsyncFnOnce(&Harness)) {
    let directory = TempDir::new().unwrap();
    let spool = TempDir::new().unwrap();
    let harness = Harness::new(directory.path(), spool.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        case(&harness).await;
        harness.environment.cleanup().await.unwrap();
    });
    assert_eq!(harness.running(), 0, "processes are left");
    assert_eq!(children(), Vec::<i32>::new(), "children are left");
    assert_eq!(fs::read_dir(spool.path()).unwrap().count(), 0, "spool files are left");
    let hidden = fs::read_dir(directory.path()).unwrap().flatten();
    let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "temporary files are left");
}

impl Harness {
    /// All processes with the same directory share one identity.
    pub(crate) fn new(directory: &Path, spool: &Path) -> Self {
        let (directory, spool) = (directory.canonicalize().unwrap(), spool.to_path_buf());
        let limits = OutputLimits::default().with_spool_dir(&spool);
        let environment = LocalEnvironment::builder(&directory)
            .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            .with_variable(VARIABLE, &directory)
            .with_output_limits(limits)
            .build()
            .unwrap();
        Self { environment: Arc::new(environment), directory, spool }
    }

    /// Creates another environment, with a total limit on output.
    pub(crate) fn environment_with_total(&self, bytes: u64) -> LocalEnvironment {
        let limits = OutputLimits::default().with_spool_dir(&self.spool).with_total(bytes);
        LocalEnvironment::builder(&self.directory)
            .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            .with_output_limits(limits)
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

    /// Waits for the line that a command writes to a file.
    pub(crate) async fn wait_for_line(&self, name: &str) -> String {
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

    /// Counts the processes of this case.
    pub(crate) fn running(&self) -> usize {
        let variable = format!("{VARIABLE}={}", self.directory.display());
        let has_variable = |id: &i32| {
            let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|found| found == variable.as_bytes())
        };
        processes().filter(has_variable).count()
    }
}

/// Returns standard output as text.
pub(crate) fn text(result: &ExecResult) -> String {
    result.stdout.to_text_lossy().unwrap()
}

/// Returns the children of this process, including zombies.
pub(crate) fn children() -> Vec<i32> {
    let parent = std::process::id().cast_signed();
    processes().filter(|id| fields(*id).is_some_and(|(_, of)| of == parent)).collect()
}

/// Returns the child of this process. Waits until it is the only one: a killed child stays a zombie until it is reaped.
pub(crate) async fn only_child() -> i32 {
    let started = Instant::now();
    loop {
        let children = children();
        if let [only] = children[..] {
            return only;
        }
        assert!(started.elapsed() < LONG, "children: {children:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns true for a live process; a zombie is not.
pub(crate) fn is_running(id: i32) -> bool {
    fields(id).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// Returns a field of this process's status, in bytes.
pub(crate) fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Resets `VmHWM`.
pub(crate) fn reset_memory_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Counts open descriptors by target. The descriptor used for listing is closed before its target
/// is read.
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

/// Returns the state and the parent of a process.
fn fields(id: i32) -> Option<(String, i32)> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
