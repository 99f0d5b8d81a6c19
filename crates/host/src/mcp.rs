//! MCP servers of a session: their declarations, listings, prompts and questions.

pub mod declarations;
mod elicitor;
pub mod listings;
pub mod prompts;
mod session;
mod trusted_start;

pub use self::declarations::ServerChoice;
pub use self::session::SessionServers;
pub(crate) use self::session::{OfflineGrant, ServerStartContext};
