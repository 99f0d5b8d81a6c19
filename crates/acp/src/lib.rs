#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod agent;
mod calls;
mod client;
mod connection;
mod editor;
mod error;
mod history;
mod host;
mod lines;
mod outbox;
mod permission;
mod prompt;
mod requests;
mod rpc;
mod session;
mod settings;
mod stop;
#[cfg(test)]
mod tests;
mod turns;
mod updates;
mod wire;

pub use agent::AcpAgent;
pub use client::{Client, ClientFeatures};
pub use editor::{EditorEnvironment, TerminalSwitch};
pub use error::{ClientError, HostError, ServeError};
pub use host::{
    AgentHost, AgentInfo, CommandResult, ListSessions, McpServerSpec, McpTransport, NewSession, OpenSession,
    SessionControls, SessionPage, SessionSummary,
};
pub use settings::{
    Choice, ConfigOption, Modes, OptionCategory, OptionKind, OptionValue, SessionSettings, SlashCommand,
};
