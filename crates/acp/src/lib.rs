#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests build sessions without a host"))]

mod agent;
mod calls;
mod client;
mod connection;
mod editor;
#[cfg(feature = "host")]
mod editor_host;
mod error;
mod history;
mod host;
mod line_reader;
mod outbox;
mod permission;
mod prompt;
mod requests;
mod rpc;
mod session;
mod session_entry;
mod settings;
mod stop;
#[cfg(test)]
mod tests;
mod updates;
mod wire;

pub use agent::AcpAgent;
pub use client::{Client, ClientFeatures};
pub use editor::{EditorEnvironment, TerminalSwitch};
#[cfg(feature = "host")]
pub use editor_host::EditorHost;
pub use error::{ClientError, HostError, ServeError};
pub use host::{
    AgentHost, AgentInfo, CommandResult, McpServerSpec, McpTransport, NewSession, OpenSession,
    SessionControls, SessionPage, SessionQuery, SessionSummary,
};
pub use settings::{
    ConfigOption, NamedChoice, OptionCategory, OptionKind, OptionValue, SessionModes, SessionSettings,
    SlashCommand,
};
