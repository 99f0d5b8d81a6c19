//! `pintle mock`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

/// `pintle mock`.
#[derive(Debug, Args)]
pub(crate) struct MockArgs {
    #[command(subcommand)]
    pub(crate) command: MockCommand,
}

/// Subcommands of `pintle mock`.
#[derive(Debug, Subcommand)]
pub(crate) enum MockCommand {
    /// Serve all four dialects until Ctrl-C; prints the base URLs first
    Serve(ServeArgs),
}

/// `pintle mock serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Script to serve
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Only accept this API key [default: accept any]
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) api_key: Option<String>,
}
