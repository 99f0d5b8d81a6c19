//! Connections without an authenticated request.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Connections without an authenticated request, up to a limit. Beyond it, the oldest is closed, so that slow
/// unauthenticated clients cannot exhaust the connections.
#[derive(Clone, Debug)]
pub(crate) struct UnauthenticatedConnections {
    limit: usize,
    waiting: Arc<Mutex<VecDeque<UnauthenticatedPeer>>>,
}

/// The other end of a connection. Clones refer to the same connection.
#[derive(Clone, Debug)]
pub(crate) struct UnauthenticatedPeer {
    /// Address; `None` on a unix socket.
    pub(crate) address: Option<IpAddr>,
    number: u64,
    /// Closes the connection.
    pub(crate) close: CancellationToken,
    unauthenticated: UnauthenticatedConnections,
}

impl UnauthenticatedConnections {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, waiting: Arc::default() }
    }

    /// Adds a connection, with a unique number.
    pub(crate) fn add(&self, number: u64, address: Option<IpAddr>) -> UnauthenticatedPeer {
        let peer = UnauthenticatedPeer {
            address,
            number,
            close: CancellationToken::new(),
            unauthenticated: self.clone(),
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(peer.clone());
        if waiting.len() > self.limit
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.close.cancel();
        }
        peer
    }
}

impl UnauthenticatedPeer {
    /// Removes the connection, because its client has authenticated or disconnected.
    pub(crate) fn remove_waiting(&self) {
        let mut waiting = self.unauthenticated.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|peer| peer.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_is_closed_beyond_the_limit() {
        let unauthenticated = UnauthenticatedConnections::new(2);
        let [one, two, three] = [1, 2, 3].map(|number| unauthenticated.add(number, None));
        assert!(one.close.is_cancelled() && !two.close.is_cancelled());
        two.remove_waiting();
        let four = unauthenticated.add(4, None);
        assert!(!three.close.is_cancelled() && !two.close.is_cancelled());
        unauthenticated.add(5, None);
        assert!(three.close.is_cancelled() && !two.close.is_cancelled() && !four.close.is_cancelled());
    }
}
