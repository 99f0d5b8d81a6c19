//! Signals and closed pipes: it stops, and nothing runs on.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;

use crate::lab::Model;

pub(crate) const SLEEP: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo $$ > pid; trap '' TERM; while :; do sleep 1; done\", timeout_ms = 600000 }\n";

/// Starts a run and waits until its command runs; gives the command's process id.
#[expect(clippy::zombie_processes, reason = "the caller waits for it")]
pub(crate) fn started(model: &Model) -> (Child, String) {
    let mut child = model
        .command("run", &["Sleep"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        if Instant::now() > give_up {
            child.kill().unwrap();
            panic!("the command never started: {:?}", child.wait_with_output());
        }
        if let Ok(pid) = std::fs::read_to_string(model.path("pid"))
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

fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

#[test]
fn one_signal_ends_the_run_in_order() {
    for name in ["INT", "TERM", "HUP"] {
        let model = Model::new(Dialect::AnthropicMessages, SLEEP);
        let (child, pid) = started(&model);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{name}: {output:?}");
        assert!(is_gone(&pid), "{name}: the command that ignores TERM is gone before pintle is");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let model = Model::new(Dialect::AnthropicMessages, SLEEP);
    let (mut child, pid) = started(&model);
    signal(&child, "INT");
    // The first one has been seen when it is told.
    let mut seen = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !seen.contains("once more") {
        assert!(errors.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_gone(&pid), "the command that ignores TERM is gone all the same");
}

#[test]
fn a_closed_pipe_ends_the_run_quietly() {
    let turns = format!("[[turn]]\ntext = \"{}\"\npause_ms = 20\n", "word after word ".repeat(500));
    let model = Model::new(Dialect::OpenAiResponses, &turns);
    let mut child = model
        .command("run", &["--output", "stream-json", "Write"])
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
