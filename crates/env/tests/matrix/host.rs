//! A host that ends without a word while its commands run: this test binary, started once more.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use pintle_env::{ExecRequest, ExecutionEnvironment};
use tempfile::TempDir;

use super::world::{LONG, World, in_a_world, is_running};

/// Names the place of the host, for the process that plays it.
const PLACE: &str = "PINTLE_TEST_HOST";

/// How commands are gone after their host, at the most: half a second, two seconds of grace, and what a slow
/// machine adds, times ten.
const LIMIT: Duration = Duration::from_secs(30);

/// Commands that do not end by themselves; each writes the id of its last process to a file.
const COMMANDS: [(&str, &str); 6] = [
    ("plain", "echo $$ >plain; exec sleep 1000"),
    ("stubborn", "trap '' TERM PIPE HUP; echo $$ >stubborn; while :; do sleep 0.1; done"),
    ("apart", "setsid sh -c 'echo $$ >apart; exec sleep 1000'; true"),
    ("forked", "(setsid sh -c 'sleep 1000 & echo $! >forked' &); sleep 1000"),
    ("unmarked", "env -i /bin/sh -c 'echo $$ >unmarked; exec /bin/sleep 1000'; true"),
    ("orphan", "(env -i /bin/sh -c 'echo $$ >orphan; exec /bin/sleep 1000' &); exec sleep 1000"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Killed,
    Exits,
}

/// Plays both roles of a test: the host if it was started as one, else the one who looks at what is left.
pub(crate) fn ends(test: &str, end: End) {
    if let Some(place) = std::env::var_os(PLACE) {
        play_host(Path::new(&place), end);
        return;
    }
    in_a_world(async |_| {
        let place = TempDir::new().unwrap();
        let mut host = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(PLACE, place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let world = World::new(place.path(), place.path());
        let mut ids = Vec::new();
        for (name, _) in COMMANDS {
            ids.push((name, world.written(name).await.parse::<i32>().unwrap()));
        }
        match end {
            End::Killed => host.kill().unwrap(),
            End::Exits => std::fs::write(world.at("exit"), "").unwrap(),
        }
        host.wait().unwrap();
        let ended = Instant::now();
        for (name, id) in ids {
            while is_running(id) {
                assert!(ended.elapsed() < LIMIT, "{name} runs on");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        while world.running() > 0 {
            assert!(ended.elapsed() < LIMIT, "{} of the host's processes run on", world.running());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("the last command was gone after {:?}", ended.elapsed());
    });
}

fn play_host(place: &Path, end: End) {
    let world = World::new(place, place);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut commands = tokio::task::JoinSet::new();
        for (_, line) in COMMANDS {
            let environment = std::sync::Arc::clone(&world.environment);
            let request = ExecRequest::new(line).with_timeout(LONG * 10);
            commands.spawn(async move { environment.exec_command(request).await });
        }
        while end == End::Killed || !world.at("exit").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Without a drop, which would end the commands in the usual way.
        std::process::exit(0);
    });
}
