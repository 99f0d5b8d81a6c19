#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod blobs;
mod channels;
mod clock;
mod database;
mod journal_cursor;
mod lease;
mod ledgers;
mod options;
mod origins;
mod reader;
mod reconnecting_client;
mod schema;
mod statement_error;
mod store;
mod summary;
#[cfg(test)]
mod tests;
mod writer;

pub use options::PostgresOptions;
pub use store::PostgresStore;
