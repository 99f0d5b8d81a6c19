//! The shortest command compared with a bare spawn of the same shell.
#![expect(clippy::disallowed_methods, reason = "the baseline is a bare spawn")]

use std::{process::Stdio, sync::Arc};

use pintle_env::{ExecRequest, ExecutionEnvironment, LocalEnvironment};
use tempfile::TempDir;
use tokio::{process::Command, runtime::Runtime};

use super::on_a_worker;
use crate::measure::{Comparison, Row};

const AIM: f64 = 1.5;

/// The shell of both sides; our default is bash, which starts more slowly.
const SHELL: &str = "/bin/sh";

/// Sequential commands per measurement.
const COMMANDS: usize = 20;

pub(super) fn rows(runtime: &Runtime, wanted: &str) -> Vec<Row> {
    let names = ["exec of true", "exec of true, output read"];
    let wanted: Vec<_> = names.into_iter().filter(|what| what.contains(wanted)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let directory = TempDir::new().expect("there is room for a directory");
    let environment = super::local(directory.path()).with_shell(SHELL).build().expect("the path is absolute");
    let environment = Arc::new(environment);
    let subject = || on_a_worker(runtime, execute(Arc::clone(&environment)));
    let rows = wanted.into_iter().map(|what| match what {
        "exec of true" => Comparison::new(what, "20 × spawn /bin/sh -c true, wait", AIM)
            .measure(|| on_a_worker(runtime, spawn_and_wait()), subject),
        _ => Comparison::new(what, "20 × spawn /bin/sh -c true, read both pipes", AIM)
            .measure(|| on_a_worker(runtime, spawn_and_read()), subject),
    });
    let rows = rows.collect();
    runtime.block_on(environment.cleanup()).expect("nothing is left");
    rows
}

async fn execute(environment: Arc<LocalEnvironment>) {
    for _ in 0..COMMANDS {
        let result = environment.exec_command(ExecRequest::new("true")).await.expect("true runs");
        assert!(result.success());
    }
}

fn shell() -> Command {
    let mut command = Command::new(SHELL);
    command.args(["-c", "true"]).stdin(Stdio::null());
    command
}

async fn spawn_and_wait() {
    for _ in 0..COMMANDS {
        let mut child =
            shell().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the shell starts");
        assert!(child.wait().await.expect("it is waited for").success());
    }
}

async fn spawn_and_read() {
    for _ in 0..COMMANDS {
        assert!(shell().output().await.expect("the shell runs").status.success());
    }
}
