//! The command as it is shipped: the built program with default settings, run with a separate home directory.
//!
//! The sandbox is on, sessions are kept in the state directory of the home, and git reads the user's configuration.

mod commands;
mod compatible_servers;
mod configuration;
mod files;
mod grants;
mod home;
mod models;
mod outcomes;
mod planted_programs;
mod protected_files;
mod refusals;
mod repository;
mod rules;
mod server;
mod servers;
mod sessions;
mod swapped_links;
mod tasks;
mod user;
mod worktrees;
