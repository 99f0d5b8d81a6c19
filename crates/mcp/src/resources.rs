//! Resources of servers: a model lists and reads the resources of all servers with two tools.

use std::fmt::Write as _;

use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::connection::ListEntry;
use crate::error::ServerError;
use crate::listing::MalformedEntry;
use crate::process_log::shorten;
use crate::result;
use crate::servers::McpServers;
use crate::spec::ServerName;

/// Name of the tool that lists.
const LIST: &str = "list_mcp_resources";

/// Name of the tool that reads.
const READ: &str = "read_mcp_resource";

/// Maximum number of resources and templates of one listing that a model sees.
const MAX_SHOWN: usize = 200;

/// Maximum number of malformed entries of a server that one listing names.
const MAX_MALFORMED: usize = 5;

/// Maximum number of characters of a server's description that a model sees.
const MAX_DESCRIPTION: usize = 200;

/// Lists the resources of servers.
pub(crate) struct ListResources {
    servers: McpServers,
    description: String,
}

/// The arguments of a listing.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListResourcesInput {
    /// Only the resources of this server.
    server: Option<String>,
    /// Only resources with this text in their URI, name or description.
    query: Option<String>,
}

impl ListResources {
    pub(crate) fn new(servers: McpServers, names: &[&ServerName]) -> Self {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        let description = describe(&names);
        Self { servers, description }
    }
}

fn describe(servers: &[&str]) -> String {
    let text =
        format!(include_str!("../prompts/list_mcp_resources.md"), servers = servers.join(", "), read = READ);
    text.trim_ascii_end().to_owned()
}

impl Tool for ListResources {
    type Input = ListResourcesInput;

    fn name(&self) -> &str {
        LIST
    }

    fn description(&self) -> &str {
        &self.description
    }

    /// It starts servers, and their declarations allow that.
    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, input: ListResourcesInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (mut lines, mut failures) = (Vec::new(), Vec::new());
        for name in select_servers(&self.servers, input.server.as_deref())? {
            match list(&self.servers, &name, cx).await {
                Ok(listed) => {
                    failures.extend(listed.left_out(&name));
                    lines.extend(listed.lines);
                }
                Err(error) => failures.push(format!("Not listed: {error}")),
            }
        }
        let query = input.query.unwrap_or_default().to_lowercase();
        lines.retain(|line| line.to_lowercase().contains(&query));
        let more = lines.len().saturating_sub(MAX_SHOWN);
        lines.truncate(MAX_SHOWN);
        if more > 0 {
            lines.push(format!("[{more} more: narrow the list with `server` or `query`]"));
        } else if lines.is_empty() && failures.is_empty() {
            lines.push("There are no such resources.".to_owned());
        }
        lines.append(&mut failures);
        Ok(ToolOutput::new(lines.join("\n")))
    }
}

/// Reads one resource.
pub(crate) struct ReadResource {
    servers: McpServers,
    effect: Effect,
}

/// The arguments of a read.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadResourceInput {
    /// The server that has the resource.
    server: String,
    /// The URI of the resource: one of a list, or one that follows a template.
    uri: String,
}

impl ReadResource {
    /// A server reads a resource in its own way, so the tool has the greatest effect of the servers' calls.
    pub(crate) fn new(servers: McpServers, effects: impl IntoIterator<Item = Effect>) -> Self {
        let rank = |effect: &Effect| match effect {
            Effect::Read => 0,
            Effect::Network => 1,
            Effect::Write => 2,
            Effect::Execute => 3,
        };
        Self { servers, effect: effects.into_iter().max_by_key(rank).unwrap_or(Effect::Execute) }
    }
}

impl Tool for ReadResource {
    type Input = ReadResourceInput;

    fn name(&self) -> &str {
        READ
    }

    fn description(&self) -> &str {
        "Reads a resource of an MCP server: its text, or the image that it is."
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    /// The server may ask a user. Its own time limit applies.
    fn waits(&self) -> bool {
        true
    }

    async fn call(&self, input: ReadResourceInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let name = select_servers(&self.servers, Some(&input.server))?.into_iter().next();
        let name = name.ok_or_else(|| ToolError::invalid_arguments("expected the name of a server"))?;
        let connection = self.servers.connect(&name, &cx.cancel).await?;
        let contents = connection.read(&input.uri, &cx.cancel, cx.on_output.as_ref()).await?;
        Ok(result::resource(contents))
    }
}

/// Returns the server of this name, or all servers that are known to have resources.
fn select_servers(servers: &McpServers, name: Option<&str>) -> Result<Vec<ServerName>, ToolError> {
    let all: Vec<ServerName> = servers.with_resources().cloned().collect();
    let Some(name) = name else { return Ok(all) };
    let named: Vec<ServerName> = all.iter().filter(|server| server.as_str() == name).cloned().collect();
    if named.is_empty() {
        let names: Vec<&str> = all.iter().map(ServerName::as_str).collect();
        let what =
            format!("there is no server `{name}` with resources: expected one of {}", names.join(", "));
        return Err(ToolError::invalid_arguments(what));
    }
    Ok(named)
}

/// Resources and templates of one server.
#[derive(Default)]
struct ResourceListing {
    /// A line for each of them.
    lines: Vec<String>,
    malformed: Vec<MalformedEntry>,
}

impl ResourceListing {
    fn add<T>(&mut self, entries: Vec<ListEntry<T>>, line: impl Fn(T) -> String) {
        for entry in entries {
            match entry {
                Ok(entry) => self.lines.push(line(entry)),
                Err(malformed) => self.malformed.push(malformed),
            }
        }
    }

    /// Returns a line about the malformed entries.
    fn left_out(&self, server: &ServerName) -> Option<String> {
        let shown: Vec<String> = self.malformed.iter().take(MAX_MALFORMED).map(ToString::to_string).collect();
        let more = self.malformed.len().saturating_sub(MAX_MALFORMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!shown.is_empty()).then(|| format!("Left out of `{server}`, malformed: {}{more}", shown.join("; ")))
    }
}

/// Lists the resources and the templates of a server.
async fn list(
    servers: &McpServers,
    name: &ServerName,
    cx: &ToolContext,
) -> Result<ResourceListing, ServerError> {
    let connection = servers.connect(name, &cx.cancel).await?;
    let mut listed = ResourceListing::default();
    listed.add(connection.resources().await?, |resource| {
        let size = resource.size.map(|size| format!("{size} bytes"));
        let described = [Some(resource.name), resource.mime_type, size, resource.description];
        line(name, &resource.uri, described)
    });
    listed.add(connection.resource_templates().await?, |template| {
        let described =
            [Some(template.name), template.mime_type, Some("template".to_owned()), template.description];
        line(name, &template.uri_template, described)
    });
    Ok(listed)
}

fn line(server: &ServerName, uri: &str, described: [Option<String>; 4]) -> String {
    let mut line = format!("{server}: {uri}");
    for text in described.into_iter().flatten().filter(|text| !text.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(line, ", {}", shorten(&text.replace('\n', " "), MAX_DESCRIPTION));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_names_its_servers_and_the_tool_that_reads() {
        assert_eq!(
            describe(&["a", "b"]),
            "Lists the resources that these MCP servers offer, such as files, documents and records, and the templates for \
             URIs of further ones: a, b. Read one with `read_mcp_resource`."
        );
    }
}
