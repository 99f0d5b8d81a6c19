//! Parameters of the requests and notifications of a client.
//!
//! Unknown fields are ignored. Where the schema of the protocol allows it, a field of a wrong type counts as missing.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::ContentBlock;
use crate::rpc::RequestId;

/// Reads a value, or the default if it has a wrong type.
fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    pub(crate) protocol_version: u16,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) client_capabilities: ClientCapabilities,
}

/// Capabilities of the client.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientCapabilities {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) fs: FileCapabilities,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) terminal: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) session: SessionCapabilities,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileCapabilities {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) read_text_file: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) write_text_file: bool,
}

/// A capability is supported if it is an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionCapabilities {
    #[serde(default)]
    pub(crate) notices: Value,
    #[serde(default)]
    pub(crate) compaction: Value,
    #[serde(default)]
    pub(crate) config_options: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthenticateParams {
    pub(crate) method_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSessionParams {
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    pub(crate) additional_directories: Vec<PathBuf>,
    #[serde(default)]
    pub(crate) mcp_servers: Vec<McpServerParams>,
}

/// Parameters of `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenSessionParams {
    pub(crate) session_id: String,
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    pub(crate) additional_directories: Vec<PathBuf>,
    #[serde(default)]
    pub(crate) mcp_servers: Vec<McpServerParams>,
}

/// Declaration of an MCP server: a URL with the type `http`, otherwise a process.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpServerParams {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) transport: Option<String>,
    pub(crate) url: Option<String>,
    #[serde(default)]
    pub(crate) headers: Vec<NamedValue>,
    pub(crate) command: Option<String>,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: Vec<NamedValue>,
}

/// HTTP header or environment variable.
#[derive(Debug, Deserialize)]
pub(crate) struct NamedValue {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListSessionsParams {
    #[serde(default)]
    pub(crate) cwd: Option<PathBuf>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionIdParams {
    pub(crate) session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptParams {
    pub(crate) session_id: String,
    pub(crate) prompt: Vec<ContentBlock>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetModeParams {
    pub(crate) session_id: String,
    pub(crate) mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetConfigOptionParams {
    pub(crate) session_id: String,
    pub(crate) config_id: String,
    /// A string or a boolean.
    pub(crate) value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelParams {
    pub(crate) session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequestParams {
    pub(crate) request_id: RequestId,
}
