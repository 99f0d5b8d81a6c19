//! An application that dies while its commands run: this test binary, started again.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use pintle_env::{ExecRequest, ExecutionEnvironment};
use tempfile::TempDir;

use super::harness::{Harness, LONG, is_running, run_case};

/// Directory of the application, set for the process that plays it.
const DIRECTORY: &str = "PINTLE_TEST_HOST";

/// Time limit until the commands are gone: ten times half a second of detection, two seconds of
/// grace, and a margin.
const LIMIT: Duration = Duration::from_secs(30);

/// Commands that do not exit on their own; each writes the id of its last process to a file.
const COMMANDS: [(&str, &str); 6] = [
    ("plain", "echo $$ >plain; exec sleep 1000"),
    ("stubborn", "trap '' TERM PIPE HUP; echo $$ >stubborn; while :; do sleep 0.1; done"),
    ("apart", "setsid sh -c 'echo $$ >apart; exec sleep 1000'; true"),
    ("forked", "(setsid sh -c 'sleep 1000 & echo $! >forked' &); sleep 1000"),
    ("unmarked", "env -i /bin/sh -c 'echo $$ >unmarked; exec /bin/sleep 1000'; true"),
    ("orphan", "(env -i /bin/sh -c 'echo $$ >orphan; exec /bin/sleep 1000' &); exec sleep 1000"),
];

#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Exits,
}

/// Plays both roles of a test: the application if started as such, else the observer. One
/// application is killed while another one exits.
pub(crate) fn check(test: &str) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return run_application(Path::new(&directory));
    }
    run_case(async |_| {
        tokio::join!(observe(test, End::Killed), observe(test, End::Exits));
    });
}

async fn observe(test: &str, end: End) {
    let directory = TempDir::new().unwrap();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(DIRECTORY, directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let harness = Harness::new(directory.path(), directory.path());
    let mut ids = Vec::new();
    for (name, _) in COMMANDS {
        ids.push((name, harness.wait_for_line(name).await.parse::<i32>().unwrap()));
    }
    match end {
        End::Killed => host.kill().unwrap(),
        End::Exits => std::fs::write(harness.at("exit"), "").unwrap(),
    }
    host.wait().unwrap();
    let ended = Instant::now();
    for (name, id) in ids {
        while is_running(id) {
            assert!(ended.elapsed() < LIMIT, "{end:?}: {name} still runs");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    while harness.running() > 0 {
        assert!(ended.elapsed() < LIMIT, "{end:?}: {} processes still run", harness.running());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{end:?}: the last command was gone after {:?}", ended.elapsed());
}

fn run_application(directory: &Path) {
    let harness = Harness::new(directory, directory);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut commands = tokio::task::JoinSet::new();
        for (_, line) in COMMANDS {
            let environment = std::sync::Arc::clone(&harness.environment);
            let request = ExecRequest::new(line).with_timeout(LONG * 10);
            commands.spawn(async move { environment.exec_command(request).await });
        }
        while !harness.at("exit").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Without drops, which would terminate the commands in the usual way.
        std::process::exit(0);
    });
}
