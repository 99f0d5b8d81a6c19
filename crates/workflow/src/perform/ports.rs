//! Free ports.

use std::collections::BTreeMap;
use std::io;

use tokio::net::TcpListener;

/// Number of ports of a workspace.
const PORTS: usize = 4;

/// Returns variables with free ports: `PORT`, and all of them in `PINTLE_PORTS`. They are free now. The system may later
/// assign one of them to a program that requests any free port.
pub(super) async fn find_free() -> io::Result<BTreeMap<String, String>> {
    // All listeners are open at once, so that the ports differ.
    let mut listeners = Vec::with_capacity(PORTS);
    for _ in 0..PORTS {
        listeners.push(TcpListener::bind(("127.0.0.1", 0)).await?);
    }
    let ports: io::Result<Vec<String>> =
        listeners.iter().map(|listener| Ok(listener.local_addr()?.port().to_string())).collect();
    let ports = ports?;
    let first = ports.first().cloned().unwrap_or_default();
    Ok(BTreeMap::from([("PORT".to_owned(), first), ("PINTLE_PORTS".to_owned(), ports.join(","))]))
}
