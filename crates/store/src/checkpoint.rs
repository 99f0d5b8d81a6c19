//! Checkpoints of a workspace: the state of its files at one moment, which can be compared and restored.
//!
//! [`take`] lists a directory of an environment and keeps the contents of its files as blobs. The list is a
//! [`Manifest`], which is a blob itself; its hash is the id of the checkpoint. A file whose identity has not changed
//! since the previous manifest is not read again.
//!
//! [`Manifest::compare`] finds the differences between two manifests, [`unified_diff`] and [`file_diffs`] show them,
//! and [`git_patch`] renders them for `git apply`. [`observe`] lists the workspace without keeping contents, to compare
//! it with a checkpoint.
//!
//! A restore has two steps: [`plan_restore`] lists the changes, [`restore`] makes them. To undo a restore, restore the
//! checkpoint that was taken before it.
//!
//! Ignored files (`.gitignore`, `.ignore`, `.git/info/exclude`), every file or directory named `.git`, devices, pipes
//! and sockets, and files above the size limit are not kept, changed or removed.
//!
//! Dropping a future of this module stops the work. Each file then has its old or its new content.

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

pub use compare::{ChangeKind, Comparison, EntryChange};
pub use diff::{
    DiffHunk, DiffLimits, DiffLine, DiffOmission, FileDiff, FileDiffs, UnifiedDiff, file_diffs, unified_diff,
};
pub use error::CheckpointError;
pub use manifest::{ContentGap, EntryState, ListingLimit, Manifest, ManifestEntry, Presence};
pub use patch::{GitPatch, RepositoryPosition, git_patch};
pub use plan::{RestoreAction, RestorePlan, RestoreStep, UnrestoredPath, UnrestoredReason, plan_restore};
pub use restore::{RestoreFailure, RestoreResult, restore};
pub use session::StoredCheckpoints;
pub use take::{Checkpoint, CheckpointLimits, observe, take};
pub use verify::{VerifiedCheckpoints, verify};
