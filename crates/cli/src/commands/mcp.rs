//! `pintle mcp`.

mod browser;
mod command;
mod file;
mod login;
mod serve;

pub(crate) use self::command::command;
