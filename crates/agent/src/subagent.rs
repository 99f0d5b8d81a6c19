//! Subagents: sessions that a session's model spawns for tasks of their own (loop specification, section 7).
//!
//! A [`Roster`] stands between the driver of a session and its tools. The tools spawn agents, write to them and wait
//! for them; the driver takes the [news](roster::News) of them to the turn machine, and closes them before it ends. Each agent is
//! a [`Worker`](worker::Worker): one task that owns the child's session and serves it one message after the other.

mod blueprint;
mod directory;
mod origin;
mod past;
mod prompt;
mod report;
mod roster;
mod tool;
mod tree;
mod tree_events;
mod worker;

pub(crate) use self::blueprint::Blueprint;
pub(crate) use self::origin::Lineage;
pub(crate) use self::past::PastSubagent;
pub(crate) use self::roster::{Above, Subagents};
pub use self::tool::SubagentTools;
pub(crate) use self::tree::{Member, Tree};
pub use self::tree_events::TreeEvents;

#[cfg(test)]
mod tests;
