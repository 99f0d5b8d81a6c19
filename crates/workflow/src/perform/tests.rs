//! Tasks on real repositories, with real commands in sandboxes, and sessions that follow a script.

mod cheats;
mod controls;
mod crashes;
mod kills;
mod plans;
mod programs;
mod project;
mod tasks;
