//! Random turns of the model, derived from the seed.

use pintle_testkit::{Call, ErrorEvent, Failure, Finish, Script, Turn};
use serde_json::json;

use crate::random::Random;

/// More turns than any session of the soak has responses.
const LENGTH: usize = 400;

const WORDS: [&str; 8] = ["look", "there", "is", "a", "file", "that", "wants", "mending"];

/// Returns the script for a seed.
pub(crate) fn script(seed: u64) -> Script {
    let mut random = Random::of(seed, "script");
    (0..LENGTH).fold(Script::new("soak"), |script, _| script.with_turn(turn(&mut random)))
}

fn turn(random: &mut Random) -> Turn {
    let mut turn = if random.below(100) < 45 {
        Turn::text(text(random))
    } else {
        let begin = if random.flip() { Turn::text(text(random)) } else { Turn::new() };
        (0..=random.below(4)).fold(begin, |turn, _| turn.with_call(call(random)))
    };
    if random.below(5) == 0 {
        turn = turn.with_reasoning(text(random));
    }
    if random.below(30) == 0 {
        turn = turn.with_finish(Finish::Length);
    }
    if random.below(4) == 0 {
        turn = turn.with_pause_ms(1);
    }
    let failures = match random.below(100) {
        0 => 4,
        1..=8 => 1,
        _ => 0,
    };
    (0..failures).fold(turn, |turn, _| turn.with_failure(failure(random)))
}

fn text(random: &mut Random) -> String {
    let words: Vec<&str> =
        (0..=random.below(30)).filter_map(|_| WORDS.get(random.below(WORDS.len())).copied()).collect();
    format!("{}.", words.join(" "))
}

fn failure(random: &mut Random) -> Failure {
    match random.below(6) {
        0 => Failure::status(500),
        1 => Failure::status(503),
        2 => Failure::status(429).with_retry_after("0"),
        3 => Failure::cut_after_events(2),
        4 => Failure::cut_after_events(0),
        _ => Failure::error_event(ErrorEvent::Overloaded),
    }
}

fn call(random: &mut Random) -> Call {
    let run = |command: &str, timeout_ms: u64| {
        Call::new("shell", json!({ "command": command, "timeout_ms": timeout_ms }))
    };
    match random.below(60) {
        0 => run("trap '' TERM; sleep 600", 100),
        1..=3 => run("sleep 600", 100),
        4..=6 => run("sleep 600 & (setsid sleep 600 &); echo left behind", 20_000),
        7..=9 => run("head -c 300000 /dev/zero | tr '\\0' x", 20_000),
        10..=13 => run("exit 3", 20_000),
        14..=22 => run("sleep 0.03; echo slept", 20_000),
        23..=29 => run("echo hello", 20_000),
        30..=35 => Call::new("write_file", json!({ "file_path": "a.txt", "content": text(random) })),
        36..=41 => Call::new("read_file", json!({ "file_path": "a.txt" })),
        42..=45 => Call::new("read_file", json!({ "file_path": "missing.txt" })),
        46..=49 => Call::new("glob", json!({ "pattern": "**/*.txt" })),
        50..=53 => Call::new("grep", json!({ "pattern": "file" })),
        54..=56 => Call::new("reed_file", json!({})),
        _ => Call::new("read_file", json!({ "file_path": 7 })),
    }
}
