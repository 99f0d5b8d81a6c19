//! Types for a first program: `use pintle::prelude::*;`.
//!
//! | for | items |
//! |---|---|
//! | model calls | [`Client`], [`FromEnv`], [`GenerateOptions`], [`generate`], [`generate_object_as`], [`stream`], [`Message`] |
//! | sessions | [`Session`], [`SessionConfig`], [`ProviderProfile`], [`EventKind`], [`OutcomeStatus`], [`RunError`], [`Limits`], [`Money`] |
//! | environments | [`ExecutionEnvironment`], [`ExecutionEnvironmentExt`], [`LocalEnvironment`] (feature `local`) |
//! | tools of sessions | [`tool_fn`], [`Tool`], [`ToolContext`], [`ToolOutput`], [`ToolError`], [`ToolErrorKind`], [`Effect`] |
//! | types of objects and tool inputs | the derives [`Deserialize`](macro@Deserialize) and [`JsonSchema`](macro@JsonSchema), and their traits |
//! | tools of [`generate`] | [`ClientTool`], [`ClientToolOutput`] |

pub use pintle_agent::{
    EventKind, Limits, Money, OutcomeStatus, ProviderProfile, RunError, Session, SessionConfig,
};
#[cfg(feature = "local")]
pub use pintle_env::LocalEnvironment;
pub use pintle_env::{ExecutionEnvironment, ExecutionEnvironmentExt};
pub use pintle_llm::{Client, ClientTool, ClientToolOutput, GenerateOptions, Message};
pub use pintle_providers::{FromEnv, generate, generate_object_as, stream};
pub use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput, tool_fn};
pub use schemars::JsonSchema;
pub use serde::Deserialize;
