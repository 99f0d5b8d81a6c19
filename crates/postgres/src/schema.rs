//! The tables, which the store creates automatically.

use pintle_store::StoreError;

use crate::reconnecting_client::{ReconnectingClient, parameters};
use crate::statement_error::{refused_input, unreadable_row};

/// Version of the tables.
const VERSION: i32 = 2;

/// Ids are compared bytewise, which is the order of lists. `updated_at` is in milliseconds since 1970. `origins` is the
/// JSON of [`ForkOrigins`](crate::origins::ForkOrigins).
const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS version (number integer NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    parent text COLLATE "C",
    updated_at bigint NOT NULL,
    summary text NOT NULL,
    properties jsonb NOT NULL,
    epoch bigint NOT NULL,
    head_seq bigint NOT NULL,
    head_hash bytea NOT NULL,
    origins text NOT NULL,
    lease_until timestamptz,
    holder_host text NOT NULL,
    holder_pid bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS sessions_by_change ON sessions (parent, updated_at DESC, id);
CREATE TABLE IF NOT EXISTS lines (
    session bigint NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (session, seq)
);
CREATE TABLE IF NOT EXISTS blobs (hash bytea PRIMARY KEY, bytes bytea NOT NULL);
CREATE TABLE IF NOT EXISTS session_blobs (
    session bigint NOT NULL REFERENCES sessions ON DELETE CASCADE,
    hash bytea NOT NULL REFERENCES blobs DEFERRABLE INITIALLY DEFERRED,
    PRIMARY KEY (session, hash)
);
CREATE INDEX IF NOT EXISTS session_blobs_by_hash ON session_blobs (hash);
CREATE TABLE IF NOT EXISTS inbox (
    session bigint NOT NULL REFERENCES sessions ON DELETE CASCADE,
    input_id bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    input bytea,
    PRIMARY KEY (session, input_id)
);
CREATE TABLE IF NOT EXISTS ledgers (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    text text NOT NULL
);
"#;

const ACTION: &str = "prepare the tables of the database";

/// Creates the tables unless they exist, adds tables that an older version lacks, and checks the version.
pub(crate) async fn prepare(link: &ReconnectingClient, schema: &str) -> Result<(), StoreError> {
    let found = if has_tables(link, schema).await? { read_version(link).await? } else { Some(0) };
    if found.is_some_and(|found| found < VERSION) {
        // The lock serialises stores: PostgreSQL reports an error if two create the same table at once, even `IF NOT
        // EXISTS`.
        let statements = format!(
            "BEGIN; SELECT pg_advisory_xact_lock(hashtext('pintle-store {schema}')); \
             CREATE SCHEMA IF NOT EXISTS \"{schema}\"; {TABLES} \
             INSERT INTO version SELECT {VERSION} WHERE NOT EXISTS (SELECT FROM version); \
             UPDATE version SET number = {VERSION} WHERE number < {VERSION}; COMMIT"
        );
        if let Err(failure) = link.execute(ACTION, &statements).await {
            // The transaction is still open on this connection.
            link.forget();
            return Err(failure.into());
        }
    }
    match read_version(link).await? {
        Some(VERSION) => Ok(()),
        Some(later) if later > VERSION => {
            Err(refused_input(ACTION, "they were created by a newer version of this program"))
        }
        Some(_) | None => Err(refused_input(ACTION, "they have no known version")),
    }
}

/// Returns the version of the tables.
async fn read_version(link: &ReconnectingClient) -> Result<Option<i32>, StoreError> {
    let rows = link.query_repeatable(ACTION, "SELECT max(number) FROM version", &[]).await?;
    rows.first().map_or(Ok(None), |row| row.try_get(0)).map_err(|error| unreadable_row(ACTION, &error))
}

/// Returns whether the tables exist. Fails if the encoding of the database is not UTF-8.
async fn has_tables(link: &ReconnectingClient, schema: &str) -> Result<bool, StoreError> {
    const STATEMENT: &str = "SELECT to_regclass(quote_ident($1) || '.version') IS NOT NULL, current_setting('server_encoding') = 'UTF8'";
    let rows = link.query_repeatable(ACTION, STATEMENT, parameters![schema]).await?;
    let row = rows.first().ok_or_else(|| refused_input(ACTION, "the server has not answered"))?;
    let get = |index: usize| row.try_get::<_, bool>(index).map_err(|error| unreadable_row(ACTION, &error));
    if !get(1)? {
        return Err(refused_input(ACTION, "the encoding of the database is not UTF8"));
    }
    get(0)
}
