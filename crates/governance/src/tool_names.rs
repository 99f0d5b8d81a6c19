//! Names of tools in rules and hooks.

use pintle_tools::ToolKind;

use crate::pattern::Pattern;

/// Tools of other agents, each with the kind or name of a built-in tool. A hook for edits also applies to patches.
const OTHER_AGENTS: [(&str, &str); 16] = [
    ("Bash", ToolKind::Shell.as_str()),
    ("Edit", ToolKind::EditFile.as_str()),
    ("Edit", ToolKind::ApplyPatch.as_str()),
    ("MultiEdit", ToolKind::EditFile.as_str()),
    ("MultiEdit", ToolKind::ApplyPatch.as_str()),
    ("Write", ToolKind::WriteFile.as_str()),
    ("Write", ToolKind::ApplyPatch.as_str()),
    ("Read", ToolKind::ReadFile.as_str()),
    ("Read", ToolKind::ReadManyFiles.as_str()),
    ("Grep", ToolKind::Grep.as_str()),
    ("Glob", ToolKind::Glob.as_str()),
    ("LS", ToolKind::ListDir.as_str()),
    ("Task", ToolKind::SpawnAgent.as_str()),
    ("Agent", ToolKind::SpawnAgent.as_str()),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
];

/// Kind of tools that fetch a page.
pub(crate) const WEB_FETCH: &str = "web_fetch";

/// Returns the kind of a built-in tool, by its name in any toolset.
pub(crate) fn kind_of_tool(name: &str) -> Option<&'static str> {
    match name {
        WEB_FETCH | "WebFetch" => Some(WEB_FETCH),
        _ => ToolKind::of_tool(name).map(ToolKind::as_str),
    }
}

/// Prefix of the names of tools of MCP servers.
const MCP: &str = "mcp__";

/// Parses the name of a tool, or a pattern of names. A server may be given by its declared name: an underscore replaces
/// each character that names of tools do not have.
///
/// # Errors
///
/// The problem, for a text that matches no tool name.
pub(crate) fn parse(name: &str) -> Result<Pattern, String> {
    if name.contains(".*") {
        return Err(format!("has `.*` in `{name}`; `*` matches any characters"));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '*');
    if name.starts_with(MCP) {
        let accepted = |c: char| if is_allowed(c) { c } else { '_' };
        return Ok(Pattern::new(name.chars().map(accepted).collect::<String>()));
    }
    match name.chars().find(|c| !is_allowed(*c)) {
        None => Ok(Pattern::new(name)),
        Some(other) => Err(format!("names no tool with `{name}`: {other:?} is in no name of a tool")),
    }
}

/// Returns whether a pattern names a tool by one of `subjects`, its name and kind, or by the tool's name in another
/// toolset or agent.
pub(crate) fn is_named(pattern: &Pattern, subjects: &[&str]) -> bool {
    subjects.iter().any(|subject| pattern.matches(subject))
        || kind_of_tool(pattern.as_str()).is_some_and(|kind| subjects.contains(&kind))
        || OTHER_AGENTS.iter().any(|(theirs, ours)| pattern.matches(theirs) && subjects.contains(ours))
}

/// Returns whether a built-in tool has this name in some toolset or agent.
pub(crate) fn is_built_in(name: &str) -> bool {
    kind_of_tool(name).is_some() || OTHER_AGENTS.iter().any(|(theirs, ours)| [*theirs, *ours].contains(&name))
}
