#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod engine;
mod host;
mod identity;
mod object;
#[cfg(test)]
mod tests;

pub use engine::{Engine, EngineError};
pub use identity::{IdentityKeyError, IdentityKeys};
pub use object::{Begin, NAME, Said, Status, Steer, serve};
