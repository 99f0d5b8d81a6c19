//! Servers of tools (MCP): those that a session has, and `pintle mcp`.

mod browser;
mod command;
mod declarations;
mod elicitor;
mod file;
mod listings;
mod login;
mod prompts;
mod serve;
mod session;
mod trusted_start;

pub(crate) use self::command::command;
pub(crate) use self::declarations::ServerChoice;
pub(crate) use self::session::{OfflineGrant, ServerPlace, SessionServers};
