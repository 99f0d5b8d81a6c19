#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod engine;
mod host;
mod identity;
mod task_object;
#[cfg(test)]
mod tests;

pub use engine::{EngineError, RestateEngine};
pub use identity::{IdentityKeyError, IdentityKeys};
pub use task_object::{CancelRequest, OBJECT_NAME, RunRequest, StatusResponse, SteerRequest, serve};
