//! The command as it is shipped: the built program with default settings, run with a separate home directory.
//!
//! The sandbox is on, sessions are kept in the state directory of the home, and git reads the user's configuration.

mod commands;
mod configuration;
mod exchanged;
mod grants;
mod home;
mod planted;
mod repository;
mod rules;
mod served;
mod servers;
mod user;
mod watched;
