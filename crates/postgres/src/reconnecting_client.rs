//! A connection that is reopened after it was lost.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use pintle_store::StoreError;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row};

use crate::channels::NotificationChannels;
use crate::statement_error::StatementError;

/// Longest wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// Longest wait for a statement. The server cancels it after the same time.
const STATEMENT_LIMIT: Duration = Duration::from_secs(60);

/// Parameter of a statement, with its type, which saves a query for the type.
pub(crate) type StatementParameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Value whose database type follows from its Rust type.
pub(crate) trait TypedParameter: ToSql + Sync {
    fn parameter(&self) -> StatementParameter<'_>;
}

macro_rules! typed {
    ($($value:ty => $name:ident),+ $(,)?) => {
        $(impl TypedParameter for $value {
            fn parameter(&self) -> StatementParameter<'_> {
                (self, Type::$name)
            }
        })+
    };
}

typed! {
    i64 => INT8, Option<i64> => INT8, Vec<i64> => INT8_ARRAY,
    &str => TEXT, String => TEXT, Option<String> => TEXT,
    &[u8] => BYTEA, Vec<u8> => BYTEA, Vec<Vec<u8>> => BYTEA_ARRAY,
}

/// Returns the parameters of a statement.
macro_rules! parameters {
    ($($value:expr),+ $(,)?) => {
        &[$($crate::reconnecting_client::TypedParameter::parameter(&$value)),+]
    };
}
pub(crate) use parameters;

/// A connection that executes the statements of all callers in order. Each statement is a separate transaction, so that
/// none holds a lock while its caller is busy or stopped.
pub(crate) struct ReconnectingClient {
    config: Config,
    /// Statements that every new connection executes first.
    setup: String,
    /// Channels that every new connection listens to.
    channels: Arc<NotificationChannels>,
    client: Mutex<Option<Arc<Client>>>,
    /// Held while a connection is opened, so that concurrent callers open only one.
    connecting: tokio::sync::Mutex<()>,
    drivers: Mutex<JoinSet<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReconnectingClient {
    pub(crate) fn new(config: Config, schema: &str) -> Self {
        // Overrides the defaults of the database and of the user.
        let setup = format!(
            "SET search_path TO \"{schema}\"; SET synchronous_commit TO on; SET client_min_messages TO warning; \
             SET statement_timeout TO {}; SET default_transaction_isolation TO 'read committed'",
            STATEMENT_LIMIT.as_millis()
        );
        Self {
            config,
            setup,
            channels: Arc::default(),
            client: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            drivers: Mutex::default(),
        }
    }

    pub(crate) fn channels(&self) -> &NotificationChannels {
        &self.channels
    }

    fn current(&self) -> Option<Arc<Client>> {
        lock(&self.client).clone().filter(|client| !client.is_closed())
    }

    /// Forgets the connection, so that the next statement opens another one.
    pub(crate) fn forget(&self) {
        lock(&self.client).take();
    }

    /// Returns the connection. Opens one if necessary.
    pub(crate) async fn client(&self) -> Result<Arc<Client>, StatementError> {
        const ACTION: &str = "connect to the database";
        if let Some(client) = self.current() {
            return Ok(client);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(client) = self.current() {
            return Ok(client);
        }
        let connect = async {
            let (client, mut connection) = self.config.connect(NoTls).await?;
            let channels = Arc::clone(&self.channels);
            let driver = async move {
                while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                    if let AsyncMessage::Notification(notification) = message {
                        channels.notify(notification.channel());
                    }
                }
                channels.notify_all();
            };
            {
                let mut drivers = lock(&self.drivers);
                while drivers.try_join_next().is_some() {}
                drivers.spawn(driver);
            }
            let listen = self.channels.names().into_iter().map(|name| format!("; LISTEN \"{name}\""));
            client.batch_execute(&format!("{}{}", self.setup, listen.collect::<String>())).await?;
            Ok(Arc::new(client))
        };
        let client = timeout(CONNECT_LIMIT, connect).await.map_err(|_| StatementError::timed_out(ACTION))?;
        let client = client.map_err(|error| StatementError::new(ACTION, &error))?;
        *lock(&self.client) = Some(Arc::clone(&client));
        self.channels.notify_all();
        Ok(client)
    }

    /// Executes a statement. If the connection is lost meanwhile, it is unknown whether the statement was executed.
    pub(crate) async fn query(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[StatementParameter<'_>],
    ) -> Result<Vec<Row>, StatementError> {
        let client = self.client().await?;
        match timeout(STATEMENT_LIMIT, client.query_typed(statement, parameters)).await {
            Ok(result) => result.map_err(|error| StatementError::new(action, &error)),
            Err(_) => {
                self.forget();
                Err(StatementError::timed_out(action))
            }
        }
    }

    /// Executes an idempotent statement, and executes it again if the connection was lost.
    pub(crate) async fn query_repeatable(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[StatementParameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        match self.query(action, statement, parameters).await {
            Err(failure) if failure.is_lost => {
                self.forget();
                Ok(self.query(action, statement, parameters).await?)
            }
            result => Ok(result?),
        }
    }

    /// Executes statements without parameters.
    pub(crate) async fn execute(&self, action: &'static str, statements: &str) -> Result<(), StatementError> {
        let client = self.client().await?;
        let executed = timeout(STATEMENT_LIMIT, client.batch_execute(statements)).await;
        executed
            .map_err(|_| {
                self.forget();
                StatementError::timed_out(action)
            })?
            .map_err(|error| StatementError::new(action, &error))
    }

    /// Sends statements without waiting for their execution. Statements of later callers follow them. Sends nothing while
    /// there is no connection.
    pub(crate) fn send(&self, statements: &str) {
        if let Some(client) = self.current() {
            // A statement is queued when it is polled for the first time.
            let _ = std::pin::pin!(client.batch_execute(statements))
                .poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Drop for ReconnectingClient {
    fn drop(&mut self) {
        // A driver ends after it has sent the queued statements, which may include the release of a lease.
        lock(&self.drivers).detach_all();
    }
}
