#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod approve;
#[cfg(feature = "client")]
pub mod client_failure;
pub mod console;
pub mod interrupt;
pub mod render;
mod reports;
pub mod terminal;
pub mod user_editor;
