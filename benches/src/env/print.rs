//! A command that prints a gibibyte compared with `cat` at the other end of a pipe.
#![expect(clippy::disallowed_methods, reason = "the programs to compare with must be started")]

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use pintle_env::{ExecRequest, ExecResult, ExecutionEnvironment};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::measure::{Comparison, Row};
use crate::status::{memory, reset_peak};

const AIM: f64 = 1.5;
const ROUNDS: usize = 9;
const LIMIT: Duration = Duration::from_secs(600);
const BYTES: u64 = 1 << 30;
const PRINT: &str = "head -c 1073741824 /dev/zero";

/// Rows: name, baseline, and the target of the baseline's output.
const PRINTS: [(&str, &str, Target); 2] = [
    ("print 1 GiB, all output spooled", "cat, through a pipe to /dev/null", Target::Nothing),
    ("print 1 GiB, compared with a file", "cat, through a pipe to a file", Target::File),
];

#[derive(Clone, Copy)]
enum Target {
    Nothing,
    File,
}

pub(super) fn rows(runtime: &Runtime, wanted: &str) -> Vec<Row> {
    let wanted = PRINTS.into_iter().filter(|(what, ..)| what.contains(wanted));
    wanted.map(|(what, baseline, target)| measure(runtime, what, baseline, target)).collect()
}

fn measure(runtime: &Runtime, what: &'static str, baseline: &'static str, target: Target) -> Row {
    let directory = TempDir::new().expect("there is room for a directory");
    let environment = Arc::new(super::local(directory.path()).build().expect("the path is absolute"));
    let subject = || {
        let (environment, request) = (Arc::clone(&environment), ExecRequest::new(PRINT).with_timeout(LIMIT));
        let running = async move { environment.exec_command(request).await };
        let result = super::on_a_worker(runtime, running).expect("it runs");
        assert_eq!((result.stdout.len(), result.stdout.dropped()), (BYTES, 0), "the spool has all of it");
        result
    };
    let before = memory("VmRSS");
    let peak = reset_peak().then(|| {
        let result: ExecResult = subject();
        drop(result);
        memory("VmHWM").saturating_sub(before)
    });
    let row = Comparison::new(what, baseline, AIM)
        .with_rounds(ROUNDS)
        .measure(|| cat(directory.path(), target), subject);
    runtime.block_on(environment.cleanup()).expect("nothing is left");
    match peak {
        Some(peak) => row.with_note(format!("{what}: resident memory grew by {} KiB at most", peak >> 10)),
        None => row,
    }
}

/// The baseline: a pipe in the shell.
fn cat(directory: &Path, target: Target) {
    let line = match target {
        Target::Nothing => format!("{PRINT} | cat >/dev/null"),
        // Removed within the measurement, as our spool file is.
        Target::File => format!("{PRINT} | cat >file; exec rm file"),
    };
    let status = Command::new("/bin/sh")
        .args(["-c", &line])
        .current_dir(directory)
        .stdin(Stdio::null())
        .status()
        .expect("the shell runs");
    assert!(status.success());
}
