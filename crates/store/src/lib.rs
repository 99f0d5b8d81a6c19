#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod blob;
pub mod checkpoint;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod error;
mod file;
pub mod format;
mod hash;
mod holder;
mod journal;
mod ledger;
mod line;
mod memory;
mod prune;
mod store;

pub use async_trait::async_trait;
pub use blob::{Blobs, MAX_INLINE_LINE, MAX_INLINE_STRING};
pub use error::StoreError;
pub use file::FileStore;
pub use hash::{Hash, InvalidHash};
pub use holder::Holder;
pub use journal::{
    ForkError, IntactRecord, StoredFork, StoredJournal, StoredSession, WorkspaceMatch, fork, match_workspace,
    post_input, read_intact, read_objects, read_record, title_of,
};
pub use ledger::check_ledger_name;
pub use memory::MemoryStore;
// Types of the agent that appear in the interface of stores, so that a host does not need a second dependency.
pub use pintle_agent::{Barrier, Fence, Ledger, Ledgers, Record, SessionId, Timestamp};
pub use prune::{PrunePolicy, PruneResult, delete_tree, prune};
pub use store::{
    Filter, InboxSignal, JournalProblem, Line, LineId, OpenedSession, Page, Position, PostedInput, Posting,
    Reader, SessionStore, SessionWriter, Summary, TornTail, Verification,
};
