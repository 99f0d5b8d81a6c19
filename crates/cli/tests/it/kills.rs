//! The command is killed at random moments of its work in a repository, and taken up again: the work is done, each command
//! ran at most once, and nothing is left behind (guarantees G3 to G7).
//!
//! `KILLS=500 cargo test -p pintle-cli --test it kills -- --nocapture` kills that often and prints the counts.
#![expect(clippy::indexing_slicing, reason = "a value that is missing fails the test")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_test_conditions::is_full;
use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{Harness, KEY, pintle, run};

/// Number of kills without `KILLS`, by default and in the long run.
const KILLS: [u32; 2] = [4, 40];

/// Rounds of one piece of work; each changes files and runs a command with an effect outside.
const ROUNDS: usize = 4;

/// Result of a call whose effect nobody knows.
const UNKNOWN: &str = "Interrupted: the program that ran this call ended";

/// Totals over all pieces of work.
#[derive(Debug, Default)]
struct Counts {
    kills: u32,
    commands: u32,
    unknown: u32,
    edits: u32,
}

/// A repository, a session's state, and the place of effects outside of the repository.
struct Work {
    harness: Harness,
    outside: tempfile::TempDir,
}

/// Returns the script: in each round a file is written, two are edited, and a command leaves a line outside.
fn script(effects: &Path) -> String {
    let mut script = String::new();
    for round in 0..ROUNDS {
        let effects = effects.display();
        let next = round + 1;
        let calls = [
            ("write_file", format!(r#"{{ file_path = "w{round}.txt", content = "one\n" }}"#)),
            (
                "edit_file",
                format!(r#"{{ file_path = "w{round}.txt", old_string = "one", new_string = "two" }}"#),
            ),
            (
                "edit_file",
                format!(
                    r#"{{ file_path = "notes.txt", old_string = "round {round}", new_string = "round {next}" }}"#
                ),
            ),
            ("shell", format!(r#"{{ command = "echo {round} >> {effects}" }}"#)),
        ];
        for (tool, arguments) in calls {
            let _ = write!(script, "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {arguments}\n");
        }
    }
    script + "[[turn]]\ntext = \"All done.\"\n"
}

impl Work {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        let harness = Harness::new(Dialect::AnthropicMessages, &script(&outside.path().join("effects")));
        std::fs::write(harness.path("notes.txt"), "round 0\n").unwrap();
        let init =
            Command::new("git").args(["init", "--quiet"]).current_dir(harness.directory.path()).status();
        assert!(init.unwrap().success());
        Self { harness, outside }
    }

    fn first(&self) -> Command {
        let mut command = self.harness.command("run", &["--no-sandbox", "Work."]);
        command.env("PINTLE_STATE_DIR", self.outside.path().join("state"));
        command
    }

    fn next(&self, arguments: &[&str]) -> Command {
        let mut command = pintle(arguments);
        command.env("PINTLE_STATE_DIR", self.outside.path().join("state")).env("ANTHROPIC_API_KEY", KEY);
        command.current_dir(self.harness.directory.path());
        command
    }

    fn sessions(&self) -> Vec<Value> {
        let output = run(&mut self.next(&["sessions", "list", "--output", "json"]));
        serde_json::from_str(&output.stdout).unwrap_or_default()
    }

    /// Takes up the work, or begins with it if the prompt was not on record.
    fn go_on(&self) -> Command {
        match self.history() {
            None => self.first(),
            Some(history) if history.is_empty() => self.next(&["run", "--continue", "Work."]),
            Some(_) => self.next(&["run", "--continue"]),
        }
    }

    /// Returns the history of the newest session that has a record.
    fn history(&self) -> Option<Vec<Value>> {
        self.sessions().iter().find_map(|session| {
            let id = session["id"].as_str()?;
            let shown = run(&mut self.next(&["sessions", "show", id, "--output", "json"]));
            let shown: Value = serde_json::from_str(&shown.stdout).ok()?;
            shown["history"].as_array().cloned()
        })
    }

    /// Checks what the work has left, and adds it to the counts.
    fn judge(&self, counts: &mut Counts, seed: u64) {
        let id = self.sessions()[0]["id"].as_str().unwrap().to_owned();
        let shown = run(&mut self.next(&["sessions", "show", &id, "--output", "json"]));
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        let mut tools = BTreeMap::new();
        let mut unknown_rounds = Vec::new();
        let (mut answered, mut rounds) = (0, 0);
        for part in shown["history"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|entry| entry["message"]["content"].as_array())
            .flatten()
        {
            if let Some(call) = part.get("tool_call") {
                tools.insert(
                    call["id"].as_str().unwrap().to_owned(),
                    call["name"].as_str().unwrap().to_owned(),
                );
            }
            let Some(result) = part.get("tool_result") else { continue };
            answered += 1;
            let tool = &tools[result["tool_call_id"].as_str().unwrap()];
            let is_unknown = result["content"].as_str().unwrap_or_default().starts_with(UNKNOWN);
            if tool == "shell" {
                counts.commands += 1;
                counts.unknown += u32::from(is_unknown);
                if is_unknown {
                    unknown_rounds.push(rounds);
                }
                rounds += 1;
            } else {
                counts.edits += 1;
                assert!(!is_unknown && result["is_error"] == false, "seed {seed}: {tool}: {result}");
            }
        }
        assert_eq!(
            (answered, tools.len()),
            (4 * ROUNDS, 4 * ROUNDS),
            "seed {seed}: each call has one result"
        );
        let effects = std::fs::read_to_string(self.outside.path().join("effects")).unwrap_or_default();
        for round in 0..ROUNDS {
            let count = effects.lines().filter(|line| *line == round.to_string()).count();
            let least = usize::from(!unknown_rounds.contains(&round));
            assert!((least..=1).contains(&count), "seed {seed}: round {round} had {count} effects");
            assert_eq!(self.harness.read(&format!("w{round}.txt")), "two\n", "seed {seed}");
        }
        assert_eq!(self.harness.read("notes.txt"), format!("round {ROUNDS}\n"), "seed {seed}");
        let left =
            std::fs::read_dir(self.harness.directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".pintle-")).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?} was left behind");
        assert_eq!(run(&mut self.next(&["sessions", "verify", &id])).code, Some(0), "seed {seed}");
    }
}

/// Kills a command after some time. Returns how long it ran if it ended before.
fn kill_after(mut child: Child, time: Duration) -> Option<Duration> {
    let start = Instant::now();
    while start.elapsed() < time {
        if child.try_wait().unwrap().is_some() {
            return Some(start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn quietly(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Numbers that look random, from a seed that a failure prints.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u128) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u64::try_from(u128::from(self.0 >> 33) % limit.max(1)).unwrap_or(0)
    }
}

#[test]
fn killed_work_is_taken_up_and_done_once() {
    let default = KILLS[usize::from(is_full())];
    let wanted = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(default);
    let mut seed = u64::from(std::process::id());
    let mut counts = Counts::default();
    // The shortest time that the work has taken without a kill. Other tests may slow down the first measurement.
    let work = Work::new();
    let mut first = work.first();
    let start = Instant::now();
    assert_eq!(run(&mut first).code, Some(0));
    let mut whole = start.elapsed();
    work.judge(&mut counts, seed);
    while counts.kills < wanted {
        seed += 1;
        let (work, mut random) = (Work::new(), Random(seed));
        let mut is_first = true;
        while counts.kills < wanted {
            let time = Duration::from_micros(random.below(whole.as_micros()));
            if let Some(taken) = kill_after(quietly(work.go_on()), time) {
                whole = if is_first { whole.min(taken) } else { whole };
                break;
            }
            is_first = false;
            counts.kills += 1;
            if random.below(3) == 0 {
                break;
            }
        }
        let last = run(&mut work.go_on());
        let is_done = last.code == Some(0) || last.stderr.contains("has no unfinished run");
        assert!(is_done, "seed {seed}: {last:?}");
        work.judge(&mut counts, seed);
    }
    println!("{counts:?}");
}
