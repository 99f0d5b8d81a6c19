//! Events, approvals and totals of subagents.

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, run};

/// Script for the session and its subagent, each of which writes a file. The call to spawn another subagent fails in the
/// subagent.
pub(crate) const BOTH_WRITE: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "spawn_agent"
    arguments = { task = "Write a.txt.", working_dir = "sub" }
    [[turn]]
    text = "I write now."
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "a.txt", content = "hello\n" }
    [[turn]]
    [[turn.call]]
    tool = "wait"
    arguments = { agent_id = "agent_1" }
    [[turn]]
    text = "So be it."
    "#;

fn run_both(dialect: Dialect, arguments: &[&str]) -> CommandOutput {
    let harness = Harness::new(dialect, BOTH_WRITE);
    std::fs::create_dir(harness.path("sub")).unwrap();
    let output = run(&mut harness.command("run", arguments));
    assert_eq!(output.code, Some(0), "{output:?}");
    for path in ["a.txt", "sub/a.txt"] {
        assert_eq!(harness.read(path), "hello\n", "{path}");
    }
    output
}

#[test]
fn stream_has_events_of_the_whole_tree() {
    for dialect in [Dialect::OpenAiResponses, Dialect::AnthropicMessages, Dialect::Gemini] {
        let output = run_both(dialect, &["--output", "stream-json", "Go"]);
        let lines: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (first, last) = (&lines[0], lines.last().unwrap());
        let of_subagent: Vec<&Value> = lines.iter().filter(|line| line["depth"] == 1).collect();
        assert!(of_subagent.iter().all(|event| event["parent"] == first["session_id"]), "{of_subagent:?}");
        let kinds: Vec<&str> = of_subagent.iter().filter_map(|event| event["kind"].as_str()).collect();
        assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("SESSION_START", "SESSION_END"), "{kinds:?}");
        let at =
            |kind: &str| lines.iter().position(|line| line["kind"] == kind && line["depth"] != 1).unwrap();
        let of_child = |line: &Value| line["depth"] == 1;
        assert!(at("SUBAGENT_SPAWNED") < lines.iter().position(of_child).unwrap());
        assert!(at("SUBAGENT_ENDED") > lines.iter().rposition(of_child).unwrap());
        let subagents = &last["subagents"];
        assert_eq!((&subagents["count"], &subagents["model_calls"]), (&1.into(), &4.into()), "{last}");
        assert_eq!(last["model_calls"], 4, "only those of the session itself");
    }
}

#[test]
fn transcript_names_subagents() {
    let output = run_both(Dialect::AnthropicMessages, &["Go"]);
    for line in [
        "[agent_1] started: Write a.txt.",
        "[agent_1] I write now.",
        "[agent_1] So be it.",
        "[agent_1] completed, 4 responses",
    ] {
        assert!(output.stdout.lines().any(|shown| shown == line), "{line} in {output:?}");
    }
    assert!(output.stdout.contains("\n[agent_1] [write_file] a.txt (ok, "), "{output:?}");
    assert!(output.stdout.contains("\n[write_file] a.txt (ok, "), "{output:?}");
    assert!(output.stdout.contains("; 1 subagent: 4 model calls, 3 tool calls, "), "{output:?}");
    let quiet = run_both(Dialect::AnthropicMessages, &["--quiet", "Go"]);
    assert_eq!(quiet.stdout, "So be it.\n");
}
