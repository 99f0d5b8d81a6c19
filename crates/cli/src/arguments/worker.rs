//! `pintle worker`.

#[cfg(feature = "restate")]
use std::net::SocketAddr;

use clap::Args;

use super::RunArgs;
use super::hosted::hide_refused;

/// `pintle worker`.
#[derive(Debug, Args)]
#[command(mut_args(hide_refused(&["wait_approval"])))]
pub(crate) struct WorkerArgs {
    /// Run as a Restate worker that listens on this address and port; without it, run the tasks of the store
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Register the worker at this address of Restate's admin interface, such as http://127.0.0.1:9070
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "URL", requires = "listen")]
    pub(crate) admin: Option<String>,
    /// URL at which Restate reaches this worker, or all workers [default: the address of --listen]
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "URL", requires = "admin")]
    pub(crate) reached_at: Option<String>,
    /// Public key with which Restate signs its requests, such as publickeyv1_…; other requests are rejected. May be repeated
    #[cfg(feature = "restate")]
    #[arg(long, value_name = "KEY", requires = "listen")]
    pub(crate) identity_key: Vec<String>,
    /// Listen beyond loopback without --identity-key even if commands run unsandboxed
    #[cfg(feature = "restate")]
    #[arg(long, requires = "listen")]
    pub(crate) allow_unsandboxed_network: bool,
    /// Maximum number of concurrent tasks
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) max_tasks: u32,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
