//! Tests with a real server. `PINTLE_TEST_POSTGRES` is its connection string; without it they are skipped.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests read the address of the server from the environment, and start a process"
)]

mod cuts;
mod damage;
mod leases;
mod losses;
mod refusals;
mod stopped;

use std::time::Duration;

use pintle_store::{
    Barrier, Line, Position, Reader, SessionId, SessionStore, SessionWriter, StoreError, Summary, Timestamp,
};
use tokio_postgres::{Client, NoTls};

use crate::{PostgresOptions, PostgresStore};

/// Longest wait for something that happens within seconds.
const PATIENCE: Duration = Duration::from_secs(60);

mod contract {
    pintle_store::store_contract!(optional: async || {
        let schema = super::Schema::create()?;
        Some((schema.store().await, schema))
    });
    pintle_store::store_contract!(ledgers, optional: async || {
        let schema = super::Schema::create()?;
        Some((schema.store().await, schema))
    });
}

/// A schema of one test, which is removed with it.
struct Schema {
    connection: String,
    name: String,
}

impl Schema {
    /// Returns a new name, or `None` without a server.
    fn create() -> Option<Self> {
        if !pintle_test_conditions::POSTGRESQL.is_present() {
            return None;
        }
        let connection = std::env::var("PINTLE_TEST_POSTGRES").unwrap();
        // Its random part, since the rest is the same for tests that begin at the same time.
        let id = SessionId::generate().to_string().replace('-', "");
        Some(Self { connection, name: format!("test_{}_{}", &id[24..], std::process::id()) })
    }

    fn options(&self) -> PostgresOptions {
        PostgresOptions::new().with_schema(&self.name)
    }

    async fn store(&self) -> PostgresStore {
        self.store_with(self.options()).await
    }

    async fn store_with(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::connect(&self.connection, options).await.unwrap()
    }

    /// Connects behind the back of the stores.
    async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.connection, NoTls).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        tasks.detach_all();
        client.batch_execute(&format!("SET search_path TO \"{}\"", self.name)).await.unwrap();
        client
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let (connection, name) = (self.connection.clone(), self.name.clone());
        // The runtime of the test cannot be waited for here.
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&connection, NoTls).await?;
                let mut tasks = tokio::task::JoinSet::new();
                tasks.spawn(async move { drop(connection.await) });
                client.batch_execute(&format!("DROP SCHEMA IF EXISTS \"{name}\" CASCADE")).await
            })
        });
        if let Ok(Err(error)) = removal.join() {
            eprintln!("the schema of a test was not removed: {error:?}");
        }
    }
}

fn id() -> SessionId {
    SessionId::new("s")
}

fn summary() -> Summary {
    Summary::new(id(), Timestamp::from_millis(0))
}

async fn append(writer: &mut dyn SessionWriter, number: u64) -> Result<Position, StoreError> {
    writer.append(vec![format!("{{\"n\":{number}}}")], Barrier::Synced).await
}

/// Returns the lines that are there now, without those of the store.
async fn present(reader: &mut dyn Reader) -> Result<Vec<Line>, StoreError> {
    let mut lines = Vec::new();
    while let Some(line) = reader.next().await? {
        lines.push(line);
    }
    lines.retain(|line| line.object.starts_with("{\"n\":"));
    Ok(lines)
}

fn numbers(lines: &[Line]) -> Vec<u64> {
    let number = |line: &Line| {
        let value: serde_json::Value = serde_json::from_str(&line.object).unwrap();
        value["n"].as_u64().unwrap()
    };
    lines.iter().map(number).collect()
}

async fn all(store: &PostgresStore) -> Vec<u64> {
    let mut reader = store.read(&id(), 1).await.unwrap();
    numbers(&present(reader.as_mut()).await.unwrap())
}

/// Returns the next line that a test wrote, which is waited for.
async fn awaited(reader: &mut dyn Reader) -> u64 {
    let line = async {
        loop {
            match reader.next().await.unwrap() {
                Some(line) if line.object.starts_with("{\"n\":") => return numbers(&[line])[0],
                Some(_) => {}
                None => reader.wait().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, line).await.unwrap()
}
