//! What the model will say: turns drawn from the seed.

use pintle_testkit::{Call, ErrorEvent, Failure, Finish, Script, Turn};
use serde_json::json;

use crate::chance::Chance;

/// More turns than any session of the soak has answers.
const LENGTH: usize = 400;

const WORDS: [&str; 8] = ["look", "there", "is", "a", "file", "that", "wants", "mending"];

/// The script that belongs to a seed.
pub(crate) fn script(seed: u64) -> Script {
    let mut chance = Chance::of(seed, "script");
    (0..LENGTH).fold(Script::new("soak"), |script, _| script.with_turn(turn(&mut chance)))
}

fn turn(chance: &mut Chance) -> Turn {
    let mut turn = if chance.below(100) < 45 {
        Turn::text(text(chance))
    } else {
        let begin = if chance.flip() { Turn::text(text(chance)) } else { Turn::new() };
        (0..=chance.below(4)).fold(begin, |turn, _| turn.with_call(call(chance)))
    };
    if chance.below(5) == 0 {
        turn = turn.with_reasoning(text(chance));
    }
    if chance.below(30) == 0 {
        turn = turn.with_finish(Finish::Length);
    }
    if chance.below(4) == 0 {
        turn = turn.with_pause_ms(1);
    }
    let failures = match chance.below(100) {
        0 => 4,
        1..=8 => 1,
        _ => 0,
    };
    (0..failures).fold(turn, |turn, _| turn.with_failure(failure(chance)))
}

fn text(chance: &mut Chance) -> String {
    let words: Vec<&str> =
        (0..=chance.below(30)).filter_map(|_| WORDS.get(chance.below(WORDS.len())).copied()).collect();
    format!("{}.", words.join(" "))
}

fn failure(chance: &mut Chance) -> Failure {
    match chance.below(6) {
        0 => Failure::status(500),
        1 => Failure::status(503),
        2 => Failure::status(429).with_retry_after("0"),
        3 => Failure::cut_after_events(2),
        4 => Failure::cut_after_events(0),
        _ => Failure::error_event(ErrorEvent::Overloaded),
    }
}

fn call(chance: &mut Chance) -> Call {
    let run = |command: &str, timeout_ms: u64| {
        Call::new("shell", json!({ "command": command, "timeout_ms": timeout_ms }))
    };
    match chance.below(60) {
        0 => run("trap '' TERM; sleep 600", 100),
        1..=3 => run("sleep 600", 100),
        4..=6 => run("sleep 600 & (setsid sleep 600 &); echo left behind", 20_000),
        7..=9 => run("head -c 300000 /dev/zero | tr '\\0' x", 20_000),
        10..=13 => run("exit 3", 20_000),
        14..=22 => run("sleep 0.03; echo slept", 20_000),
        23..=29 => run("echo hello", 20_000),
        30..=35 => Call::new("write_file", json!({ "file_path": "a.txt", "content": text(chance) })),
        36..=41 => Call::new("read_file", json!({ "file_path": "a.txt" })),
        42..=45 => Call::new("read_file", json!({ "file_path": "missing.txt" })),
        46..=49 => Call::new("glob", json!({ "pattern": "**/*.txt" })),
        50..=53 => Call::new("grep", json!({ "pattern": "file" })),
        54..=56 => Call::new("reed_file", json!({})),
        _ => Call::new("read_file", json!({ "file_path": 7 })),
    }
}
