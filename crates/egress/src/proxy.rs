//! The proxy and its credentials.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::Connection,
    http,
    resolver::Resolver,
    rule::HostRules,
    socks,
    state::{Account, Limits, Shared},
    stream::Counted,
    traffic::{Counters, Ledger, TrafficReport},
};

/// First byte of a client of SOCKS5.
const SOCKS: u8 = 5;

/// User name of all credentials.
const USER: &str = "pintle";

/// Random bytes of a credential.
const TOKEN_BYTES: usize = 16;

/// Wait after a connection that could not be accepted, for example without a free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Error while a credential is drawn: the system has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no random numbers for a credential")]
pub struct CredentialError;

/// A proxy for HTTP, CONNECT and SOCKS5 that connects only where the rules of a credential allow it.
///
/// Cheap to clone. Clones share credentials and limits.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
}

/// A credential of the proxy. Dropping it ends the credential and closes its connections.
pub struct Admission {
    token: String,
    account: Arc<Account>,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Returns a proxy without credentials.
    #[must_use]
    pub fn new(resolver: Arc<dyn Resolver>, limits: Limits) -> Self {
        Self { shared: Arc::new(Shared::new(resolver, limits)) }
    }

    /// Draws a credential, and admits its connections to the targets that the rules allow.
    ///
    /// # Errors
    ///
    /// [`CredentialError`].
    pub fn admit(&self, rules: HostRules) -> Result<Admission, CredentialError> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|_| CredentialError)?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let account = Arc::new(Account { rules, ledger: Ledger::default(), ended: CancellationToken::new() });
        self.shared.accounts().insert(token.clone(), Arc::clone(&account));
        Ok(Admission { token, account, shared: Arc::clone(&self.shared) })
    }

    /// Serves the connections of a listener until it fails. Dropping the future closes all of its connections.
    pub async fn serve(&self, listener: TcpListener) -> io::Error {
        let mut connections = JoinSet::new();
        let own = Arc::new(Semaphore::new(self.shared.limits.listener_connections));
        loop {
            let slots = async {
                // This order: a full listener takes nothing from the others.
                let own = Arc::clone(&own).acquire_owned().await;
                (own, Arc::clone(&self.shared.connections).acquire_owned().await)
            };
            let (Ok(own_slot), Ok(slot)) = slots.await else {
                return io::Error::other("the proxy is closed");
            };
            // Those that have ended.
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&self.shared);
                    connections.spawn(async move {
                        serve_connection(shared, stream).await;
                        drop((own_slot, slot));
                    });
                }
                Err(error) if is_final(&error) => return error,
                Err(error) => {
                    tracing::debug!(%error, "a connection to the proxy is not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Returns how many connections may still be accepted.
    #[cfg(test)]
    pub(crate) fn free_connections(&self) -> usize {
        self.shared.connections.available_permits()
    }

    /// Returns the number of credentials.
    #[must_use]
    pub fn credentials(&self) -> usize {
        self.shared.accounts().len()
    }
}

/// Serves a client until one side ends the connection, its credential ends, or it is idle for too long. Dropping the future
/// closes the connection to the client and to its target.
async fn serve_connection(shared: Arc<Shared>, stream: TcpStream) {
    let (head_time, idle_time) = (shared.limits.head_time, shared.limits.idle_time);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection to the proxy has a delay");
    }
    let mut first = [0];
    match timeout(head_time, stream.peek(&mut first)).await {
        Ok(Ok(1..)) => {}
        Ok(Ok(0) | Err(_)) | Err(_) => return,
    }
    let bytes = Arc::new(Counters::default());
    let client = Counted::new(stream, Arc::clone(&bytes));
    let connection = Arc::new(Connection::new(shared));
    let served = async {
        match first {
            [SOCKS] => socks::serve(client, &connection).await,
            [_] => http::serve(client, &connection).await,
        }
    };
    tokio::select! {
        () = served => {}
        () = connection.ended() => {}
        () = bytes.idle(idle_time) => {}
    }
    connection.end();
}

/// Returns true if the listener itself is unusable.
fn is_final(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected)
}

impl Admission {
    /// Returns the secret part of the credential.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the variables by which programs find a proxy at this address: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and
    /// `NO_PROXY`, each in lower case too. `NO_PROXY` names this machine, which for a sandbox with separate network is the
    /// sandbox.
    #[must_use]
    pub fn variables(&self, address: SocketAddr) -> Vec<(String, String)> {
        let url = self.url(address);
        let local = "localhost,127.0.0.1,::1".to_owned();
        let upper = [("HTTP_PROXY", &url), ("HTTPS_PROXY", &url), ("ALL_PROXY", &url), ("NO_PROXY", &local)];
        let both = upper.into_iter().flat_map(|(name, value)| {
            [(name.to_owned(), value.clone()), (name.to_ascii_lowercase(), value.clone())]
        });
        both.collect()
    }

    /// Returns the URL of a proxy at this address, with the credential.
    #[must_use]
    pub fn url(&self, address: SocketAddr) -> String {
        format!("http://{USER}:{}@{address}", self.token)
    }

    /// Returns the connections up to now.
    #[must_use]
    pub fn traffic(&self) -> TrafficReport {
        self.account.ledger.report()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.shared.accounts().remove(&self.token);
        self.account.ended.cancel();
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        f.debug_struct("Admission").field("rules", &self.account.rules).finish_non_exhaustive()
    }
}
