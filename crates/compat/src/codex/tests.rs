//! Command lines and streams, whole.

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
    assert_snapshot!(stream(script), @"");
}
