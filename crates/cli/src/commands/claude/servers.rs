//! MCP servers that the host declares on the command line. Those of type `sdk` run in the host. Some SDKs also list
//! them in the handshake, others only here.

use pintle_compat::claude::StreamOptions;
use pintle_host::SessionSpec;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::servers::ServerSpec;
#[cfg(feature = "mcp")]
use pintle_tui::console;
use serde_json::{Map, Value, json};

/// Member with the servers, by name.
const SERVERS: &str = "mcpServers";

/// Option that declares servers.
const OPTION: &str = "--mcp-config";

/// Type of a server that runs in the host.
const IN_HOST: &str = "sdk";

/// Servers that the host declares.
#[derive(Debug)]
pub(super) struct HostDeclaredServers {
    /// Servers that this process starts.
    pub(super) started: Vec<ServerSpec>,
    /// Names of the servers that run in the host.
    pub(super) in_host: Vec<String>,
}

/// Returns the servers of the command line.
pub(super) fn read_declared(
    options: &StreamOptions,
    spec: &mut SessionSpec,
    process_env: &ProcessEnv,
) -> Result<HostDeclaredServers, Failure> {
    let (mut others, mut in_host) = (Map::new(), Vec::new());
    for config in &options.mcp_configs {
        let text = match config.trim_start().starts_with('{') {
            true => config.clone(),
            false => process_env::read_text("server file", config.as_ref())?,
        };
        let file: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .or_usage(&format!("{OPTION}: expected a JSON object"))?;
        let servers = file.get(SERVERS).and_then(Value::as_object);
        let servers =
            servers.ok_or_else(|| Failure::usage(format!("{OPTION}: expected an object `{SERVERS}`")))?;
        for (name, server) in servers {
            if server.get("type").and_then(Value::as_str) != Some(IN_HOST) {
                others.insert(name.clone(), server.clone());
            } else if server.get("tools").is_some() {
                let problem = format!("{OPTION}: server `{name}`: tool policies are not supported");
                return Err(Failure::usage(problem));
            } else {
                in_host.push(name.clone());
            }
        }
    }
    if options.strict_mcp_config {
        if !others.is_empty() {
            return Err(Failure::usage(
                "--strict-mcp-config is supported only with servers that run in the host",
            ));
        }
        if !spec.tools.server_files.is_empty() {
            return Err(Failure::usage("--strict-mcp-config conflicts with the configured mcp-config"));
        }
        spec.tools.use_servers = false;
    }
    Ok(HostDeclaredServers { started: specs(others, process_env)?, in_host })
}

#[cfg(feature = "mcp")]
fn specs(mut servers: Map<String, Value>, process_env: &ProcessEnv) -> Result<Vec<ServerSpec>, Failure> {
    for server in servers.values_mut().filter_map(Value::as_object_mut) {
        // The transport follows from `command` and `url`.
        server.remove("type");
    }
    let text = json!({SERVERS: servers}).to_string();
    let declared = pintle_mcp::parse_declared_servers(&text, |name| process_env.variable(name));
    declared.warnings.iter().for_each(|warning| console::notice(&format!("{OPTION}: {warning}")));
    match declared.problems.first() {
        Some(problem) => Err(Failure::usage(format!("{OPTION}: {problem}"))),
        None => Ok(declared.servers),
    }
}

#[cfg(not(feature = "mcp"))]
fn specs(servers: Map<String, Value>, _process_env: &ProcessEnv) -> Result<Vec<ServerSpec>, Failure> {
    let _ = json!(SERVERS);
    match servers.keys().next() {
        None => Ok(Vec::new()),
        Some(name) => Err(Failure::usage(format!("{OPTION}: this build cannot start server `{name}`"))),
    }
}
