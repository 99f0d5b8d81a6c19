//! The loop specification, section 9, over real HTTP in each dialect.

mod compaction;
mod custom_environment;
mod defaults;
mod errors;
mod extension;
mod limits;
mod native;
mod parity;
mod search;
mod shutdown;
