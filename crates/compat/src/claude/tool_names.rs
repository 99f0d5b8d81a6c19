//! Names of tools.

/// Claude's name, and the names in the toolsets of the families. The documentation of the module has the same table.
const NAMES: &[(&str, &[&str])] = &[
    ("Bash", &["Bash", "shell", "exec_command", "run_shell_command", "shell_start"]),
    ("TaskOutput", &["TaskOutput", "shell_read", "shell_list", "write_stdin", "shell_write"]),
    ("TaskStop", &["TaskStop", "shell_stop"]),
    ("Read", &["Read", "read_file", "read_many_files", "view_image"]),
    ("Write", &["Write", "write_file"]),
    ("Edit", &["Edit", "edit_file", "replace", "apply_patch"]),
    ("NotebookEdit", &["NotebookEdit"]),
    ("Glob", &["Glob", "glob"]),
    ("Grep", &["Grep", "grep", "search_file_content"]),
    ("LS", &["list_dir", "list_directory"]),
    ("TodoWrite", &["TodoWrite", "update_plan"]),
    ("WebFetch", &["WebFetch", "web_fetch"]),
    ("WebSearch", &["WebSearch", "web_search", "google_web_search"]),
    ("AskUserQuestion", &["AskUserQuestion", "ask_user", "request_user_input"]),
    ("Agent", &["spawn_agent", "invoke_agent", "send_input", "wait", "close_agent"]),
];

/// Earlier names of Claude's tools, and the later ones.
const FORMER: &[(&str, &str)] =
    &[("Task", "Agent"), ("BashOutput", "TaskOutput"), ("KillBash", "TaskStop"), ("KillShell", "TaskStop")];

/// Returns Claude's name of a tool of a session.
#[must_use]
pub fn claude_tool_name(own: &str) -> &str {
    let found = NAMES.iter().find(|(_, names)| names.contains(&own));
    found.map_or(own, |(name, _)| name)
}

/// Returns the names of a session's tools for one of Claude's names.
///
/// ```
/// use pintle_compat::claude::own_tool_names;
///
/// assert_eq!(own_tool_names("Grep"), ["Grep", "grep", "search_file_content"]);
/// assert_eq!(own_tool_names("mcp__web__fetch"), ["mcp__web__fetch"]);
/// ```
#[must_use]
pub fn own_tool_names(claude: &str) -> Vec<String> {
    let name = FORMER.iter().find(|(former, _)| *former == claude).map_or(claude, |(_, later)| later);
    match NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, names)) => names.iter().map(|name| (*name).to_owned()).collect(),
        None => vec![claude.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_maps_back() {
        for (claude, names) in NAMES {
            for own in *names {
                assert_eq!(claude_tool_name(own), *claude);
            }
            assert_eq!(own_tool_names(claude), *names);
        }
        assert_eq!(own_tool_names("Task"), own_tool_names("Agent"));
        assert_eq!(claude_tool_name("rename_symbol"), "rename_symbol");
    }

    #[test]
    fn documentation_has_the_same_table() {
        let docs = include_str!("../claude.rs");
        for (claude, names) in NAMES {
            let row = docs.lines().find(|line| line.starts_with(&format!("//! | `{claude}`"))).expect(claude);
            for own in *names {
                assert!(row.contains(&format!("`{own}`")), "{row} lacks {own}");
            }
        }
    }
}
