//! How names become addresses.

use std::{io, net::IpAddr};

use async_trait::async_trait;

/// Resolves names. The proxy connects only to addresses that it has resolved and checked itself, so a record that changes in
/// between has no effect.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a name. Dropping the future ends the request as far as the system can.
    ///
    /// # Errors
    ///
    /// The error of the system, for example for a name that does not exist.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

const _: fn(&dyn Resolver) = |_| {};

/// The resolver of the system, including its file of hosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}
