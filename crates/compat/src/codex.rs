//! The command line and the stream of `codex exec --json`, as `@openai/codex-sdk` uses them.
//!
//! [`ExecOptions::parse`] reads the command line, and a [`Formatter`] writes the lines of a run. The prompt comes from
//! standard input. There is no control channel.

mod config;
mod formatter;
mod item;
mod options;
mod parser;
mod permissions;
mod positionals;

pub use formatter::Formatter;
pub use options::{ApprovalPolicy, ExecOptions, ResumeTarget, SandboxMode, WebSearchMode};

#[cfg(test)]
mod tests;
