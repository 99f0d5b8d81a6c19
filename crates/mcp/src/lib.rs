#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod auth;
mod connection;
mod declared;
mod effect;
mod elicitation;
mod error;
mod filter;
mod handler;
mod hidden;
mod http;
mod http_client;
mod listing;
mod message;
mod oauth;
mod offer;
mod probe;
mod process_log;
mod progress;
mod prompts;
mod resources;
mod result;
mod search;
mod server;
mod servers;
mod spec;
mod start_check;
mod stdio;
#[cfg(test)]
mod tests;
mod tool;
mod tool_names;

pub use async_trait::async_trait;
pub use auth::{LoginError, LoginErrorKind, MemoryTokens, ServerTokens, TokenLock, TokenStore, login};
pub use declared::{DeclaredServers, parse_declared_servers};
pub use elicitation::{DismissAll, Elicitation, ElicitationAnswer, ElicitationRequest, Elicitor};
pub use error::{ServerError, ServerErrorKind};
pub use filter::{InvalidToolPattern, ToolFilter};
pub use listing::ToolListing;
pub use oauth::OAuthSettings;
pub use prompts::{PromptArgument, PromptMessage, PromptRole, ServerPrompt};
pub use server::{McpServer, ServeError};
pub use servers::McpServers;
pub use spec::{
    HttpServer, InvalidHttpServer, InvalidServerName, ServerName, ServerSpec, ServerTransport, StdioServer,
};
pub use start_check::StartCheck;
