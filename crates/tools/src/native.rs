//! The tools of the reference agents, with the names, parameters and result formats on which models were trained.
//!
//! Each module contains the tools of one agent: [`anthropic`] of Claude Code, [`gemini`] of gemini-cli, and [`openai`]
//! of codex. They share the implementation of the [built-in tools](crate::builtin), with the same rules for line ends,
//! loose matches and time-outs. Descriptions and error messages are our own. A tool has the [kind](crate::Tool::kind)
//! of the corresponding built-in tool, so that settings for `shell` apply to `Bash` too.

pub mod anthropic;
mod command;
pub mod gemini;
mod number;
pub mod openai;
mod questions;

#[cfg(test)]
mod tests;
