//! Contents of calls in the formats, independent of the toolset.

use pintle_env::Output;
use serde_json::Value;

/// Longest output of one call in a line, in bytes. The middle of a longer one is left out.
pub(crate) const MAX_OUTPUT: usize = 256 << 10;

/// Returns the output of a call as text, and replaces bytes that are not UTF-8. A spooled output is read from its file.
pub(crate) fn output_text(output: &Output) -> String {
    let is_short = output.len() <= MAX_OUTPUT as u64;
    let read = if is_short { output.to_text_lossy() } else { ends(output) };
    read.unwrap_or_else(|error| format!("[the output cannot be read: {error}]"))
}

fn ends(output: &Output) -> std::io::Result<String> {
    let head = output.head_text_lossy(MAX_OUTPUT / 2)?;
    let tail = output.tail_text_lossy(MAX_OUTPUT / 2)?;
    let left_out = output.len().saturating_sub((head.len() + tail.len()) as u64);
    Ok(format!("{head}\n[{left_out} bytes are left out]\n{tail}"))
}

/// Returns the command line of a call that runs a command.
pub(crate) fn command_line(tool_name: &str, arguments: &Value) -> String {
    let found = ["command", "cmd", "chars"].iter().find_map(|name| arguments.get(name));
    match found {
        Some(Value::String(command)) => command.clone(),
        Some(Value::Array(words)) => words.iter().map(word).collect::<Vec<_>>().join(" "),
        _ => format!("{tool_name} {arguments}"),
    }
}

fn word(word: &Value) -> String {
    word.as_str().map_or_else(|| word.to_string(), str::to_owned)
}

/// Returns the file that a call names, if it names one.
pub(crate) fn file_path(arguments: &Value) -> Option<&str> {
    ["file_path", "notebook_path", "path"].iter().find_map(|name| arguments.get(name)?.as_str())
}

/// Returns the server and the tool of an MCP tool, whose name is `mcp__SERVER__TOOL`.
pub(crate) fn mcp_name(tool_name: &str) -> Option<(&str, &str)> {
    tool_name.strip_prefix("mcp__")?.split_once("__")
}

/// Returns the steps of a plan with their status, if the call writes one.
pub(crate) fn plan_steps<'a>(tool_name: &str, arguments: &'a Value) -> Option<Vec<(&'a str, &'a str)>> {
    let (list, text) = match tool_name {
        "update_plan" => ("plan", "step"),
        "TodoWrite" => ("todos", "content"),
        "write_todos" => ("todos", "description"),
        _ => return None,
    };
    let steps = arguments.get(list)?.as_array()?.iter();
    let field = |step: &'a Value, name: &str| step.get(name).and_then(Value::as_str);
    Some(
        steps
            .filter_map(|step| Some((field(step, text)?, field(step, "status").unwrap_or("pending"))))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_output_keeps_both_ends() {
        let text = output_text(&Output::from(format!("begin{}end", "x".repeat(MAX_OUTPUT))));
        assert!(text.starts_with("begin") && text.ends_with("end"), "{}", text.len());
        assert!(text.contains("[8 bytes are left out]"));
    }

    #[test]
    fn command_line_of_each_toolset() {
        let cases = [
            (json!({"command": "ls -l"}), "ls -l"),
            (json!({"cmd": "ls"}), "ls"),
            (json!({"command": ["bash", "-lc", "ls"]}), "bash -lc ls"),
            (json!({"bash_id": "1"}), r#"BashOutput {"bash_id":"1"}"#),
        ];
        for (arguments, expected) in cases {
            assert_eq!(command_line("BashOutput", &arguments), expected);
        }
    }

    #[test]
    fn plan_of_each_toolset() {
        let plan = json!({"plan": [{"step": "a", "status": "completed"}, {"step": "b"}, 3]});
        assert_eq!(plan_steps("update_plan", &plan), Some(vec![("a", "completed"), ("b", "pending")]));
        let todos = json!({"todos": [{"content": "a", "status": "in_progress"}]});
        assert_eq!(plan_steps("TodoWrite", &todos), Some(vec![("a", "in_progress")]));
        assert_eq!(plan_steps("shell", &todos), None);
        assert_eq!(plan_steps("TodoWrite", &json!({"todos": 1})), None);
    }
}
