//! A connection of a client, whatever it speaks.

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::watch, task::JoinSet};

use crate::state::{Account, Shared};

/// A connection of a client.
pub(crate) struct Connection {
    pub(crate) shared: Arc<Shared>,
    /// The account of its first valid credential.
    account: watch::Sender<Option<Arc<Account>>>,
    /// Connections to targets, which end with this one.
    drivers: Mutex<JoinSet<()>>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, account: watch::Sender::new(None), drivers: Mutex::default() }
    }

    /// Returns the account of a credential. A connection has one credential for its lifetime.
    pub(crate) fn authenticate(&self, token: &str) -> Option<Arc<Account>> {
        let found = self.shared.account(token)?;
        let mut is_same = true;
        self.account.send_if_modified(|account| {
            let is_first = account.is_none();
            is_same = Arc::ptr_eq(account.get_or_insert_with(|| Arc::clone(&found)), &found);
            is_first
        });
        is_same.then_some(found)
    }

    /// Waits until the credential of the connection ends.
    pub(crate) async fn ended(&self) {
        let mut accounts = self.account.subscribe();
        let ended = match accounts.wait_for(Option::is_some).await {
            Ok(account) => account.as_ref().map(|account| account.ended.clone()),
            Err(_) => None,
        };
        match ended {
            Some(ended) => ended.cancelled().await,
            None => pending().await,
        }
    }

    /// Keeps a connection to a target going as long as this one.
    pub(crate) fn drive(&self, driver: impl Future<Output = ()> + Send + 'static) {
        let mut drivers = self.drivers();
        // Those that have ended.
        while drivers.try_join_next().is_some() {}
        drivers.spawn(driver);
    }

    /// Ends the connections to targets.
    pub(crate) fn end(&self) {
        self.drivers().abort_all();
    }

    fn drivers(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
