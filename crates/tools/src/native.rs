//! The tools of the reference agents, with the names, parameters and forms of results that models were trained on.
//!
//! Each module holds the tools of one agent: [`anthropic`] those of Claude Code, [`gemini`] those of gemini-cli, and
//! [`openai`] those of codex. They share the implementation of the [built-in tools](crate::builtin), with the same
//! rules for line ends, loose matches and time-outs. Descriptions and error messages are our own. A tool has the
//! [kind](crate::Tool::kind) of the corresponding built-in tool, so that settings for `shell` apply to `Bash` too.

pub mod anthropic;
mod command;
pub mod gemini;
mod number;
pub mod openai;
mod questions;

#[cfg(test)]
mod tests;
