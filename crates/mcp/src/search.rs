//! Tools that are not in every request: a model searches for them, and calls the tools that it has found.

use std::cmp::Reverse;
use std::fmt::Write as _;

use async_trait::async_trait;
use pintle_llm::ToolDefinition;
use pintle_tools::{
    DefinitionError, DynTool, Effect, RepresentedCall, Tool, ToolContext, ToolError, ToolOutput, most_similar,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::listing::OfferedTool;
use crate::servers::McpServers;

/// Name of the tool that searches.
pub(crate) const SEARCH: &str = "search_tools";

/// Name of the tool that calls a found tool.
pub(crate) const CALL: &str = "call_tool";

/// Default number of tools that a search describes.
const DEFAULT_LIMIT: usize = 8;

/// Maximum number of tools that a search describes.
const MAX_LIMIT: usize = 40;

/// Maximum number of names of further tools that a search lists.
const MAX_NAMES: usize = 200;

/// Searches the tools of all servers.
pub(crate) struct SearchTools {
    servers: McpServers,
    description: String,
}

/// The arguments of a search.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SearchToolsInput {
    /// Words of what the tool is for, or the name of a tool. Empty for the names of all tools.
    query: String,
    /// Only the tools of this server.
    server: Option<String>,
    /// The number of tools to describe: 1 to 40, default 8.
    limit: Option<usize>,
}

impl SearchTools {
    pub(crate) fn new(servers: McpServers) -> Self {
        let names: Vec<&str> = servers.specs().map(|spec| spec.name.as_str()).collect();
        let description = describe(&names);
        Self { servers, description }
    }
}

fn describe(servers: &[&str]) -> String {
    let text = format!(include_str!("../prompts/search_tools.md"), servers = servers.join(", "), call = CALL);
    text.trim_ascii_end().to_owned()
}

impl Tool for SearchTools {
    type Input = SearchToolsInput;

    fn name(&self) -> &str {
        SEARCH
    }

    fn description(&self) -> &str {
        &self.description
    }

    /// It starts servers, which their declaration allows.
    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, input: SearchToolsInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let SearchToolsInput { query, server, limit } = input;
        let declared: Vec<String> = self.servers.specs().map(|spec| spec.name.to_string()).collect();
        let wanted = |name: &str| server.as_deref().is_none_or(|server| server == name);
        if !declared.iter().any(|name| wanted(name)) {
            let server = server.unwrap_or_default();
            let similar = most_similar(&server, declared.iter().map(String::as_str)).join(", ");
            let text = format!("there is no server `{server}`: expected one of {}", declared.join(", "));
            let hint = if similar.is_empty() { String::new() } else { format!("; did you mean {similar}?") };
            return Err(ToolError::invalid_arguments(text + &hint));
        }
        let (mut tools, mut failures, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for spec in self.servers.specs().filter(|spec| wanted(spec.name.as_str())) {
            match self.servers.offered_tools(&spec.name).await {
                Ok(offered) => {
                    for tool in offered {
                        // A call would be refused.
                        match self.servers.deferred(spec, &tool) {
                            Ok(_callable) => tools.push(tool),
                            Err(_wrong) => refused.push(tool.name),
                        }
                    }
                }
                Err(error) => failures.push(format!("Not searched: {error}")),
            }
        }
        if !refused.is_empty() {
            let shown = refused.get(..MAX_NAMES).unwrap_or(&refused).join(", ");
            failures.push(format!("Left out, because their schemas are invalid: {shown}"));
        }
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        Ok(ToolOutput::new(report(&tools, &failures, &query, limit)))
    }
}

/// Returns the matching tools, the best first: the tools with the most words of the query in their names, then in their
/// descriptions.
fn find_tools<'a>(tools: &'a [OfferedTool], query: &str) -> Vec<&'a OfferedTool> {
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let score = |tool: &OfferedTool| -> usize {
        let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
        let of_word = |word: &String| match (name.contains(word), description.contains(word)) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 0,
        };
        words.iter().map(of_word).sum()
    };
    let mut scored: Vec<(usize, &OfferedTool)> = tools.iter().map(|tool| (score(tool), tool)).collect();
    scored.retain(|(score, _)| *score > 0);
    scored.sort_by_key(|(score, tool)| (Reverse(*score), tool.name.clone()));
    scored.into_iter().map(|(_, tool)| tool).collect()
}

fn report(tools: &[OfferedTool], failures: &[String], query: &str, limit: usize) -> String {
    let mut text = String::new();
    let fitting = find_tools(tools, query);
    for tool in fitting.iter().take(limit) {
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{}: {}\n  parameters: {}\n", tool.name, tool.description.trim(), tool.parameters);
    }
    let rest: Vec<&str> = match fitting.is_empty() {
        true => tools.iter().map(|tool| tool.name.as_str()).collect(),
        false => fitting.iter().skip(limit).map(|tool| tool.name.as_str()).collect(),
    };
    let label = if fitting.is_empty() { "All tools" } else { "Also found" };
    if !rest.is_empty() {
        let shown = rest.get(..MAX_NAMES).unwrap_or(&rest).join(", ");
        let more = rest.len().saturating_sub(MAX_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "{label}: {shown}{more}");
    } else if fitting.is_empty() {
        text.push_str("There are no tools.\n");
    }
    for failure in failures {
        let _ = writeln!(text, "{failure}");
    }
    text
}

/// Calls a tool that a search has found. The call is judged and runs as a call of that tool.
pub(crate) struct CallTool;

#[async_trait]
impl DynTool for CallTool {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let description = format!("Calls a tool that `{SEARCH}` has found.");
        let parameters = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of the tool."},
                "arguments": {"type": "object", "description": "The arguments, as the parameters of the tool describe them."},
            },
            "required": ["name"],
            "additionalProperties": false,
        });
        ToolDefinition::new(CALL, description, parameters)
            .map_err(|error| DefinitionError::refused(CALL, error))
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    fn represented_call(&self, arguments: &Value) -> Option<RepresentedCall> {
        let name = arguments.get("name")?.as_str()?;
        let arguments = arguments.get("arguments").cloned().unwrap_or_else(|| json!({}));
        Some(RepresentedCall::new(name, arguments))
    }

    async fn call_json(&self, _arguments: Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        // A call of this tool is always a call of another tool.
        Err(ToolError::invalid_arguments("expected the name of a tool"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> OfferedTool {
        OfferedTool {
            name: name.to_owned(),
            tool: String::new(),
            description: description.to_owned(),
            parameters: json!({"type": "object"}),
            effect: Effect::Read,
        }
    }

    #[test]
    fn a_search_names_its_servers_and_the_tool_for_calls() {
        assert_eq!(
            describe(&["a", "b"]),
            "Searches the tools of these servers, and describes the ones that fit best with their parameters: a, b. Call a \
             tool that was found with `call_tool`."
        );
    }

    #[test]
    fn names_count_more_than_descriptions() {
        let tools = [
            tool("mcp__git__commit", "Records changes."),
            tool("mcp__git__log", "Shows commits of a branch."),
            tool("mcp__mail__send", "Sends a message about a commit log."),
        ];
        let names =
            |query: &str| find_tools(&tools, query).iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names("commit"), ["mcp__git__commit", "mcp__git__log", "mcp__mail__send"]);
        assert_eq!(names("Git LOG!"), ["mcp__git__log", "mcp__git__commit", "mcp__mail__send"]);
        assert_eq!(names("mcp__mail__send"), ["mcp__mail__send", "mcp__git__commit", "mcp__git__log"]);
        assert!(names("weather").is_empty() && names("").is_empty());
    }

    #[test]
    fn a_report_describes_some_and_names_the_rest() {
        let tools = [
            tool("mcp__a__read", "Reads."),
            tool("mcp__a__read_all", "Reads all."),
            tool("mcp__a__write", "W."),
        ];
        assert_eq!(
            report(&tools, &["Not searched: MCP server `b` is gone".to_owned()], "read", 1),
            "mcp__a__read: Reads.\n  parameters: {\"type\":\"object\"}\n\nAlso found: mcp__a__read_all\nNot searched: MCP \
             server `b` is gone\n"
        );
        assert_eq!(
            report(&tools, &[], "none", 1),
            "All tools: mcp__a__read, mcp__a__read_all, mcp__a__write\n"
        );
        assert_eq!(report(&[], &[], "", 1), "There are no tools.\n");
    }
}
