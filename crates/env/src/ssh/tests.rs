//! A real server, and servers that misbehave.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests prepare keys and configurations, and look at what the connection left"
)]

mod connecting;
mod environment;
mod matrix;
mod service;
