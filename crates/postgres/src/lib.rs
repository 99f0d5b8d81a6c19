#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod blobs;
mod channels;
mod clock;
mod database;
mod failure;
mod lease;
mod ledgers;
mod link;
mod options;
mod origins;
mod reader;
mod schema;
mod store;
mod summary;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

pub use options::Options;
pub use store::PostgresStore;
