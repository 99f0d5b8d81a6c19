//! Connections of a store, and the state that its parts share.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use pintle_store::{Holder, StoreError};
use tokio::sync::watch;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::options::PostgresOptions;
use crate::reconnecting_client::ReconnectingClient;
use crate::schema;
use crate::statement_error::refused_input;

/// Retries of a statement that failed because of a concurrent change.
pub(crate) const REMOVALS: u32 = 8;

/// Connections and settings of a store.
pub(crate) struct Database {
    pub(crate) main: ReconnectingClient,
    /// Connection for leases and notifications, so that they do not queue behind large values.
    pub(crate) side: ReconnectingClient,
    pub(crate) schema: String,
    pub(crate) lease: Duration,
    pub(crate) holder: Holder,
    /// Held during a subscription, so that a channel is not left after another caller has joined it.
    subscribing: tokio::sync::Mutex<()>,
}

impl Database {
    /// Connects, and prepares the tables.
    pub(crate) async fn connect(connection: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        options.check()?;
        let config = config(connection, &options)?;
        let PostgresOptions { schema, lease, .. } = options;
        let main = ReconnectingClient::new(config.clone(), &schema);
        schema::prepare(&main, &schema).await?;
        let side = ReconnectingClient::new(config, &schema);
        let holder = Holder::this_process();
        Ok(Self { main, side, schema, lease, holder, subscribing: tokio::sync::Mutex::default() })
    }

    pub(crate) fn lease_millis(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns the notification channel of a session.
    pub(crate) fn channel(&self, key: i64) -> String {
        format!("{}:{key}", self.schema)
    }

    /// Returns the notification channel of the inbox of a session.
    pub(crate) fn inbox_channel(&self, key: i64) -> String {
        format!("{}:i", self.channel(key))
    }

    pub(crate) async fn subscribe(&self, channel: &str) -> Result<watch::Receiver<()>, StoreError> {
        let _subscribing = self.subscribing.lock().await;
        let (receiver, left) = self.side.channels().subscribe(channel);
        let left: String = left.into_iter().map(|name| format!("UNLISTEN \"{name}\"; ")).collect();
        self.side.execute("listen to a session", &format!("{left}LISTEN \"{channel}\"")).await?;
        Ok(receiver)
    }
}

/// Parses a connection string. The parser's errors may quote it, so they are discarded.
fn config(connection: &str, options: &PostgresOptions) -> Result<Config, StoreError> {
    const ACTION: &str = "use the connection string";
    let mut config: Config = connection.parse().map_err(|_| {
        refused_input(ACTION, "expected `postgresql://…`, or pairs such as `host=localhost dbname=…`")
    })?;
    if config.get_ssl_mode() == SslMode::Require {
        return Err(refused_input(ACTION, "TLS is not built in, but it asks for `sslmode=require`"));
    }
    // The default is `prefer`, so `disable` is an explicit choice.
    let is_plain_meant = config.get_ssl_mode() == SslMode::Disable;
    config.ssl_mode(SslMode::Disable);
    if let Some(password) = &options.password {
        config.password(password);
    }
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        Host::Unix(_) => true,
    };
    let is_local = match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(is_local),
        addresses => addresses.iter().all(IpAddr::is_loopback),
    };
    if !is_local && !is_plain_meant && !options.allows_plain_hosts {
        return Err(refused_input(
            ACTION,
            "TLS is not built in, and the server is on another host; `sslmode=disable` allows that where the network encrypts",
        ));
    }
    if config.get_application_name().is_none() {
        config.application_name("pintle");
    }
    // Detects an unreachable host while a statement waits for it.
    config.keepalives_idle(Duration::from_secs(15)).tcp_user_timeout(Duration::from_secs(30));
    Ok(config)
}

/// Converts a number for the database, which has no unsigned integers. No number of a store comes near the limit.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn number(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(0)
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the connection string, which may contain a password.
        f.debug_struct("Database")
            .field("schema", &self.schema)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
