//! DNS resolution that checks every address before anything connects to it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use pintle_egress::HostRules;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{AddressRules, DeniedAddress};

/// Function that resolves a name to its addresses.
pub(crate) type HostLookup =
    Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> + Send + Sync>;

/// Resolver that refuses a name if any of its addresses is forbidden.
///
/// The connection goes to the addresses that were checked, so a record that changes in between has no effect.
pub(crate) struct CheckedResolver {
    rules: AddressRules,
    hosts: Option<Arc<HostRules>>,
    lookup: HostLookup,
}

impl CheckedResolver {
    pub(crate) fn new(rules: AddressRules, hosts: Option<Arc<HostRules>>, lookup: HostLookup) -> Self {
        Self { rules, hosts, lookup }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (rules, found) = (self.rules.clone(), (self.lookup)(host.clone()));
        let hosts = self.hosts.clone();
        Box::pin(async move {
            let addresses = found.await?;
            for address in &addresses {
                rules.check_address(&host, *address)?;
                if let Some(rule) = hosts.as_ref().and_then(|hosts| hosts.denial_of(*address)) {
                    return Err(DeniedAddress { host, rule }.into());
                }
            }
            // The client replaces port 0 by the URL's port.
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// Returns the system's resolver.
pub(crate) fn system_lookup() -> HostLookup {
    Arc::new(|host| {
        Box::pin(async move {
            Ok(tokio::net::lookup_host((host.as_str(), 0)).await?.map(|address| address.ip()).collect())
        })
    })
}
