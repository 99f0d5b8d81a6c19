#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod background;
pub mod builtin;
mod call;
mod context;
mod error;
mod form;
pub mod gate;
mod intent;
mod kind;
mod known_files;
pub mod native;
mod outside_sandbox;
pub mod pipeline;
mod properties;
mod recent_files;
mod registry;
mod repair;
mod schema;
mod similarity;
#[cfg(test)]
mod tests;
mod tool;
mod truncate;
mod write_locations;

pub use async_trait::async_trait;
pub use context::{CommandTimeouts, ToolContext};
pub use error::{DefinitionError, ToolError, ToolErrorKind};
pub use intent::{DeclaredChange, FileIntent, IntentSink, Reconciliation, reconcile};
pub use kind::ToolKind;
pub use known_files::KnownFiles;
pub use outside_sandbox::{OUTSIDE_SANDBOX, SandboxSide};
pub use pintle_patch::named_paths;
pub use registry::{DeferredTools, RegisteredTool, ToolRegistry};
pub use repair::{ArgumentRepair, RepairKind};
pub use similarity::most_similar;
// Part of a signature, so that a tool needs no second dependency for it.
pub use tokio_util::sync::CancellationToken;
pub use tool::{
    ChangeKind, DynTool, Effect, FileChange, FnTool, IntoToolOutput, ReadExtent, RepresentedCall, Tool,
    ToolInput, ToolOutput, tool_fn,
};
pub use truncate::{
    TruncationLimits, TruncationMarker, TruncationMode, TruncationRule, truncate, truncate_to,
};
