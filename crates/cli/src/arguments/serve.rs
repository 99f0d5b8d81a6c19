//! `pintle serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use pintle_server::WorkspaceRoot;

use super::RunArgs;
use super::hosted::hide_refused;

/// Parses a value of `--root`.
fn workspace_root(text: &str) -> Result<WorkspaceRoot, &'static str> {
    let tenant = text.split_once('=').filter(|(tenant, _)| !tenant.contains('/'));
    match tenant {
        Some((tenant, directory)) if !tenant.is_empty() && !directory.is_empty() => {
            Ok(WorkspaceRoot::for_tenant(tenant, directory))
        }
        None if !text.is_empty() => Ok(WorkspaceRoot::new(text)),
        Some(_) | None => Err("expected DIR or TENANT=DIR"),
    }
}

/// `pintle serve`.
#[derive(Debug, Args)]
#[command(mut_args(hide_refused(&[])))]
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
    /// Allow sessions in this directory and below; repeatable. TENANT=DIR applies to one tenant and replaces the common roots
    /// [default: the directory of the sessions]
    #[arg(long, value_name = "DIR", value_parser = workspace_root)]
    pub(crate) root: Vec<WorkspaceRoot>,
    /// Listen beyond loopback even if commands run unsandboxed and without approval
    #[arg(long, conflicts_with = "socket")]
    pub(crate) allow_unsandboxed_network: bool,
    /// File of tokens, as `pintle tokens` writes it [default: tokens.json in the directory of the configuration]
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Certificates in PEM, the server's certificate first; a new file applies without a restart
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "socket")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve another interface than loopback without TLS, such as behind a proxy that has it
    #[arg(long, conflicts_with_all = ["socket", "tls_cert"])]
    pub(crate) no_tls: bool,
    /// File of a line for each request that changes something [default: serve-audit.jsonl in the directory of the state]
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
    /// Most sessions that are open at once; then those make way that do nothing, and the next ones wait
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_sessions: u32,
    /// Most sessions of one tenant that are open at once
    #[arg(long, value_name = "N", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tenant_sessions: u32,
    /// Most sessions that wait to be opened
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) max_waiting: u32,
    /// Most requests of one token in a second
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_rate: u32,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
