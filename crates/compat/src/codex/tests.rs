//! Command lines and streams, whole.

mod options;

use insta::assert_snapshot;

use super::*;
use crate::tests::scripted::{self, SESSION};
use pintle_agent::SessionId;

/// Returns the stream of one scripted run.
fn stream(script: &str) -> String {
    let (events, outcome) = scripted::run(script);
    let mut formatter = Formatter::new(SessionId::new(SESSION));
    let mut lines = formatter.begin();
    lines.extend(events.iter().flat_map(|event| formatter.event(event)));
    lines.extend(formatter.end(&outcome));
    scripted::golden(&lines)
}

#[test]
fn a_whole_run_with_every_item() {
    let script = r#"
name = "every item"
[[turn]]
reasoning = "Plan first."
text = "I begin."
call = [{ tool = "TodoWrite", arguments = { todos = [{ content = "write", activeForm = "writing", status = "in_progress" }] } }]
[[turn]]
call = [
    { tool = "Write", arguments = { file_path = "a.txt", content = "one\n" } },
    { tool = "Bash", arguments = { command = "echo hello; exit 3" } },
]
[[turn]]
call = [{ tool = "Read", arguments = { file_path = "missing.txt" } }]
[[turn]]
call = [{ tool = "TodoWrite", arguments = { todos = [{ content = "write", activeForm = "writing", status = "completed" }] } }]
[[turn]]
text = "Done."
"#;
    assert_snapshot!(stream(script), @r##"
    {"thread_id":"0190a000-0000-7000-8000-000000000001","type":"thread.started"}
    {"type":"turn.started"}
    {"item":{"id":"item_0","text":"Plan first.","type":"reasoning"},"type":"item.completed"}
    {"item":{"id":"item_1","text":"I begin.","type":"agent_message"},"type":"item.completed"}
    {"item":{"id":"item_2","items":[{"completed":false,"text":"write"}],"type":"todo_list"},"type":"item.started"}
    {"item":{"changes":[{"kind":"add","path":"a.txt"}],"id":"item_3","status":"completed","type":"file_change"},"type":"item.completed"}
    {"item":{"aggregated_output":"","command":"echo hello; exit 3","id":"item_4","status":"in_progress","type":"command_execution"},"type":"item.started"}
    {"item":{"aggregated_output":"hello\n","command":"echo hello; exit 3","exit_code":3,"id":"item_4","status":"failed","type":"command_execution"},"type":"item.completed"}
    {"item":{"arguments":{"file_path":"missing.txt"},"id":"item_5","server":"pintle","status":"in_progress","tool":"Read","type":"mcp_tool_call"},"type":"item.started"}
    {"item":{"arguments":{"file_path":"missing.txt"},"error":{"message":"Tool error (Read): /project/missing.txt does not exist"},"id":"item_5","server":"pintle","status":"failed","tool":"Read","type":"mcp_tool_call"},"type":"item.completed"}
    {"item":{"id":"item_2","items":[{"completed":true,"text":"write"}],"type":"todo_list"},"type":"item.updated"}
    {"item":{"id":"item_6","text":"Done.","type":"agent_message"},"type":"item.completed"}
    {"item":{"id":"item_2","items":[{"completed":true,"text":"write"}],"type":"todo_list"},"type":"item.completed"}
    {"type":"turn.completed","usage":"TOKENS"}
    "##);
}

#[test]
fn the_last_message_is_the_whole_response() {
    let cut = |text: &str| format!("[[turn]]\ntext = \"{text}\"\nfinish = \"length\"\n");
    let whole = |text: &str| format!("[[turn]]\ntext = \"{text}\"\n");
    for (turns, messages) in [
        (whole("One."), &["One."][..]),
        (cut("One, ") + &whole("two."), &["One, ", "two.", "One, two."]),
        (cut("One, ") + &cut("two, ") + &whole("three."), &["One, ", "two, ", "three.", "One, two, three."]),
    ] {
        let lines = stream(&format!("name = \"continued\"\n{turns}"));
        let text = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let item = &line["item"];
            (item["type"] == "agent_message").then(|| item["text"].as_str().unwrap().to_owned())
        };
        assert_eq!(lines.lines().filter_map(text).collect::<Vec<_>>(), messages, "{lines}");
    }
}

/// A model may wrap its JSON in Markdown. Readers parse the last message.
#[test]
fn the_last_message_is_the_checked_answer() {
    let (events, outcome) = scripted::run("name = \"answer\"\n[[turn]]\ntext = \"So: {\\\"a\\\":1}\"\n");
    let mut formatter = Formatter::new(SessionId::new(SESSION));
    let mut lines: Vec<crate::Line> = events.iter().flat_map(|event| formatter.event(event)).collect();
    lines.extend(formatter.answer(&serde_json::json!({"a": 1})));
    lines.extend(formatter.end(&outcome));
    let lines = scripted::golden(&lines);
    let messages: Vec<&str> = lines.lines().filter(|line| line.contains("agent_message")).collect();
    assert_eq!(messages.len(), 2, "{lines}");
    assert!(messages[1].contains(r#""text":"{\"a\":1}""#), "{lines}");
}
