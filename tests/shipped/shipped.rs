//! The command as it is shipped: the built program with default settings, run with a separate home directory.
//!
//! The sandbox is on, sessions are kept in the state directory of the home, and git reads the user's configuration.

#[path = "../../crates/cli/tests/it/acp/editor.rs"]
mod acp;
mod attacks_through_host;
mod broken_servers;
mod call_log;
mod cheats;
mod commands;
mod compatible_servers;
mod configuration;
mod counts;
mod demo;
mod editor;
mod embedded_host;
mod eval;
mod exec;
mod files;
mod first_request;
mod gate_order;
mod git_facts;
mod grants;
mod home;
mod host_home;
#[cfg(target_os = "linux")]
mod hosts_of_commands;
mod models;
#[cfg(target_os = "linux")]
mod network_setting;
mod outcomes;
mod package_caches;
mod planted_programs;
mod protected_files;
#[path = "../../crates/cli/tests/it/terminal/pty.rs"]
#[expect(dead_code, reason = "the tests of the command use the rest")]
mod pty;
mod random_calls;
mod refusals;
mod repository;
mod restrictions;
mod rules;
mod sandbox_starts;
mod server;
mod servers;
mod sessions;
mod signed_grants;
mod swapped_links;
mod task_clones;
mod task_decisions;
mod task_plans;
mod task_queue;
mod task_references;
mod tasks;
mod tenants;
mod terminal;
mod tool_manifests;
mod trust;
mod typed_runs;
mod user;
mod worktrees;
