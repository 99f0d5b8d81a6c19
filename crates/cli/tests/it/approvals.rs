//! `--approve` without a terminal: calls are denied, the run continues, the exit code is 5.

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
        ("never", 0, true, true, ""),
        ("writes", 5, false, true, one),
        ("commands", 5, true, false, one),
        ("all", 5, false, false, both),
    ];
    for (approve, code, wrote, ran, message) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
        let output = run(&mut harness.command("run", &["--approve", approve, "--output", "json", "Go"]));
        assert_eq!(output.code, Some(code), "{approve}: {output:?}");
        assert_eq!(
            (harness.path("a.txt").exists(), harness.path("b.txt").exists()),
            (wrote, ran),
            "{approve}"
        );
        let outcome: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(
            (&outcome["exit_code"], &outcome["text"]),
            (&code.into(), &"So be it.".into()),
            "{approve}"
        );
        assert!(output.stderr.contains(message), "{approve}: {output:?}");
    }
}

#[test]
fn subagent_calls_are_denied_without_a_terminal() {
    let harness = Harness::new(Dialect::AnthropicMessages, BOTH_WRITE);
    std::fs::create_dir(harness.path("sub")).unwrap();
    let output = run(&mut harness.command("run", &["--approve", "writes", "Go"]));
    assert_eq!(output.code, Some(5), "{output:?}");
    assert!(!harness.path("a.txt").exists() && !harness.path("sub/a.txt").exists(), "{output:?}");
    assert!(output.stderr.contains("2 calls were denied: they needed approval"), "{output:?}");
}

#[test]
fn all_includes_web_access() {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "web_fetch"
        arguments = { url = "http://127.0.0.1:9/" }
        [[turn]]
        text = "So be it."
        "#;
    let cases = [
        ("commands", 0, "127.0.0.1 may not be reached"),
        ("all", 5, "it needs approval, but no terminal is available"),
    ];
    for (approve, code, message) in cases {
        let harness = Harness::new(Dialect::AnthropicMessages, turns);
        let output = run(&mut harness.command("run", &["--approve", approve, "Go"]));
        assert_eq!(output.code, Some(code), "{approve}: {output:?}");
        assert!(
            output.stdout.contains("[web_fetch] http://127.0.0.1:9/ (") && output.stdout.contains(message),
            "{output:?}"
        );
    }
}

#[test]
fn other_failures_take_precedence_over_denials() {
    let harness = Harness::new(Dialect::AnthropicMessages, TURNS);
    let output = run(&mut harness.command("run", &["--approve", "all", "--max-tool-rounds", "1", "Go"]));
    assert_eq!(output.code, Some(3), "{output:?}");
    let output = run(&mut harness.command("run", &["--approve", "sometimes", "Go"]));
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("[possible values: never, writes, commands, all]"), "{output:?}");
}
