//! Modes without a terminal: calls that need approval are denied, the run continues, the exit code is 5.

use pintle_testkit::Dialect;

use crate::harness::{Harness, run};
use crate::subagents::BOTH_WRITE;

const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "a.txt", content = "hello\n" }
    [[turn.call]]
    tool = "shell"
    arguments = { command = "touch b.txt" }
    [[turn]]
    text = "So be it."
    "#;

#[test]
fn calls_needing_approval_are_denied_without_a_terminal() {
    let both = "2 calls were denied: they needed approval, but no terminal was available";
    let one = "1 call was denied: it needed approval, but no terminal was available";
    let cases = [
        ("auto", 0, true, true, ""),
        ("edit", 5, true, false, one),
        ("ask", 5, false, false, both),
        // What a mode denies, nobody could approve.
        ("plan", 0, false, false, ""),
    ];
    for (mode, code, wrote, ran, message) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
        let output = run(&mut harness.command("run", &["--mode", mode, "--output", "json", "Go"]));
        assert_eq!(output.code, Some(code), "{mode}: {output:?}");
        assert_eq!((harness.path("a.txt").exists(), harness.path("b.txt").exists()), (wrote, ran), "{mode}");
        let outcome: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((&outcome["exit_code"], &outcome["text"]), (&code.into(), &"So be it.".into()), "{mode}");
        assert!(output.stderr.contains(message), "{mode}: {output:?}");
    }
}

#[test]
fn subagent_calls_are_denied_without_a_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, BOTH_WRITE);
    std::fs::create_dir(harness.path("sub")).unwrap();
    let output = run(&mut harness.command("run", &["--mode", "ask", "Go"]));
    assert_eq!(output.code, Some(5), "{output:?}");
    assert!(!harness.path("a.txt").exists() && !harness.path("sub/a.txt").exists(), "{output:?}");
    assert!(output.stderr.contains("2 calls were denied: they needed approval"), "{output:?}");
}

#[test]
fn modes_ask_about_web_access() {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "web_fetch"
        arguments = { url = "http://127.0.0.1:9/" }
        [[turn]]
        text = "So be it."
        "#;
    let cases = [
        ("auto", 0, "127.0.0.1 may not be reached"),
        ("edit", 5, "it needs approval, but no terminal is available"),
    ];
    for (mode, code, message) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let output = run(&mut harness.command("run", &["--mode", mode, "--network", "on", "Go"]));
        assert_eq!(output.code, Some(code), "{mode}: {output:?}");
        assert!(
            output.stdout.contains("[web_fetch] http://127.0.0.1:9/ (") && output.stdout.contains(message),
            "{output:?}"
        );
    }
}

#[test]
fn other_failures_take_precedence_over_denials() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let output = run(&mut harness.command("run", &["--mode", "ask", "--max-tool-rounds", "1", "Go"]));
    assert_eq!(output.code, Some(3), "{output:?}");
    let output = run(&mut harness.command("run", &["--mode", "sometimes", "Go"]));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(
        output.stderr.contains("`sometimes` is not a mode, expected `plan`, `ask`, `edit` or `auto`"),
        "{output:?}"
    );
}
