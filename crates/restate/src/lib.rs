#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod engine;
mod host;
mod object;
#[cfg(test)]
mod tests;

pub use engine::{Engine, EngineError};
pub use object::{Begin, NAME, Said, Status, Steer, serve};
