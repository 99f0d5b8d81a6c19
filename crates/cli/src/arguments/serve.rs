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
    /// Address and port to listen on; port 0 picks a free port [default: 127.0.0.1:7468]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "socket")]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen on a unix socket instead, which only you can connect to
    #[arg(long, value_name = "FILE")]
    pub(crate) socket: Option<PathBuf>,
    /// Additional host name by which clients reach the server; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Allow sessions in this directory and below; may be repeated. TENANT=DIR applies to one tenant and replaces the common
    /// roots [default: the directory of the sessions]
    #[arg(long, value_name = "DIR", value_parser = workspace_root)]
    pub(crate) root: Vec<WorkspaceRoot>,
    /// Listen beyond loopback even if commands run unsandboxed and without approval
    #[arg(long, conflicts_with = "socket")]
    pub(crate) allow_unsandboxed_network: bool,
    /// Token file that `pintle tokens` writes [default: tokens.json in the configuration directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// PEM file with the certificate chain, the server's certificate first; a new file applies without a restart
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "socket")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond loopback without TLS, for example behind a proxy that terminates TLS
    #[arg(long, conflicts_with_all = ["socket", "tls_cert"])]
    pub(crate) no_tls: bool,
    /// Audit log with a line for each request that changes something [default: serve-audit.jsonl in the state directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
    /// Maximum number of open sessions; at the limit, idle sessions are closed, and others wait to be opened
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_sessions: u32,
    /// Maximum number of open sessions per tenant
    #[arg(long, value_name = "N", default_value_t = u32::MAX, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tenant_sessions: u32,
    /// Maximum number of sessions that wait to be opened
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) max_waiting: u32,
    /// Maximum number of requests per second and token
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_rate: u32,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
