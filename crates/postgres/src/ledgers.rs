//! Ledgers.

use std::io;

use async_trait::async_trait;
use pintle_store::{Ledger, Ledgers, StoreError, check_ledger_name};

use crate::PostgresStore;
use crate::database::{integer, number};
use crate::reconnecting_client::parameters;
use crate::statement_error::unreadable_row;

const READ: &str = "SELECT version, text FROM ledgers WHERE name = $1";

const CREATE: &str =
    "INSERT INTO ledgers (name, version, text) VALUES ($1, $2 + 1, $3) ON CONFLICT DO NOTHING RETURNING 1";

const REPLACE: &str =
    "UPDATE ledgers SET version = version + 1, text = $3 WHERE name = $1 AND version = $2 RETURNING 1";

const REMOVE: &str = "DELETE FROM ledgers WHERE name = $1 AND version = $2 RETURNING 1";

#[async_trait]
impl Ledgers for PostgresStore {
    async fn ledger(&self, name: &str) -> io::Result<Ledger> {
        const ACTION: &str = "read a ledger";
        check_ledger_name(name)?;
        let rows = self.database.main.query_repeatable(ACTION, READ, parameters![name]).await?;
        let Some(row) = rows.first() else { return Ok(Ledger::default()) };
        let ledger = || Ok(Ledger::new(number(row.try_get(0)?), row.try_get::<_, String>(1)?));
        Ok(ledger().map_err(|error| unreadable_row(ACTION, &error))?)
    }

    async fn replace_ledger(&self, name: &str, version: u64, text: &str) -> io::Result<bool> {
        const ACTION: &str = "replace a ledger";
        check_ledger_name(name)?;
        let before = integer(version);
        let main = &self.database.main;
        let answered = match (version, text) {
            // The ledger must not exist, and none is created.
            (0, "") => return Ok(self.ledger(name).await?.version == 0),
            (_, "") => main.query(ACTION, REMOVE, parameters![name, before]).await,
            (0, _) => main.query(ACTION, CREATE, parameters![name, before, text]).await,
            (_, _) => main.query(ACTION, REPLACE, parameters![name, before, text]).await,
        };
        Ok(!answered.map_err(StoreError::from)?.is_empty())
    }
}
