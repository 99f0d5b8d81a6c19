//! The connections of a credential, with their bytes.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;

use crate::refusal::Refusal;

/// Most entries of one credential.
const MAX_ENTRIES: usize = 256;

/// How a client reaches a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// A request of HTTP without TLS.
    Http,
    /// A tunnel by the method CONNECT of HTTP.
    Connect,
    /// A tunnel of SOCKS5.
    Socks,
}

/// The connections to one target that had the same verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Host and port. Empty if the request names no valid host.
    pub target: String,
    /// How the client asked for it.
    pub protocol: Protocol,
    /// Why it was refused; `None` if it was allowed.
    pub refusal: Option<Refusal>,
    /// Number of connections, or of refused requests.
    pub connections: u64,
    /// Bytes to the target.
    pub sent: u64,
    /// Bytes from the target.
    pub received: u64,
}

/// The connections of a credential up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficReport {
    /// Ordered by target.
    pub entries: Vec<Traffic>,
    /// Connections to further targets, which have no entry. Each credential has at most 256 entries.
    pub omitted: u64,
}

impl TrafficReport {
    /// Returns the refused targets, each once, with the reason.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &Refusal)> {
        self.entries.iter().filter_map(|entry| Some((entry.target.as_str(), entry.refusal.as_ref()?)))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTP",
            Self::Connect => "CONNECT",
            Self::Socks => "SOCKS5",
        })
    }
}

/// Counts of one entry.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    connections: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counters {
    pub(crate) fn add_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Waits until no byte has been counted for this time, and for at most twice the time. Cancel safe.
    pub(crate) async fn idle(&self, time: Duration) {
        let total = || self.sent.load(Ordering::Relaxed).wrapping_add(self.received.load(Ordering::Relaxed));
        let mut before = total();
        loop {
            sleep(time).await;
            let now = total();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

type Key = (String, Protocol, Option<Refusal>);

/// The entries of a credential. Their number is bounded.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Mutex<BTreeMap<Key, Arc<Counters>>>,
    omitted: Arc<Counters>,
}

impl Ledger {
    /// Records a connection, and returns the counters for its bytes.
    pub(crate) fn note(
        &self,
        target: &dyn fmt::Display,
        protocol: Protocol,
        refusal: Option<Refusal>,
    ) -> Arc<Counters> {
        let key = (target.to_string(), protocol, refusal);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = match entries.get(&key) {
            Some(known) => Arc::clone(known),
            None if entries.len() < MAX_ENTRIES => Arc::clone(entries.entry(key).or_default()),
            None => Arc::clone(&self.omitted),
        };
        counters.connections.fetch_add(1, Ordering::Relaxed);
        counters
    }

    pub(crate) fn report(&self) -> TrafficReport {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = entries.iter().map(|((target, protocol, refusal), counters)| Traffic {
            target: target.clone(),
            protocol: *protocol,
            refusal: refusal.clone(),
            connections: counters.connections.load(Ordering::Relaxed),
            sent: counters.sent.load(Ordering::Relaxed),
            received: counters.received.load(Ordering::Relaxed),
        });
        TrafficReport {
            entries: entries.collect(),
            omitted: self.omitted.connections.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_summed_and_bounded() {
        let ledger = Ledger::default();
        ledger.note(&"a:443", Protocol::Connect, None).add_sent(3);
        let again = ledger.note(&"a:443", Protocol::Connect, None);
        again.add_sent(4);
        again.add_received(5);
        ledger.note(&"a:443", Protocol::Connect, Some(Refusal::NoServerName));
        let report = ledger.report();
        let counts: Vec<_> =
            report.entries.iter().map(|entry| (entry.connections, entry.sent, entry.received)).collect();
        assert_eq!(counts, [(2, 7, 5), (1, 0, 0)]);
        assert_eq!(report.refused().collect::<Vec<_>>(), [("a:443", &Refusal::NoServerName)]);
        for number in 0..10_000 {
            ledger.note(&format!("{number}.example:443"), Protocol::Socks, Some(Refusal::Unnamed));
        }
        let report = ledger.report();
        assert_eq!((report.entries.len(), report.omitted), (MAX_ENTRIES, 10_000 + 2 - 256));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_without_bytes() {
        let counters = Arc::new(Counters::default());
        let start = tokio::time::Instant::now();
        let busy = async {
            for _ in 0..4 {
                sleep(Duration::from_secs(9)).await;
                counters.add_received(1);
            }
        };
        tokio::join!(busy, counters.idle(Duration::from_secs(10)));
        assert_eq!(start.elapsed(), Duration::from_secs(50));
    }
}
