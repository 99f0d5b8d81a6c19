//! State that all connections of a proxy share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{resolver::Resolver, rule::HostRules, traffic::Ledger};

/// Bounds of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Concurrent connections of all listeners. Further ones wait. Default 1,024.
    pub connections: usize,
    /// Concurrent connections of one listener. Further ones wait. Default 128.
    pub listener_connections: usize,
    /// Largest head of an HTTP request or response in bytes, at least 8,192. Default 32 KiB.
    pub head_bytes: usize,
    /// Time for the first bytes, for the head of a request, and for the start of a tunnel. Default 10 s.
    pub head_time: Duration,
    /// Time to resolve a name, and to connect to one address. Default 10 s.
    pub connect_time: Duration,
    /// Time without a byte after which a connection is closed; it may take twice as long. Default 5 min.
    pub idle_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            listener_connections: 128,
            head_bytes: 32 << 10,
            head_time: Duration::from_secs(10),
            connect_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(300),
        }
    }
}

/// State of all connections.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) resolver: Arc<dyn Resolver>,
    accounts: Mutex<HashMap<String, Arc<Account>>>,
    pub(crate) connections: Arc<Semaphore>,
}

/// The rules and the traffic of a credential.
pub(crate) struct Account {
    pub(crate) rules: HostRules,
    pub(crate) ledger: Ledger,
    /// Cancelled when the credential ends.
    pub(crate) ended: CancellationToken,
}

impl Shared {
    pub(crate) fn new(resolver: Arc<dyn Resolver>, limits: Limits) -> Self {
        let connections = Arc::new(Semaphore::new(limits.connections));
        Self { limits, resolver, accounts: Mutex::default(), connections }
    }

    pub(crate) fn accounts(&self) -> MutexGuard<'_, HashMap<String, Arc<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the account of a credential.
    pub(crate) fn account(&self, token: &str) -> Option<Arc<Account>> {
        self.accounts().get(token).cloned()
    }
}
