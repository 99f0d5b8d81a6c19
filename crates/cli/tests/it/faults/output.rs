//! Terminals that take output slowly or not at all, and output without measure.

use pintle_test_conditions::is_full;
use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Memory that the longest answer may need beyond a short one, in KiB.
const MORE_MEMORY: u64 = 192 << 10;

/// Returns the number of lines of the longest answer.
fn most_lines() -> usize {
    if is_full() { 100_000 } else { 20_000 }
}

fn lines(start: &str, count: usize) -> String {
    (0..count).map(|number| format!("{start}line {number} of it\\n")).collect()
}

fn process(terminal: &Terminal) -> Pid {
    Pid::from_raw(terminal.pid().try_into().unwrap()).unwrap()
}

#[test]
fn what_is_typed_while_the_terminal_is_slow_is_not_lost() {
    let turns = format!(
        "[[turn]]\ntext = \"{}\"\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = \"touch began; seq 400000; touch ended\" }}\n\
         [[turn]]\ntext = \"The end.\"\n[[turn]]\ntext = \"Second answer.\"\n",
        lines("- ", 4_000)
    );
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = begin(&harness, &[]);
    let before = peak_memory(&terminal);
    terminal.hold(true);
    terminal.type_keys("go\r");
    wait_until("the command", || harness.path("began").exists());
    terminal.type_keys("kept while it is slow");
    // The turn goes on without the terminal.
    wait_until("the end of the command", || harness.path("ended").exists());
    std::thread::sleep(Duration::from_secs(2));
    terminal.hold(false);
    terminal.wait_for("the end of the turn", |screen| {
        screen.contains("The end.") && !screen.contains("Esc interrupts")
    });
    // While it is drawn, a row may be where it was and where it is.
    terminal.wait_for("all of it, once", |screen| {
        count(screen, "› kept while it is slow") == 1 && count(screen, "The end.") == 1
    });
    let more = peak_memory(&terminal) - before;
    assert!(more < MORE_MEMORY, "{more} KiB more");
    terminal.type_keys("\r");
    terminal.wait_for_text("Second answer.");
    leave(terminal);
}

/// A terminal that hangs is no reason to stay.
#[test]
fn a_signal_ends_a_conversation_whose_terminal_takes_nothing() {
    let turns =
        format!("[[turn]]\ntext = \"{}\"\n[[turn]]\ntext = \"Second answer.\"\n", lines("- ", 20_000));
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = begin(&harness, &[]);
    terminal.hold(true);
    terminal.type_keys("go\r");
    std::thread::sleep(Duration::from_secs(2));
    kill_process(process(&terminal), Signal::TERM).unwrap();
    wait_until("the end of the process", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", terminal.pid()));
        status.is_ok_and(|status| status.contains("\nState:\tZ"))
    });
    let modes = terminal.modes();
    assert!(modes.local_modes.contains(rustix::termios::LocalModes::ICANON), "{modes:?}");
    terminal.hold(false);
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    let mut terminal = begin(&harness, &["--continue"]);
    terminal.type_keys("go on\r");
    terminal.wait_for_text("Second answer.");
    leave(terminal);
}

fn is_complete(text: &str, start: &str, count: usize) -> Result<(), String> {
    let mut found =
        text.lines().filter_map(|line| line.trim_end().strip_prefix(start)?.strip_suffix(" of it"));
    for number in 0..count {
        let line = found.next();
        if line != Some(&format!("line {number}")) {
            return Err(format!("expected {number}, found {line:?}"));
        }
    }
    found.next().map_or(Ok(()), |line| Err(format!("{line} is one more")))
}

fn long_answer(start: &str, shown: &str, head: &str) {
    let most = most_lines();
    let turns = format!("[[turn]]\ntext = \"Short.\"\n[[turn]]\ntext = \"{head}{}\"\n", lines(start, most));
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = Terminal::with_scrollback(&chat(&harness, &["hello"]), 40, 24, most + 1_000);
    terminal.wait_for_text("Short.");
    let before = peak_memory(&terminal);
    terminal.type_keys("go\r");
    terminal.wait_for("the end", |screen| {
        screen.contains(&format!("line {} of it", most - 1)) && !screen.contains("Esc interrupts")
    });
    let more = peak_memory(&terminal) - before;
    assert_eq!(is_complete(&terminal.scrollback(), shown, most), Ok(()));
    assert!(more < MORE_MEMORY, "{more} KiB more");
    leave(terminal);
}

#[test]
fn each_of_many_lines_arrives_once() {
    long_answer("- ", "• ", "");
}

#[test]
fn each_of_many_lines_of_code_arrives_once() {
    long_answer("", "", "```\\n");
}

#[test]
fn escape_interrupts_an_answer_without_end() {
    // The provider sends at most 256 pieces, so that the answer takes longer than the test waits: it cannot end before the
    // interruption, however slow the machine is. Each piece fills the screen several times.
    let turns = format!("[[turn]]\npause_ms = 750\ntext = \"{}\"\n", lines("- ", most_lines()));
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text(" of it");
    terminal.type_keys("\u{1b}");
    terminal.wait_for_text("[interrupted]");
    let screen = leave(terminal);
    assert!(!screen.contains(&format!("line {} of it", most_lines() - 1)), "{screen}");
}
