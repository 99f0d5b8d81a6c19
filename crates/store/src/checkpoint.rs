//! Checkpoints of a workspace: what its files were at a time, so that they can be compared and restored.
//!
//! [`take`] lists a directory of an environment and keeps the contents of its files as blobs. The list is a [`Manifest`],
//! which is a blob itself; the id of a checkpoint is the hash of it. A file whose identity has not changed since the
//! manifest before is not read again.
//!
//! [`Manifest::compare`] finds what differs between two manifests, [`unified_diff`] and [`file_diffs`] show it,
//! and [`git_patch`] renders it for `git apply`. [`observe`] lists the workspace without keeping anything, to compare it
//! with a checkpoint.
//!
//! A restore has two steps: [`plan_restore`] says what would be done, [`restore`] does it. A restore is undone by
//! restoring the checkpoint that was taken before it.
//!
//! Ignored files (`.gitignore`, `.ignore`, `.git/info/exclude`), everything named `.git`, devices, pipes and sockets, and
//! files above the limit of size are neither kept nor changed nor removed.
//!
//! Dropping a future of this module stops the work. Each file then has its old content or its new one.

mod compare;
mod diff;
mod error;
mod manifest;
mod patch;
mod plan;
mod restore;
mod session;
mod take;
#[cfg(test)]
mod tests;
mod verify;

pub use compare::{Change, ChangeKind, Comparison};
pub use diff::{Diff, DiffLimits, DiffLine, FileDiff, FileDiffs, Hunk, NotShown, file_diffs, unified_diff};
pub use error::CheckpointError;
pub use manifest::{Entry, Gap, Manifest, Presence, State, Unlisted};
pub use patch::{Patch, RepositoryPosition, git_patch};
pub use plan::{Action, LeftAlone, LeftReason, RestorePlan, Step, plan_restore};
pub use restore::{Failure, Restored, restore};
pub use session::StoredCheckpoints;
pub use take::{Checkpoint, Limits, observe, take};
pub use verify::{VerifiedCheckpoints, verify};
