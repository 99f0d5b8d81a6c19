//! The loop specification, section 9, over real HTTP in each dialect.

mod errors;
mod extension;
mod limits;
mod native;
mod parity;
mod search;
mod shutdown;
