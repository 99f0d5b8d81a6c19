//! Budgets of runs, sessions and days, and requests that exceed the context window.

use pintle_testkit::Dialect;

use crate::harness::{Harness, run, run_with_input};
use crate::terminal::Terminal;

const TWO_ROUNDS: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 0.2\" }\n\
                          [[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 600\" }\n\
                          [[turn]]\ntext = \"Done.\"\n";

#[test]
fn runs_stop_at_their_budget() {
    for (flags, message) in [
        (["--max-tokens", "10"], "0 tokens used, the limit is 10, and the next call needs at least "),
        (["--max-cost", "0.0001"], "$0.0000 spent, the limit is $0.0001, and the next call needs at least $"),
        (["--max-time", "100ms"], "elapsed, the limit is 100 ms\n"),
    ] {
        let harness = Harness::new(Dialect::AnthropicMessages, TWO_ROUNDS);
        let output = run(harness.command("run", &["Go"]).args(flags));
        assert_eq!(output.code, Some(3), "{flags:?}: {output:?}");
        assert!(output.stdout.contains(message), "{flags:?}: {output:?}");
        assert!(output.stdout.contains("[stopped: budget exhausted]"), "{flags:?}: {output:?}");
        assert!(output.stderr.contains(&format!("raise it with {}", flags[0])), "{output:?}");
    }
}

#[test]
fn oversized_request_is_not_sent() {
    // An unknown model of a compatible server has a window of 32,768 tokens.
    let harness = Harness::new(Dialect::ChatCompletions, "[[turn]]\ntext = \"Done.\"\n");
    let log = "one line of a log, and another one after it\n".repeat(40_000);
    std::fs::write(harness.path("prompt"), &log).unwrap();
    let file = harness.path("prompt");
    let output = run(&mut harness.command("run", &["--prompt-file", file.to_str().unwrap()]));
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("exceeds the model's context window and was not sent"), "{output:?}");
    assert!(harness.server.requests().is_empty());
}

#[test]
fn long_piped_input_is_shortened() {
    let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Long.\"\n");
    let log = "one line of a log, and another one after it\n".repeat(100_000);
    let output = run_with_input(&mut harness.command("run", &["Explain this"]), &log);
    assert_eq!(output.code, Some(0), "{output:?}");
}

/// A project with its own configuration and state, in which a run makes two calls.
struct Fixture {
    harness: Harness,
    user: tempfile::TempDir,
}

const TWO_CALLS: &str = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo x >>made\" }\n\
                         [[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo x >>made\" }\n\
                         [[turn]]\ntext = \"Done.\"\n";

impl Fixture {
    fn new(budget: &str) -> Self {
        Self::with_turns(TWO_CALLS, budget)
    }

    /// A conversation in which every answer is a call.
    fn that_never_ends() -> Self {
        let call = TWO_CALLS.split_inclusive("}\n").next().unwrap();
        Self::with_turns(&call.repeat(9), "")
    }

    fn with_turns(turns: &str, budget: &str) -> Self {
        let user = tempfile::tempdir().unwrap();
        std::fs::write(user.path().join("budget.toml"), budget).unwrap();
        Self { harness: Harness::new(Dialect::AnthropicMessages, turns), user }
    }

    fn command(&self, flags: &[&str]) -> std::process::Command {
        let mut command = self.harness.command("run", &["Go"]);
        command.env("PINTLE_CONFIG_DIR", self.user.path());
        command.env("PINTLE_STATE_DIR", self.user.path().join("state"));
        command.args(flags);
        command
    }

    /// Runs the task, and returns its exit code, its output, and the number of calls that ran so far.
    fn run(&self, flags: &[&str]) -> (Option<i32>, String, usize) {
        let output = run(&mut self.command(flags));
        let made = std::fs::read_to_string(self.harness.path("made")).unwrap_or_default();
        (output.code, output.stdout + &output.stderr, made.lines().count())
    }
}

#[test]
fn runs_of_a_day_share_its_limit() {
    let fixture = Fixture::new("[day]\ncalls = 3\n");
    let (code, text, made) = fixture.run(&[]);
    assert_eq!((code, made), (Some(0), 2), "{text}");
    let (code, text, made) = fixture.run(&[]);
    assert_eq!((code, made), (Some(3), 3), "{text}");
    assert!(text.contains("3 tool calls made, the limit of the day is 3"), "{text}");
    // Also one that is not kept.
    let (code, text, made) = fixture.run(&["--no-session"]);
    assert_eq!((code, made), (Some(3), 3), "{text}");
    let (code, text, made) = fixture.run(&["--budget", "day.calls=10"]);
    assert_eq!((code, made), (Some(0), 5), "a flag replaces the limit of the file: {text}");
    let ledgers = fixture.user.path().join("state/sessions/ledgers");
    assert_eq!(std::fs::read_dir(ledgers).unwrap().count(), 2, "a lock and the ledger of today");
}

#[test]
fn limits_of_a_run_begin_anew_and_those_of_a_session_do_not() {
    for (flag, code, made) in [("run.calls=1", 3, 2), ("session.calls=1", 3, 1)] {
        let fixture = Fixture::that_never_ends();
        assert_eq!(fixture.run(&["--budget", flag]).2, 1, "{flag}");
        let (found, text, calls) = fixture.run(&["--continue", "--budget", flag]);
        assert_eq!((found, calls), (Some(code), made), "{flag}: {text}");
    }
    // A session keeps its own limits, whoever asked for more of a wider budget before.
    let fixture = Fixture::that_never_ends();
    fixture.run(&["--budget", "session.calls=1", "--budget", "day.calls=9"]);
    let (code, text, made) = fixture.run(&["--continue"]);
    assert_eq!((code, made), (Some(3), 1), "{text}");
}

#[test]
fn project_lowers_limits_and_wrong_files_start_nothing() {
    let fixture = Fixture::new("[session]\ncalls = 9\n");
    std::fs::create_dir(fixture.harness.path(".pintle")).unwrap();
    let file = fixture.harness.path(".pintle/budget.toml");
    std::fs::write(&file, "at_limit = \"ask\"\n[session]\ncalls = 1\n").unwrap();
    let (_, text, made) = fixture.run(&["--max-calls", "5"]);
    assert_eq!(made, 1, "{text}");
    assert!(text.contains("it is a limit of the project, which flags cannot raise"), "{text}");
    std::fs::write(&file, "[session]\ncalls = 99\n").unwrap();
    assert_eq!(fixture.run(&[]).2, 3, "it cannot raise them");

    std::fs::write(&file, "[session]\n\ncals = 9\n").unwrap();
    let sent = fixture.harness.server.requests().len();
    for (broken, expected) in [
        (&file, ".pintle/budget.toml: line 3: unknown field `cals`"),
        (&fixture.user.path().join("budget.toml"), "budget.toml: line 1: unknown field `tokns`"),
    ] {
        if broken != &file {
            std::fs::write(broken, "tokns = 5\n").unwrap();
        }
        let (code, text, _) = fixture.run(&[]);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    let fixture = Fixture::new("");
    let (code, text, _) = fixture.run(&["--budget", "day.cots=1"]);
    assert_eq!((code, text.contains("did you mean `cost`")), (Some(2), true), "{text}");
    assert_eq!(fixture.harness.server.requests().len(), 0);
    assert!(sent > 0);
}

#[test]
fn a_reached_limit_on_turns_names_the_file_that_sets_it() {
    let fixture = Fixture::new("");
    std::fs::write(fixture.user.path().join("config.toml"), "max_turns = 1\n").unwrap();
    let (code, text, _) = fixture.run(&[]);
    assert_eq!(code, Some(3), "{text}");
    let expected = "raise it with --max-turns: it is set by ";
    assert!(text.contains(expected) && text.contains("config.toml:1"), "{text}");
}

#[test]
fn more_is_asked_for_at_the_terminal() {
    let fixture = Fixture::new("at_limit = \"ask\"\n[run]\ncalls = 1\n");
    let mut terminal = Terminal::start(&fixture.command(&[]));
    let screen = terminal.wait_for_text("or how much: ");
    assert!(screen.contains("the limit of the run is reached: 1 tool call of 1 tool call"), "{screen}");
    terminal.type_keys("5\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");

    let mut terminal = Terminal::start(&fixture.command(&[]));
    terminal.wait_for_text("or how much: ");
    terminal.type_keys("n\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(3), "{screen}");

    // Without a terminal, a limit is a limit.
    assert_eq!(fixture.run(&[]).0, Some(3));
}

#[test]
fn unknown_price_is_asked_about_at_the_terminal() {
    for (answer, code) in [("y\n", Some(0)), ("n\n", Some(1))] {
        let fixture = Fixture::new("unknown_price = \"ask\"\n[session]\ncost = 5\n");
        let mut terminal = Terminal::start(&fixture.command(&["--model", "claude-of-tomorrow"]));
        let screen = terminal.wait_for_text("without that limit? [y]es, [n]o: ");
        assert!(screen.contains("the price of claude-of-tomorrow is unknown"), "{screen}");
        // Nothing that moves on the screen erases it.
        std::thread::sleep(std::time::Duration::from_millis(500));
        let screen = terminal.wait_for_text("without that limit? [y]es, [n]o: ");
        assert!(!screen.contains("waiting for the model"), "{screen}");
        terminal.type_keys(answer);
        let (found, screen, _) = terminal.finish();
        assert_eq!(found, code, "{screen}");
    }
}
