//! Connections to targets.

use std::net::IpAddr;

use tokio::{net::TcpStream, time::timeout};

use crate::{
    refusal::Refusal,
    rule::HostRules,
    state::Shared,
    target::{Host, Target},
};

/// Most addresses of a name that are tried.
const MAX_ATTEMPTS: usize = 4;

/// Connects to a target that the rules allow, and to no address but those that were resolved and checked here. A name is
/// refused if one of its addresses is.
pub(crate) async fn connect(
    shared: &Shared,
    rules: &HostRules,
    target: &Target,
) -> Result<TcpStream, Refusal> {
    rules.check(target)?;
    let addresses = resolve(shared, target).await?;
    for address in &addresses {
        rules.check_address(*address, target.port())?;
    }
    for address in addresses.into_iter().take(MAX_ATTEMPTS) {
        let connecting = TcpStream::connect((address, target.port()));
        match timeout(shared.limits.connect_time, connecting).await {
            Ok(Ok(stream)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection to a target has a delay");
                }
                return Ok(stream);
            }
            Ok(Err(error)) => tracing::debug!(%error, %target, "a target is not reached"),
            Err(_) => tracing::debug!(%target, "a target is not reached in time"),
        }
    }
    Err(Refusal::Unreachable)
}

async fn resolve(shared: &Shared, target: &Target) -> Result<Vec<IpAddr>, Refusal> {
    let name = match target.host() {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name,
    };
    match timeout(shared.limits.connect_time, shared.resolver.resolve(name)).await {
        Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        Ok(Ok(_) | Err(_)) | Err(_) => Err(Refusal::Unresolved),
    }
}
