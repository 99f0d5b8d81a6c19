//! Tests with a real server, and with servers that misbehave.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests prepare keys and configurations, and inspect what the connection left"
)]

mod connecting;
mod environment;
mod matrix;
mod service;
