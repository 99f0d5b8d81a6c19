//! Signals and closed pipes stop the command and everything it started.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;

use crate::harness::Harness;

pub(crate) const SLEEP: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo $$ > pid; trap '' TERM; while :; do sleep 1; done\", timeout_ms = 600000 }\n";

/// Starts a run, waits until its shell command runs, and returns the process id of that command.
#[expect(clippy::zombie_processes, reason = "the caller waits for it")]
pub(crate) fn start(harness: &Harness) -> (Child, String) {
    let mut child = harness
        .command("run", &["--no-sandbox", "Sleep"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the command never started: {:?}", child.wait_with_output());
        }
        if let Ok(pid) = std::fs::read_to_string(harness.path("pid"))
            && pid.ends_with('\n')
        {
            return (child, pid.trim().to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn has_exited(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

#[test]
fn first_signal_shuts_down_gracefully() {
    let check = |name: &str| {
        let harness = Harness::new(Dialect::AnthropicMessages, SLEEP);
        let (child, pid) = start(&harness);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{name}: {output:?}");
        assert!(has_exited(&pid), "{name}: the command that ignores TERM exits before pintle");
    };
    // Each waits until the command is killed.
    std::thread::scope(|scope| {
        for name in ["INT", "TERM", "HUP"] {
            scope.spawn(move || check(name));
        }
    });
}

#[test]
fn second_signal_exits_at_once() {
    let harness = Harness::new(Dialect::AnthropicMessages, SLEEP);
    let (mut child, pid) = start(&harness);
    signal(&child, "INT");
    // The notice shows that the first signal was handled.
    let mut seen = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !seen.contains("interrupt again") {
        assert!(errors.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(has_exited(&pid), "the command that ignores TERM is killed");
}

#[test]
fn closed_pipe_exits_silently() {
    let turns = format!("[[turn]]\ntext = \"{}\"\npause_ms = 20\n", "word after word ".repeat(500));
    let harness = Harness::new(Dialect::OpenAiResponses, &turns);
    let mut child = harness
        .command("run", &["--no-sandbox", "--output", "stream-json", "Write"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 200]).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(130), ""));
}
