//! Connections whose sender is not known yet.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Connections on which no request with a valid token has come. There is room for so many: if there are more, the oldest is
/// closed, so that whoever opens many and sends slowly keeps out neither probes nor callers with a token.
#[derive(Clone, Debug)]
pub(crate) struct Newcomers {
    room: usize,
    waiting: Arc<Mutex<VecDeque<Peer>>>,
}

/// The other end of a connection. Clones are of the same connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Its address; `None` on a unix socket.
    pub(crate) address: Option<IpAddr>,
    number: u64,
    /// Closes the connection.
    pub(crate) leave: CancellationToken,
    newcomers: Newcomers,
}

impl Newcomers {
    pub(crate) fn new(room: usize) -> Self {
        Self { room, waiting: Arc::default() }
    }

    /// Adds a connection, with a number that no other has.
    pub(crate) fn add(&self, number: u64, address: Option<IpAddr>) -> Peer {
        let peer = Peer { address, number, leave: CancellationToken::new(), newcomers: self.clone() };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(peer.clone());
        if waiting.len() > self.room
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.leave.cancel();
        }
        peer
    }
}

impl Peer {
    /// Notes that the sender is known, or gone.
    pub(crate) fn is_known(&self) {
        let mut waiting = self.newcomers.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|peer| peer.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_newcomer_makes_way() {
        let newcomers = Newcomers::new(2);
        let [one, two, three] = [1, 2, 3].map(|number| newcomers.add(number, None));
        assert!(one.leave.is_cancelled() && !two.leave.is_cancelled());
        two.is_known();
        let four = newcomers.add(4, None);
        assert!(!three.leave.is_cancelled() && !two.leave.is_cancelled());
        newcomers.add(5, None);
        assert!(three.leave.is_cancelled() && !two.leave.is_cancelled() && !four.leave.is_cancelled());
    }
}
