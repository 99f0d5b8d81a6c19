//! Validation of tool names, before a provider rejects them.

use std::collections::HashSet;

use pintle_llm::{Error, MAX_TOOL_NAME, ToolItem, ToolList};

use crate::media::unsupported;

/// Refuses tools that every provider rejects: with an illegal or a duplicate name. Definitions are validated at
/// construction, but may have been deserialised or changed since. Each list is checked once.
pub(crate) fn check_tools(tools: &ToolList, provider: &str) -> Result<(), Error> {
    let problem = tools.encoding("tool-names", "", problem_of);
    problem.as_ref().as_ref().map_or(Ok(()), |message| Err(unsupported(provider, message.as_str())))
}

fn problem_of(tools: &[ToolItem]) -> Option<String> {
    let mut names = HashSet::new();
    tools.iter().map(|tool| tool.name.as_str()).find_map(|name| {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > MAX_TOOL_NAME || !name.chars().all(legal) {
            let expected = format!("1 to {MAX_TOOL_NAME} letters, digits, _ and -");
            return Some(format!("`{name}` is not a legal tool name: expected {expected}"));
        }
        (!names.insert(name)).then(|| format!("two tools are named `{name}`"))
    })
}

#[cfg(test)]
mod tests {
    use pintle_llm::ToolDefinition;

    use super::*;

    #[test]
    fn invalid_tools_are_refused_by_name() {
        let tool = |name: &str| {
            let mut tool = ToolDefinition::new("t", "", serde_json::json!({"type": "object"})).unwrap();
            tool.name = name.to_owned();
            tool
        };
        assert!(check_tools(&vec![tool("a"), tool("a-b_2")].into(), "p").is_ok());
        let cases = [
            (vec![tool("")], "`` is not a legal tool name: expected 1 to 64 letters, digits, _ and -"),
            (vec![tool("a b")], "`a b` is not a legal tool name: expected 1 to 64 letters, digits, _ and -"),
            (vec![tool("a"), tool("b"), tool("a")], "two tools are named `a`"),
        ];
        for (tools, expected) in cases {
            let error = check_tools(&tools.into(), "p").unwrap_err();
            assert_eq!((error.message(), error.kind()), (expected, pintle_llm::ErrorKind::InvalidRequest));
        }
        assert!(check_tools(&vec![tool(&"x".repeat(65))].into(), "p").is_err());
    }
}
