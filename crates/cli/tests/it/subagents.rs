//! What subagents do is shown, asked about, counted and paid for with all the rest.

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::lab::{Model, Said, say};

/// One script for the session and for its subagent, which has no tools for subagents and is told so. Each writes a file
/// of its own.
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

fn run(dialect: Dialect, arguments: &[&str]) -> Said {
    let model = Model::new(dialect, BOTH_WRITE);
    std::fs::create_dir(model.path("sub")).unwrap();
    let said = say(&mut model.command("run", arguments));
    assert_eq!(said.code, Some(0), "{said:?}");
    for path in ["a.txt", "sub/a.txt"] {
        assert_eq!(model.read(path), "hello\n", "{path}");
    }
    said
}

#[test]
fn the_stream_has_the_events_of_the_whole_tree_with_their_origin() {
    for dialect in [Dialect::OpenAiResponses, Dialect::AnthropicMessages, Dialect::Gemini] {
        let said = run(dialect, &["--output", "stream-json", "Go"]);
        let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (first, last) = (&lines[0], lines.last().unwrap());
        let below: Vec<&Value> = lines.iter().filter(|line| line["depth"] == 1).collect();
        assert!(below.iter().all(|event| event["parent"] == first["session_id"]), "{below:?}");
        let kinds: Vec<&str> = below.iter().filter_map(|event| event["kind"].as_str()).collect();
        assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("SESSION_START", "SESSION_END"), "{kinds:?}");
        let at =
            |kind: &str| lines.iter().position(|line| line["kind"] == kind && line["depth"] != 1).unwrap();
        let of_child = |line: &Value| line["depth"] == 1;
        assert!(at("SUBAGENT_SPAWNED") < lines.iter().position(of_child).unwrap());
        assert!(at("SUBAGENT_ENDED") > lines.iter().rposition(of_child).unwrap());
        let subagents = &last["subagents"];
        assert_eq!((&subagents["count"], &subagents["model_calls"]), (&1.into(), &4.into()), "{last}");
        assert_eq!(last["model_calls"], 4, "those of the session itself");
    }
}

#[test]
fn a_transcript_says_who_did_what() {
    let said = run(Dialect::AnthropicMessages, &["Go"]);
    for line in [
        "[agent_1] begins: Write a.txt.",
        "[agent_1] I write now.",
        "[agent_1] So be it.",
        "[agent_1] completed, 4 answers",
    ] {
        assert!(said.out.lines().any(|shown| shown == line), "{line} in {said:?}");
    }
    assert!(said.out.contains("\n[agent_1] [write_file] a.txt (ok, "), "{said:?}");
    assert!(said.out.contains("\n[write_file] a.txt (ok, "), "{said:?}");
    assert!(said.out.contains("; 1 subagent: 4 model calls, 3 tool calls, "), "{said:?}");
    let quiet = run(Dialect::AnthropicMessages, &["--quiet", "Go"]);
    assert_eq!(quiet.out, "So be it.\n");
}
