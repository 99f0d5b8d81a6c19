//! Names of servers' tools for a model.

use std::collections::HashSet;

use pintle_llm::{Fingerprint, MAX_TOOL_NAME};

/// Prefix of every name. No built-in tool has it.
pub(crate) const PREFIX: &str = "mcp__";

/// Number of characters of the hash that distinguishes names.
const HASH_CHARS: usize = 8;

/// Returns the names for tools of a server, in the order of the tools: `mcp__SERVER__TOOL`, with an underscore in place
/// of each character that some provider rejects.
///
/// A name that is too long is cut and ends with a hash of the tool's own name. So does a name that an earlier tool has.
/// Names depend on the list alone, so that a restarted server has the same names.
pub(crate) fn for_tools<'a>(server: &str, tools: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let prefix = server_prefix(server);
    let mut taken = HashSet::new();
    let mut names = Vec::new();
    for tool in tools {
        let plain = format!("{prefix}{}", replace_rejected(tool));
        let name = if plain.len() > MAX_TOOL_NAME || taken.contains(&plain) {
            append_hash(&plain, tool)
        } else {
            plain
        };
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Returns the prefix of the names of a server's tools.
pub(crate) fn server_prefix(server: &str) -> String {
    format!("{PREFIX}{}__", replace_rejected(server))
}

/// Returns the text with an underscore in place of each character other than ASCII letters and digits.
fn replace_rejected(text: &str) -> String {
    let accept = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(accept).collect()
}

fn append_hash(plain: &str, tool: &str) -> String {
    let hash = Fingerprint::from_bytes(tool.as_bytes()).to_string();
    let room = MAX_TOOL_NAME - HASH_CHARS - 1;
    let kept = plain.get(..room).unwrap_or(plain);
    format!("{kept}_{}", hash.get(..HASH_CHARS).unwrap_or(&hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_by_every_provider_and_differ() {
        let long = "x".repeat(80);
        let tools = ["read", "read-file", "read.file", "lesen_für", long.as_str(), &format!("{long}y")];
        let names = for_tools("my-server", tools);
        assert_eq!(names[..2], ["mcp__my_server__read", "mcp__my_server__read_file"]);
        assert!(names[2].starts_with("mcp__my_server__read_file_"), "{}", names[2]);
        for name in &names {
            assert!(name.len() <= MAX_TOOL_NAME, "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        }
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert_eq!(for_tools("my-server", tools), names, "the same list has the same names");
    }
}
