#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests build sessions without a host"))]

mod call;
pub mod claude;
pub mod codex;
mod command_line;
mod line;
mod outcome;
#[cfg(test)]
mod tests;

pub use command_line::{OptionError, ParsedOptions};
pub use line::Line;
