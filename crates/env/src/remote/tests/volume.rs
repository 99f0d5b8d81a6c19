//! Output larger than the limits.
#![expect(clippy::disallowed_methods, reason = "the tests look at the memory of their own process")]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::matrix::LONG;
use crate::{command::ExecRequest, environment::ExecutionEnvironment, output::OutputLimits};

/// Additional memory that the process may use: chunks in flight, and kept output.
const MEMORY: u64 = 32 << 20;

/// Output limits of the environments under test.
pub(crate) fn limits() -> OutputLimits {
    OutputLimits::default().with_total(1 << 20)
}

/// Lets a remote command print this many bytes. All of them pass, few are kept, and the environment
/// is not reported as lost meanwhile. Must run in a process of its own, since its memory is
/// measured.
pub(crate) async fn check_flood(env: &dyn ExecutionEnvironment, bytes: u64) {
    let passed = Arc::new(AtomicU64::new(0));
    let sink = Arc::clone(&passed);
    let request = ExecRequest::new(format!("head -c {bytes} /dev/zero"))
        .with_timeout(Duration::from_secs(300))
        .with_on_output(Arc::new(move |chunk| {
            sink.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
        }));
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let result = env.exec_command(request).await.unwrap();
    assert!(result.success(), "{result:?}");
    assert_eq!(passed.load(Ordering::Relaxed), bytes);
    assert_eq!(result.stdout.len() + result.stdout.dropped(), bytes);
    let more = memory("VmHWM").saturating_sub(before);
    println!("{bytes} bytes took {:.1} s and {} KiB", result.duration.as_secs_f64(), more >> 10);
    assert!(more < MEMORY, "{more} bytes of memory");
}

/// Floods both streams from the start, several times; neither may block messages on the other one.
pub(crate) async fn floods_block_nothing(env: &dyn ExecutionEnvironment) {
    for line in ["yes & yes >&2 & wait", "exec yes", "exec yes >&2"] {
        for _ in 0..4 {
            let request = ExecRequest::new(line).with_timeout(Duration::from_millis(200));
            let result = tokio::time::timeout(LONG, env.exec_command(request)).await.expect("a flood hangs");
            assert!(result.unwrap().timed_out, "{line}");
        }
    }
}

/// Returns a field of this process's status, in bytes.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
