//! Stress tests: signals at any time, SIGKILL, slow and closed readers, no terminal.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pintle_test_conditions::is_full;
use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{Harness, without_level_notice};
use crate::signals::{SLEEP, signal, start};

/// A child that ignores SIGTERM gets two seconds; the rest allows for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Streamed text, a command that leaves background jobs, a slow command, and a final response.
const BUSY_RUN: &str = r#"
    [[turn]]
    text = "I look at it and then I run it."
    pause_ms = 5
    [[turn.call]]
    tool = "shell"
    arguments = { command = "sleep 600 & (setsid sleep 600 &); sleep 0.1; echo one" }
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "sleep 0.1; echo two" }
    [[turn]]
    text = "That is all there is."
    pause_ms = 5
    "#;

fn wait(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("the command does not exit");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the processes whose working directory is `directory`. Zombies have none.
fn processes_in(directory: &Path) -> Vec<String> {
    let directory = directory.canonicalize().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let there =
        all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory));
    there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn assert_nothing_runs_in(directory: &Path, when: &str) {
    let started = Instant::now();
    while !processes_in(directory).is_empty() {
        assert!(started.elapsed() < TIMEOUT, "{when}: {:?} are still running", processes_in(directory));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends two signals, after `first` and another `second` milliseconds.
fn interrupt_twice(first: u64, second: u64) {
    let harness = Harness::new(Dialect::AnthropicMessages, BUSY_RUN);
    let mut command = harness.command("run", &["Go"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for pause in [first, second] {
        std::thread::sleep(Duration::from_millis(pause));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        signal(&child, "INT");
    }
    let when = format!("two signals after {first} and {second} ms");
    let status = wait(&mut child);
    // A signal before the handlers are installed terminates the process; one after the end comes too late.
    let is_expected = matches!((status.code(), status.signal()), (Some(130 | 0), _) | (None, Some(2)));
    assert!(is_expected, "{when}: {status:?}");
    assert_nothing_runs_in(harness.directory.path(), &when);
}

#[test]
fn two_signals_at_any_time_leave_no_process() {
    const LANES: u64 = 4;
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                for step in (0..10).step_by(if is_full() { 1 } else { 3 }) {
                    interrupt_twice((step * LANES + lane) * 12, (step % 4) * 25);
                }
            });
        }
    });
}

/// After SIGKILL only the supervisor can end the command.
#[test]
fn sigkill_leaves_no_process() {
    let harness = Harness::new(Dialect::AnthropicMessages, SLEEP);
    let (mut child, pid) = start(&harness);
    assert!(processes_in(harness.directory.path()).contains(&pid));
    signal(&child, "KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_nothing_runs_in(harness.directory.path(), "after a kill");
}

#[test]
fn slow_reader_gets_every_event() {
    let words = "word after word ".repeat(4_000);
    let harness = Harness::new(Dialect::OpenAiResponses, &format!("[[turn]]\ntext = \"{words}\"\n"));
    let mut command = harness.command("run", &["--output", "stream-json", "Write"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::with_capacity(512, child.stdout.take().unwrap());
    let (mut lines, mut line) = (Vec::<Value>::new(), String::new());
    while out.read_line(&mut line).unwrap() > 0 {
        if lines.len() % 50 == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        lines.push(serde_json::from_str(&line).unwrap());
        line.clear();
    }
    assert_eq!(wait(&mut child).code(), Some(0));
    let numbers: Vec<u64> = lines
        .iter()
        .filter(|line| line.get("kind").is_some() && line.get("offset").is_none())
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "gapless");
    let text: String = lines
        .iter()
        .filter(|line| line["kind"] == "ASSISTANT_TEXT_DELTA")
        .map(|line| line["data"]["delta"].as_str().unwrap())
        .collect();
    assert_eq!(text, words, "the deltas are the text");
    assert!(lines.last().unwrap().to_string().contains("completed"));
}

#[test]
fn closed_reader_ends_the_run_in_every_format() {
    for format in ["text", "json", "stream-json"] {
        let harness = Harness::new(Dialect::AnthropicMessages, BUSY_RUN);
        let mut command = harness.command("run", &["--output", format, "Go"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let status = wait(&mut child);
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((status.code(), &*without_level_notice(&errors)), (Some(130), ""), "{format}");
        assert_nothing_runs_in(harness.directory.path(), format);
    }
}

#[test]
fn works_without_a_terminal_and_standard_error() {
    let harness = Harness::new(Dialect::AnthropicMessages, BUSY_RUN);
    let command = harness.command("run", &["Go"]);
    let mut shell = Command::new("setsid");
    shell.args(["--wait", "sh", "-c", "exec \"$0\" \"$@\" 2>&- <&-"]).arg(command.get_program());
    shell.args(command.get_args()).env_clear().stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let output = shell.output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains("That is all there is.") && !out.contains('\u{1b}'), "{out}");
    assert_nothing_runs_in(harness.directory.path(), "without a terminal");
}
