//! Resources of this process.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Time limit for released resources to disappear.
const SETTLING: Duration = Duration::from_secs(20);

/// Allowed growth of memory: a factor for memory kept by the allocator, plus some MiB.
const SHARE: f64 = 1.25;
const SOME_KIB: u64 = 16 << 10;

/// Resources of this process at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Resident memory.
    pub(crate) rss_kib: u64,
    pub(crate) descriptors: usize,
    /// Tasks of the runtime, including those of the server.
    pub(crate) tasks: usize,
    pub(crate) threads: u64,
    /// Child processes, including zombies, and processes that work in the soak's directory.
    pub(crate) processes: usize,
    /// Files and directories in the soak's directory.
    pub(crate) files: usize,
}

impl Figures {
    pub(crate) const HEAD: &str = "  inputs  RSS, KiB  descriptors  tasks  threads  processes  files";

    /// Returns the current resources.
    pub(crate) fn now(root: impl AsRef<Path>) -> Self {
        let root = root.as_ref();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            rss_kib: field(&status, "VmRSS:"),
            descriptors: entries("/proc/self/fd"),
            tasks: Handle::current().metrics().num_alive_tasks(),
            threads: field(&status, "Threads:"),
            processes: processes(root),
            files: entries(root),
        }
    }

    /// Waits for the resources to settle, since connections, reapers and dead processes take a moment to disappear.
    pub(crate) async fn settled(root: impl AsRef<Path>, first: Option<&Self>) -> Self {
        let (root, began) = (root.as_ref(), Instant::now());
        let mut lowest = Self::now(root);
        let mut unchanged = 0;
        while began.elapsed() < SETTLING {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = Self::now(root);
            unchanged = if now.counts() == lowest.counts() { unchanged + 1 } else { 0 };
            lowest = now;
            let is_low =
                first.is_none_or(|first| lowest.counts().iter().zip(first.counts()).all(|(a, b)| *a <= b));
            if unchanged >= 10 && is_low {
                break;
            }
        }
        lowest
    }

    fn counts(&self) -> [usize; 4] {
        [self.descriptors, self.tasks, self.processes, self.files]
    }

    /// Returns an error that names the resources that have grown.
    pub(crate) fn compare(&self, first: &Self) -> Result<(), String> {
        let names = ["descriptors", "tasks", "processes", "files"];
        for ((name, now), then) in names.iter().zip(self.counts()).zip(first.counts()) {
            if now > then {
                return Err(format!("{name} are left: {now}, and {then} after the warm-up"));
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "kibibytes are few")]
        let most = first.rss_kib as f64 * SHARE + SOME_KIB as f64;
        #[expect(clippy::cast_precision_loss, reason = "kibibytes are few")]
        if self.rss_kib as f64 > most {
            return Err(format!("memory has grown to {} KiB from {} KiB", self.rss_kib, first.rss_kib));
        }
        Ok(())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rss_kib, descriptors, tasks, threads, processes, files } = self;
        write!(f, "{rss_kib:>9} {descriptors:>12} {tasks:>6} {threads:>8} {processes:>10} {files:>6}")
    }
}

/// Returns a number in the status of a process.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn entries(directory: impl AsRef<Path>) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

/// Returns the number of processes that are children of this one or work in a directory.
fn processes(root: &Path) -> usize {
    let own = u64::from(std::process::id());
    let is_ours = |entry: fs::DirEntry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let works_there = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(root));
        (works_there || field(&status, "PPid:") == own).then_some(())
    };
    fs::read_dir("/proc").map_or(0, |all| all.filter_map(Result::ok).filter_map(is_ours).count())
}
