//! Command lines, streams and conversations, whole.

use insta::assert_snapshot;
use pintle_agent::SessionId;

use super::*;
use crate::scripted::{self, SESSION};

fn info() -> InitInfo {
    InitInfo {
        directory: "/work".to_owned(),
        tools: ["shell", "Read", "mcp__web__fetch", "Bash"].map(str::to_owned).to_vec(),
        mcp_servers: vec![McpServerStatus { name: "web".to_owned(), status: "connected".to_owned() }],
        model: "claude-opus-4-6".to_owned(),
        permission_mode: "default".to_owned(),
        api_key_source: "user".to_owned(),
        slash_commands: vec!["compact".to_owned()],
        skills: Vec::new(),
        agents: Vec::new(),
        version: "0.1.0".to_owned(),
    }
}

/// Returns the stream of one scripted run.
fn stream(script: &str, settings: FormatterSettings) -> String {
    let (events, outcome) = scripted::run(script);
    let mut formatter = Formatter::new(SessionId::new(SESSION), "claude-opus-4-6", settings);
    let mut lines = vec![formatter.init(&info())];
    lines.extend(events.iter().flat_map(|event| formatter.event(event)));
    lines.extend(formatter.end(&RunEnd::new(&outcome)));
    scripted::golden(&lines)
}

const READ_AND_RUN: &str = r#"
name = "read and run"
[[turn]]
reasoning = "Look first."
text = "I look."
call = [
    { tool = "Write", arguments = { file_path = "a.txt", content = "one\n" } },
    { tool = "Bash", arguments = { command = "echo hello; exit 3" } },
]
[[turn]]
call = [{ tool = "Read", arguments = { file_path = "missing.txt" } }]
[[turn]]
text = "Done."
"#;

#[test]
fn a_whole_run() {
    assert_snapshot!(stream(READ_AND_RUN, FormatterSettings::default()), @"");
}

#[test]
fn a_whole_run_with_partial_messages() {
    let script = r#"
name = "partial"
[[turn]]
reasoning = "Hm."
text = "I look."
call = [{ tool = "Bash", arguments = { command = "true" } }]
[[turn]]
text = "Done."
"#;
    let settings = FormatterSettings { partial_messages: true, ..FormatterSettings::default() };
    assert_snapshot!(stream(script, settings), @"");
}
