//! Subagents: child sessions that a session's model spawns for separate tasks (loop specification, section 7).
//!
//! How one subagent is spawned, in the order of the steps:
//!
//! 1. The driver sees a call of a spawning tool and [reserves](Subagents::reserve) the next name for it, together with
//!    a [`SubagentSpec`] of the parent's current configuration.
//! 2. The tool turns its arguments into a [`SpawnRequest`](request::SpawnRequest) and calls
//!    [`Roster::spawn`](roster::Roster::spawn), which adapts the spec to the request, announces the subagent to the turn
//!    machine, and starts a [`Worker`](worker::Worker).
//! 3. Once the machine has logged `SUBAGENT_SPAWNED`, the worker builds the child session and handles one message of its
//!    [`Mailbox`](mailbox::Mailbox) after the other.
//! 4. Tools and the embedding application reach the subagent through its [`SubagentHandle`].
//! 5. When the worker ends for any reason, its [`ParentLink`] reports that to the parent.

mod attach;
mod grant;
mod handle;
mod lineage;
mod mailbox;
mod parent_link;
mod prompt;
mod recorded;
mod report;
mod request;
mod roster;
mod spawn;
mod subagent_spec;
mod subagent_type;
mod subagents;
mod subdirectory;
mod tool;
mod tree;
mod tree_events;
mod worker;

pub use self::handle::SubagentHandle;
pub(crate) use self::lineage::Lineage;
pub(crate) use self::parent_link::ParentLink;
pub(crate) use self::recorded::RecordedSubagent;
pub use self::report::SubagentResult;
pub(crate) use self::roster::Shutdown;
pub(crate) use self::subagent_spec::SubagentSpec;
pub use self::subagent_type::SubagentType;
pub(crate) use self::subagents::Subagents;
pub(crate) use self::tree::{Member, Tree};
pub use self::tree_events::TreeEvents;

#[cfg(test)]
mod tests;
