//! Memory of processes and limits of this one, from the system.
#![expect(clippy::disallowed_methods, reason = "reads files of the system")]

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Returns a value of this process's status in bytes, such as `VmRSS`; 0 if it is missing.
pub(crate) fn memory(name: &str) -> u64 {
    memory_of("self", name)
}

/// Returns such a value of the process with this number.
pub(crate) fn memory_of(process: &str, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or_default() << 10
}

/// Returns the resident bytes that a process shares with no other; 0 if the system does not report them.
pub(crate) fn private_memory_of(process: &str) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let kibibytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let each = ["Private_Clean", "Private_Dirty"].into_iter().filter_map(kibibytes);
    each.sum::<u64>() << 10
}

/// Resets the peak of resident memory, `VmHWM`. Returns `false` on systems other than Linux.
pub(crate) fn reset_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Raises the limit of open files to the maximum.
pub(crate) fn open_many_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If that fails, the rows that need many files fail.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
