//! `pintle serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::RunArgs;

/// `pintle serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeSessionsArgs {
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:7468]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "socket")]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen on a unix socket instead, which only you can connect to
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// More names by which clients reach the server
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
