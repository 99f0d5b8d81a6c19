//! Names to addresses, with every address checked before anything connects to it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::AddressRules;

/// Finds the addresses of a name.
pub(crate) type Lookup =
    Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> + Send + Sync>;

/// Resolves a name and refuses it if one of its addresses may not be reached.
///
/// The connection goes to the addresses that were checked, so a name that changes its mind in between gains nothing.
pub(crate) struct CheckedResolver {
    rules: AddressRules,
    lookup: Lookup,
}

impl CheckedResolver {
    pub(crate) fn new(rules: AddressRules, lookup: Lookup) -> Self {
        Self { rules, lookup }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (rules, found) = (self.rules.clone(), (self.lookup)(host.clone()));
        Box::pin(async move {
            let addresses = found.await?;
            for address in &addresses {
                rules.check_address(&host, *address)?;
            }
            // The port is that of the URL.
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// The system's own resolver.
pub(crate) fn system() -> Lookup {
    Arc::new(|host| {
        Box::pin(async move {
            Ok(tokio::net::lookup_host((host.as_str(), 0)).await?.map(|address| address.ip()).collect())
        })
    })
}
