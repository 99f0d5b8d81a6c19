//! Description of a session at the start of a run.

use serde_json::{Value, json};

use super::tool_names::claude_tool_name;

/// Facts for the `system` line `init`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitInfo {
    /// Working directory of the tools.
    pub directory: String,
    /// Names of the tools in the session.
    pub tools: Vec<String>,
    /// MCP servers and their status.
    pub mcp_servers: Vec<McpServerStatus>,
    /// Model.
    pub model: String,
    /// Permission mode, with Claude's name.
    pub permission_mode: String,
    /// Source of the API key, such as `user` or `none`.
    pub api_key_source: String,
    /// Slash commands, without the slash.
    pub slash_commands: Vec<String>,
    /// Names of skills.
    pub skills: Vec<String>,
    /// Names of agents that can be spawned.
    pub agents: Vec<String>,
    /// Version of the program that writes the stream.
    pub version: String,
}

/// Status of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerStatus {
    /// Name of the server.
    pub name: String,
    /// `connected`, `failed`, `pending`, `needs-auth` or `disabled`.
    pub status: String,
}

impl InitInfo {
    /// Returns the fields of the line.
    pub(super) fn to_value(&self) -> Value {
        let mut tools: Vec<&str> = Vec::new();
        for tool in &self.tools {
            let name = claude_tool_name(tool);
            if !tools.contains(&name) {
                tools.push(name);
            }
        }
        let server = |server: &McpServerStatus| json!({"name": server.name, "status": server.status});
        json!({
            "type": "system",
            "subtype": "init",
            "cwd": self.directory,
            "tools": tools,
            "mcp_servers": self.mcp_servers.iter().map(server).collect::<Vec<_>>(),
            "model": self.model,
            "permissionMode": self.permission_mode,
            "apiKeySource": self.api_key_source,
            "slash_commands": self.slash_commands,
            "skills": self.skills,
            "agents": self.agents,
            "plugins": [],
            "output_style": "default",
            "claude_code_version": self.version,
        })
    }
}
