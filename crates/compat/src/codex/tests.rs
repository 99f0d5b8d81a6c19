//! Command lines and streams, whole.

mod options;

use insta::assert_snapshot;

use super::*;
use crate::scripted::{self, SESSION};
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
