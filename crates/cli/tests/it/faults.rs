//! Faults of what surrounds a conversation, and bad input, on a real pseudo-terminal.

mod escapes;
mod output;
mod pasted;
mod provider;
mod signals;
mod surroundings;
mod window;

use std::path::Path;
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;

use crate::chat::{begin, chat, count, leave};
use crate::harness::{Harness, pintle, run};
use crate::terminal::Terminal;

/// Deadline for anything that normally happens at once.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until something is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not so in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Scripts a turn with a command that says its own number and then sleeps.
fn sleeping() -> String {
    "[[turn]]\ntext = \"I wait.\"\n[[turn.call]]\ntool = \"shell\"\n\
     arguments = { command = \"echo $$ > pid; exec sleep 600\", timeout_ms = 600000 }\n"
        .to_owned()
}

/// Returns whether the command of [`sleeping`] runs.
fn sleeps(harness: &Harness) -> bool {
    let pid = std::fs::read_to_string(harness.path("pid")).unwrap_or_default();
    let command = std::fs::read_to_string(Path::new("/proc").join(pid.trim()).join("cmdline"));
    command.is_ok_and(|command| command.starts_with("sleep"))
}

/// Checks that the conversation is in the store and goes on there.
fn goes_on(harness: &Harness, said: &str, answer: &str) {
    let mut list = pintle(&["sessions", "list", "--all"]);
    let listed = run(list.env("PINTLE_STATE_DIR", harness.path(".state")));
    assert_eq!(listed.stdout.lines().filter(|line| line.contains(said)).count(), 1, "{listed:?}");
    let mut terminal = begin(harness, &["--continue"]);
    terminal.wait_for_text("continued after");
    terminal.type_keys("go on\r");
    terminal.wait_for_text(answer);
    leave(terminal);
}

/// Returns the most memory that the conversation has had, in KiB.
fn peak_memory(terminal: &Terminal) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says it");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
