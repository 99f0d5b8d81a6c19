//! The command under hard conditions: signals at any moment, a kill, readers that are slow or gone, no terminal.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::lab::Model;
use crate::stopping::{SLEEP, signal, started};

/// A child that ignores TERM is given two seconds; the rest is for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer that forms, a command that leaves a job behind, one that takes its time, and the end.
const EVENTFUL: &str = r#"
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

fn waited(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes that work in a folder. A dead one that nobody has buried works nowhere.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let there =
        all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder));
    there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn assert_nothing_runs_in(folder: &Path, when: &str) {
    let began = Instant::now();
    while !processes_in(folder).is_empty() {
        assert!(began.elapsed() < PATIENCE, "{when}: {:?} run on", processes_in(folder));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Two signals, so long after the start and so long after one another.
fn interrupted_twice(first: u64, second: u64) {
    let model = Model::new(Dialect::AnthropicMessages, EVENTFUL);
    let mut command = model.command("run", &["Go"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for pause in [first, second] {
        std::thread::sleep(Duration::from_millis(pause));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        signal(&child, "INT");
    }
    let when = format!("two signals after {first} and {second} ms");
    let status = waited(&mut child);
    // Before it listens a signal ends it as it ends every program; after the end it comes too late.
    let told = matches!((status.code(), status.signal()), (Some(130 | 0), _) | (None, Some(2)));
    assert!(told, "{when}: {status:?}");
    assert_nothing_runs_in(model.folder.path(), &when);
}

#[test]
fn two_signals_at_any_moment_leave_nothing() {
    const LANES: u64 = 4;
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                for step in 0..10 {
                    interrupted_twice((step * LANES + lane) * 12, (step % 4) * 25);
                }
            });
        }
    });
}

/// Nobody is left to end the command but the lifeline.
#[test]
fn nothing_runs_on_after_a_kill() {
    let model = Model::new(Dialect::AnthropicMessages, SLEEP);
    let (mut child, pid) = started(&model);
    assert!(processes_in(model.folder.path()).contains(&pid));
    signal(&child, "KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_nothing_runs_in(model.folder.path(), "after a kill");
}

#[test]
fn a_slow_reader_gets_everything() {
    let words = "word after word ".repeat(4_000);
    let model = Model::new(Dialect::OpenAiResponses, &format!("[[turn]]\ntext = \"{words}\"\n"));
    let mut command = model.command("run", &["--output", "stream-json", "Write"]);
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
    assert_eq!(waited(&mut child).code(), Some(0));
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
fn a_reader_that_is_gone_ends_the_run_in_every_format() {
    for format in ["text", "json", "stream-json"] {
        let model = Model::new(Dialect::AnthropicMessages, EVENTFUL);
        let mut command = model.command("run", &["--output", format, "Go"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let status = waited(&mut child);
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((status.code(), errors.as_str()), (Some(130), ""), "{format}");
        assert_nothing_runs_in(model.folder.path(), format);
    }
}

#[test]
fn without_a_terminal_and_without_standard_error_it_works_as_it_does_with_them() {
    let model = Model::new(Dialect::AnthropicMessages, EVENTFUL);
    let command = model.command("run", &["Go"]);
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
    assert_nothing_runs_in(model.folder.path(), "without a terminal");
}
