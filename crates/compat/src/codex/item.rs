//! Items of a thread.

use pintle_agent::CallKind;
use pintle_tools::{ChangeKind, FileChange};
use serde_json::{Value, json};

use crate::call::{command_line, file_path, mcp_name};

/// Server of tools that have no other codex item. An MCP server of a session cannot have this name by accident, since
/// the names of its tools start with `mcp__`.
pub(super) const OWN_SERVER: &str = "pintle";

/// A call that has started.
#[derive(Clone, Debug)]
pub(super) struct StartedCall {
    pub(super) id: String,
    pub(super) kind: ItemKind,
}

/// Kind of a call in codex.
#[derive(Clone, Debug)]
pub(super) enum ItemKind {
    Command { command: String },
    FileChange { path: Option<String> },
    WebSearch { query: String },
    Tool { server: String, tool: String, arguments: Value },
}

/// Result of a call.
#[derive(Clone, Debug)]
pub(super) struct CallResult<'a> {
    pub(super) output: String,
    pub(super) is_error: bool,
    pub(super) exit_code: Option<i32>,
    pub(super) changes: &'a [FileChange],
}

impl ItemKind {
    pub(super) fn from_call(tool_name: &str, kind: CallKind, arguments: &Value) -> Self {
        if let Some((server, tool)) = mcp_name(tool_name) {
            return Self::tool(server, tool, arguments);
        }
        match kind {
            CallKind::Command => Self::Command { command: command_line(tool_name, arguments) },
            CallKind::Edit => Self::FileChange { path: file_path(arguments).map(str::to_owned) },
            CallKind::Fetch => match arguments.get("query").and_then(Value::as_str) {
                Some(query) => Self::WebSearch { query: query.to_owned() },
                None => Self::tool(OWN_SERVER, tool_name, arguments),
            },
            CallKind::Read | CallKind::Search | CallKind::Agent | CallKind::Other | _ => {
                Self::tool(OWN_SERVER, tool_name, arguments)
            }
        }
    }

    fn tool(server: &str, tool: &str, arguments: &Value) -> Self {
        Self::Tool { server: server.to_owned(), tool: tool.to_owned(), arguments: arguments.clone() }
    }
}

impl StartedCall {
    /// Returns the item at the start of the call; `None` if codex shows only its end.
    pub(super) fn started(&self) -> Option<Value> {
        let id = &self.id;
        match &self.kind {
            ItemKind::Command { command } => Some(json!({
                "id": id, "type": "command_execution", "command": command, "aggregated_output": "",
                "status": "in_progress",
            })),
            ItemKind::FileChange { .. } => None,
            ItemKind::WebSearch { query } => Some(json!({"id": id, "type": "web_search", "query": query})),
            ItemKind::Tool { server, tool, arguments } => Some(json!({
                "id": id, "type": "mcp_tool_call", "server": server, "tool": tool, "arguments": arguments,
                "status": "in_progress",
            })),
        }
    }

    /// Returns the item at the end of the call.
    pub(super) fn completed(&self, result: &CallResult<'_>) -> Value {
        let id = &self.id;
        let is_failed = result.is_error;
        let status = |failed: bool| if failed { "failed" } else { "completed" };
        match &self.kind {
            ItemKind::Command { command } => {
                let failed = is_failed || result.exit_code.is_some_and(|code| code != 0);
                let mut item = json!({
                    "id": id, "type": "command_execution", "command": command,
                    "aggregated_output": result.output, "status": status(failed),
                });
                if let (Some(code), Some(item)) = (result.exit_code, item.as_object_mut()) {
                    item.insert("exit_code".to_owned(), code.into());
                }
                item
            }
            ItemKind::FileChange { path } => json!({
                "id": id, "type": "file_change", "changes": changes(path.as_deref(), result.changes),
                "status": status(is_failed),
            }),
            ItemKind::WebSearch { query } => json!({"id": id, "type": "web_search", "query": query}),
            ItemKind::Tool { server, tool, arguments } => {
                let (key, value) = if is_failed {
                    ("error", json!({"message": result.output}))
                } else {
                    let content = json!([{"type": "text", "text": result.output}]);
                    ("result", json!({"content": content, "structured_content": null}))
                };
                json!({
                    "id": id, "type": "mcp_tool_call", "server": server, "tool": tool, "arguments": arguments,
                    key: value, "status": status(is_failed),
                })
            }
        }
    }
}

/// Returns the changes of a call, or the file that a failed call named.
fn changes(path: Option<&str>, changes: &[FileChange]) -> Vec<Value> {
    if changes.is_empty() {
        return path.map(|path| json!({"path": path, "kind": "update"})).into_iter().collect();
    }
    let change = |change: &FileChange| match &change.kind {
        ChangeKind::Added => vec![json!({"path": change.path, "kind": "add"})],
        ChangeKind::Deleted => vec![json!({"path": change.path, "kind": "delete"})],
        ChangeKind::Renamed { from } => {
            vec![json!({"path": from, "kind": "delete"}), json!({"path": change.path, "kind": "add"})]
        }
        ChangeKind::Modified => vec![json!({"path": change.path, "kind": "update"})],
    };
    changes.iter().flat_map(change).collect()
}
