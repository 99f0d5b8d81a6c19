#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod api;
mod console;
mod feed;
mod host;
mod hub;
mod limits;
mod problem;
mod serve;
#[cfg(test)]
mod tests;

pub use api::{Scope, Token, TokenError, Tokens};
pub use host::{
    HostError, ModelSummary, NewSession, OpenSession, SessionControls, SessionHost, SessionSettings,
    SettingsChange,
};
pub use limits::ServerLimits;
pub use serve::Server;
