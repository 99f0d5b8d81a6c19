//! Types for a first program: `use pintle::prelude::*;`.
//!
//! | for | items |
//! |---|---|
//! | model calls | [`Client`], [`FromEnv`], [`GenerateOptions`], [`generate`], [`generate_object_as`], [`stream`], [`Message`] |
//! | sessions | [`Session`], [`SessionConfig`], [`ProviderProfile`], [`EventKind`], [`OutcomeStatus`] |
//! | environments | [`ExecutionEnvironment`], [`LocalEnvironment`] |
//! | tools | [`Tool`], [`ToolContext`], [`ToolOutput`], [`ToolError`], [`ToolErrorKind`], [`Effect`] |
//!
//! [`Tool`] is the trait of `pintle-tools` for sessions. The tools of [`generate`] are [`pintle_llm::Tool`].

pub use pintle_agent::{EventKind, OutcomeStatus, ProviderProfile, Session, SessionConfig};
pub use pintle_env::{ExecutionEnvironment, LocalEnvironment};
pub use pintle_llm::{Client, GenerateOptions, Message};
pub use pintle_providers::{FromEnv, generate, generate_object_as, stream};
pub use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput};
