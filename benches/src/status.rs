//! What the system says of this process.
#![expect(clippy::disallowed_methods, reason = "the system tells it in a file")]

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// A line of this process's status, in bytes, such as `VmRSS`; 0 if there is none.
pub(crate) fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or_default() << 10
}

/// Makes the peak of the resident memory, `VmHWM`, begin anew; only Linux can.
pub(crate) fn reset_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// As many open files as the system lets this process have.
pub(crate) fn open_many_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // With fewer, the rows that need them fail and say so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
