//! MCP servers that the host declares on the command line. Those of type `sdk` run in the host and are part of the
//! handshake.

use pintle_compat::claude::StreamOptions;
use serde_json::{Map, Value, json};

use crate::args::RunArgs;
#[cfg(feature = "mcp")]
use crate::console;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};
use crate::servers::ServerSpec;

/// Member with the servers, by name.
const SERVERS: &str = "mcpServers";

/// Option that declares servers.
const OPTION: &str = "--mcp-config";

/// Returns the servers that this process starts.
///
/// # Errors
///
/// A usage failure for a declaration that is wrong, or that this build does not support.
pub(super) fn declared(
    options: &StreamOptions,
    args: &mut RunArgs,
    process_env: &ProcessEnv,
) -> Result<Vec<ServerSpec>, Failure> {
    let mut others = Map::new();
    for config in &options.mcp_configs {
        let text = match config.trim_start().starts_with('{') {
            true => config.clone(),
            false => process_env::read_text("file of servers", config.as_ref())?,
        };
        let file: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .or_usage(&format!("{OPTION}: expected a JSON object"))?;
        let servers = file.get(SERVERS).and_then(Value::as_object);
        let servers =
            servers.ok_or_else(|| Failure::usage(format!("{OPTION}: expected an object `{SERVERS}`")))?;
        let is_started = |server: &Value| server.get("type").and_then(Value::as_str) != Some("sdk");
        others.extend(
            servers.iter().filter(|(_, server)| is_started(server)).map(|(k, v)| (k.clone(), v.clone())),
        );
    }
    if options.strict_mcp_config {
        if !others.is_empty() {
            return Err(Failure::usage(
                "--strict-mcp-config is supported only with servers that run in the host",
            ));
        }
        without_servers(args)?;
    }
    specs(others, process_env)
}

#[cfg(feature = "mcp")]
fn without_servers(args: &mut RunArgs) -> Result<(), Failure> {
    if !args.servers.mcp_config.is_empty() {
        return Err(Failure::usage("--strict-mcp-config does not go together with a configured mcp-config"));
    }
    args.servers.no_mcp = true;
    Ok(())
}

#[cfg(not(feature = "mcp"))]
#[expect(clippy::unnecessary_wraps, reason = "a build with servers can fail")]
fn without_servers(_args: &mut RunArgs) -> Result<(), Failure> {
    Ok(())
}

#[cfg(feature = "mcp")]
fn specs(mut servers: Map<String, Value>, process_env: &ProcessEnv) -> Result<Vec<ServerSpec>, Failure> {
    for server in servers.values_mut().filter_map(Value::as_object_mut) {
        // The transport follows from `command` and `url`.
        server.remove("type");
    }
    let text = json!({SERVERS: servers}).to_string();
    let declared = pintle_mcp::declared_servers(&text, |name| process_env.variable(name));
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
