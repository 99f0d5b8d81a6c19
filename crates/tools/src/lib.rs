#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod builtin;
mod context;
mod error;
mod form;
pub mod gate;
mod known;
pub mod native;
pub mod pipeline;
mod recent;
mod registry;
mod repair;
mod schema;
mod tool;
mod truncate;

pub use context::{CommandTimeouts, ToolContext};
pub use error::{DefinitionError, ToolError, ToolErrorKind};
pub use form::ToolForm;
pub use known::KnownFiles;
pub use registry::{RegisteredTool, ToolRegistry};
pub use repair::{ArgumentRepair, RepairKind};
pub use tool::{ChangeKind, DynTool, Effect, FileChange, Tool, ToolKind, ToolOutput};
pub use truncate::{
    TruncationLimits, TruncationMarker, TruncationMode, TruncationRule, truncate, truncate_to,
};
