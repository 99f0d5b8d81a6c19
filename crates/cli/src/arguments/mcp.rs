//! `pintle mcp`, and the flags that select the MCP servers of a run.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, Subcommand};
use pintle_host::env_spec::EnvSpec;
use pintle_mcp::ServerName;
use pintle_tools::Effect;

use super::{ConfigurationArgs, ConfinementArgs, EnvArgs, ListFormat, PolicyArgs, ToolsetName};

/// MCP servers of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// Also use the MCP servers that this file declares, in the format of .mcp.json; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "no_mcp")]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Use no MCP servers
    #[arg(long)]
    pub(crate) no_mcp: bool,
}

/// `pintle mcp`.
#[derive(Debug, Args)]
#[command(after_help = "\
Servers are declared in mcp.json in the configuration directory, and in the file .mcp.json of a trusted project, in the
same format:

  {\"mcpServers\": {\"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]}}}")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// Subcommands of `pintle mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the declared MCP servers, without starting any
    List(ServersArgs),
    /// Declare a server by its command after `--`, or by its URL
    Add(Box<AddServerArgs>),
    /// Remove the declaration of a server
    Remove(ServerArg),
    /// Start a server and list its tools
    Tools(Box<ServerToolsArgs>),
    /// Log in to a remote server; its tokens are stored in the state directory
    Login(LoginToServerArgs),
    /// Remove the stored tokens of a server
    Logout(LoginToServerArgs),
    /// Run as an MCP server on stdio with the tools of a run: files, search and commands
    Serve(Box<ServeToolsArgs>),
}

impl McpCommand {
    /// Returns whether commands run on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Serve(args) => args.environment.env == EnvSpec::Local,
            Self::List(_)
            | Self::Add(_)
            | Self::Remove(_)
            | Self::Tools(_)
            | Self::Login(_)
            | Self::Logout(_) => true,
        }
    }
}

/// Servers to list.
#[derive(Debug, Args)]
pub(crate) struct ServersArgs {
    /// Name of the server [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<ServerName>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ListFormat,
}

/// `pintle mcp tools`.
#[derive(Debug, Args)]
pub(crate) struct ServerToolsArgs {
    #[command(flatten)]
    pub(crate) servers: ServersArgs,
    #[command(flatten)]
    pub(crate) confinement: ConfinementArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

/// `pintle mcp login` and `pintle mcp logout`.
#[derive(Debug, Args)]
pub(crate) struct LoginToServerArgs {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: ServerName,
    /// Also search for its declaration in this file, in the format of .mcp.json; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
}

/// A server, and the file that declares it.
#[derive(Debug, Args)]
pub(crate) struct ServerArg {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: ServerName,
    /// Change the project's file .mcp.json instead of your own
    #[arg(long)]
    pub(crate) project: bool,
}

/// `pintle mcp add`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("reached").required(true).args(["url", "command"]))]
pub(crate) struct AddServerArgs {
    #[command(flatten)]
    pub(crate) server: ServerArg,
    /// URL of a remote server
    #[arg(value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) url: Option<String>,
    /// Environment variable for the command, as NAME=VALUE; `${OTHER}` is expanded on use; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", conflicts_with = "url", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// HTTP header, as 'NAME: VALUE'; `${TOKEN}` is expanded from the environment on use; may be repeated
    #[arg(long, short = 'H', value_name = "HEADER", conflicts_with = "command", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,
    /// Offer only tools whose names match this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Do not offer tools whose names match this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
    /// Minimum effect of its calls: `read`, `write`, `network` or `execute` [default: execute]
    #[arg(long, value_name = "EFFECT", value_parser = effect)]
    pub(crate) effect: Option<Effect>,
    /// Run the command outside of the sandbox
    #[arg(long, conflicts_with_all = ["url", "project"])]
    pub(crate) outside_sandbox: bool,
    /// Replace an existing declaration with the same name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Command with its arguments
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<String>,
}

/// Help of `--mode` of `pintle mcp serve`.
const MODE_OF_SERVED_TOOLS: &str = "Mode for calls that match no rule: `plan` (read only), `ask`, `edit` (files in the directory may change) or `auto` \
     (all calls run, commands in the sandbox). Calls that need approval are denied [default: auto; ask without a sandbox]";

/// `pintle mcp serve`.
#[derive(Debug, Args)]
#[command(mut_arg("mode", |mode| mode.help(MODE_OF_SERVED_TOOLS)), mut_arg("after_plan", |mode| mode.hide(true)))]
pub(crate) struct ServeToolsArgs {
    #[command(flatten)]
    pub(crate) environment: EnvArgs,
    /// Toolset offered to the client
    #[arg(long, value_enum, value_name = "NAME", default_value = "spec")]
    pub(crate) toolset: ToolsetName,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Limit the calls to the grant in this JSON file; no rule or mode can exceed it
    #[arg(long, value_name = "FILE")]
    pub(crate) grant: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) confinement: ConfinementArgs,
    #[command(flatten)]
    pub(crate) configuration: ConfigurationArgs,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        Some(_) | None => Err("expected 'NAME: VALUE'".to_owned()),
    }
}

fn effect(text: &str) -> Result<Effect, String> {
    let value = serde_json::Value::from(text);
    serde_json::from_value(value).map_err(|_unknown| "expected read, write, network or execute".to_owned())
}
