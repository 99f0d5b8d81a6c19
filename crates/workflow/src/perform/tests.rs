//! Tasks on real repositories, with real commands in sandboxes, and sessions that follow a script.

mod cheats;
mod clones;
mod controls;
mod crashes;
mod forced_changes;
mod handed_context;
mod kills;
mod plans;
mod programs;
mod project;
mod repositories;
mod sessions;
mod tasks;
