#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod builtin;
mod context;
mod error;
pub mod pipeline;
mod registry;
mod schema;
mod tool;
mod truncate;

pub use context::{CommandTimeouts, ToolContext};
pub use error::{DefinitionError, ToolError, ToolErrorKind};
pub use registry::{RegisteredTool, ToolRegistry};
pub use tool::{ChangeKind, DynTool, Effect, FileChange, Tool, ToolOutput};
pub use truncate::{TruncationLimits, TruncationMode, truncate};
