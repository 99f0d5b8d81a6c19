//! The tools of the reference agents: names, parameters and forms of results as the models were trained on them.
//!
//! Each module holds the set of one agent: [`anthropic`] that of Claude Code, [`gemini`] that of gemini-cli,
//! [`openai`] that of codex. They are other faces of the [built-in tools](crate::builtin): reading, searching, editing
//! and running are the same, and so are the rules for line ends, loose matches and time-outs. The words of
//! descriptions and errors are our own. A tool's [kind](crate::Tool::kind) is that of the built-in tool behind it, so
//! that what a host sets for `shell` holds for `Bash` too.

pub mod anthropic;
mod command;
pub mod gemini;
mod number;
mod numbered;
pub mod openai;
mod questions;

#[cfg(test)]
mod tests;
