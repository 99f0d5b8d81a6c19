//! Plan of a restore.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;

use super::error::CheckpointError;
use super::manifest::{Manifest, ManifestEntry, Presence};
use super::restore::unlisted::UnlistedPaths;

/// Planned restore: the result of [`plan_restore`].
///
/// Steps may be removed before [`restore`](super::restore()), such as the steps of [`foreign`](Self::foreign) paths.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestorePlan {
    /// The directory to restore; absolute.
    pub root: PathBuf,
    /// Changes, sorted by path.
    pub steps: Vec<RestoreStep>,
    /// Paths of steps that another program or a user may have changed: their present state is neither in the newest
    /// checkpoint nor the one to restore. Sorted.
    pub foreign: Vec<PathBuf>,
    /// Paths that differ or may differ, but are not restored. Sorted.
    pub left_alone: Vec<UnrestoredPath>,
}

/// A change of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreStep {
    /// The path relative to the root.
    pub path: PathBuf,
    /// The present entry; `None` if the path is absent.
    pub before: Option<ManifestEntry>,
    /// The entry to restore; `None` to remove the present one.
    pub after: Option<ManifestEntry>,
}

/// Kind of a [`RestoreStep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreAction {
    /// A file, directory or link is created.
    Create,
    /// The content of a file or the target of a link is replaced.
    Overwrite,
    /// A file, a link, or a directory that is empty by then, is removed.
    Remove,
    /// An entry is replaced by an entry of another type.
    Replace,
    /// The mode of a file or directory is changed.
    SetMode,
}

/// A path that a restore does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnrestoredPath {
    /// The path relative to the root.
    pub path: PathBuf,
    /// The reason.
    pub reason: UnrestoredReason,
}

/// Reason why a restore does not change a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnrestoredReason {
    /// The checkpoint to restore does not have the content: the file was too large, unreadable or special, or the
    /// checkpoint is partial.
    NotInCheckpoint,
    /// The present content is unknown, for the same reasons, so that it could not be restored later.
    NotKnownNow,
    /// A file or directory at this path, or above it, is ignored, or was ignored when the checkpoint to restore was
    /// taken, or was created after the present state was listed.
    Ignored {
        /// Its path relative to the root.
        by: PathBuf,
    },
    /// Conflict: the directory at this path would be removed, but contains an entry that is not removed.
    Occupied {
        /// Its path relative to the root.
        by: PathBuf,
    },
    /// Conflict: a path above it is left alone.
    Blocked {
        /// The path above, relative to the root.
        by: PathBuf,
    },
}

impl RestoreStep {
    /// Returns the kind of the step.
    #[must_use]
    pub fn action(&self) -> RestoreAction {
        match (&self.before, &self.after) {
            (None, _) => RestoreAction::Create,
            (Some(_), None) => RestoreAction::Remove,
            (Some(before), Some(after)) if before.state == after.state => RestoreAction::SetMode,
            (Some(before), Some(after)) => {
                let is_same_type =
                    std::mem::discriminant(&before.state) == std::mem::discriminant(&after.state);
                if is_same_type { RestoreAction::Overwrite } else { RestoreAction::Replace }
            }
        }
    }
}

impl RestorePlan {
    /// Returns the paths that cannot be restored because another entry is in the way.
    pub fn conflicts(&self) -> impl Iterator<Item = &UnrestoredPath> {
        self.left_alone.iter().filter(|left| match left.reason {
            UnrestoredReason::Occupied { .. } | UnrestoredReason::Blocked { .. } => true,
            UnrestoredReason::NotInCheckpoint
            | UnrestoredReason::NotKnownNow
            | UnrestoredReason::Ignored { .. } => false,
        })
    }
}

/// Plans the restore of the directory `root` to the state of `target`. Changes nothing.
///
/// `present` is the present state of the workspace, from [`take`](super::take) or [`observe`](super::observe). A
/// checkpoint taken now can undo the restore. `newest` is the newest checkpoint that the caller has. Paths that differ
/// from it were changed by another program or a user.
///
/// # Errors
///
/// [`CheckpointError::Environment`] if the environment is lost.
pub async fn plan_restore(
    env: &dyn ExecutionEnvironment,
    root: &Path,
    target: &Manifest,
    newest: &Manifest,
    present: &Manifest,
) -> Result<RestorePlan, CheckpointError> {
    let root = env.resolve(root);
    let planner = RestorePlanner { target, present, unlisted: UnlistedPaths::new(env, &root) };
    let (steps, left_alone) = planner.plan().await?;
    let is_foreign = |step: &&RestoreStep| match (newest.presence(&step.path), &step.before) {
        (Presence::Known(known), Some(before)) => !known.is_same(before),
        (Presence::Absent, None) => false,
        (
            Presence::Known(_)
            | Presence::Absent
            | Presence::Ignored(_)
            | Presence::Opaque(_)
            | Presence::Unlisted,
            _,
        ) => true,
    };
    let foreign = steps.iter().filter(is_foreign).map(|step| step.path.clone()).collect();
    Ok(RestorePlan { root, steps, foreign, left_alone })
}

struct RestorePlanner<'a> {
    target: &'a Manifest,
    present: &'a Manifest,
    unlisted: UnlistedPaths<'a>,
}

/// Decision about one path.
enum PathDecision {
    Same,
    Step(RestoreStep),
    Leave(UnrestoredReason),
}

impl RestorePlanner<'_> {
    async fn plan(mut self) -> Result<(Vec<RestoreStep>, Vec<UnrestoredPath>), CheckpointError> {
        let (target, present) = (self.target, self.present);
        let paths: BTreeSet<_> = target.entries().keys().chain(present.entries().keys()).collect();
        let (mut steps, mut left_alone) = (Vec::new(), Vec::<UnrestoredPath>::new());
        // The paths below an entry directly follow it.
        let mut blocked: Option<&Path> = None;
        for path in paths {
            blocked = blocked.filter(|above| path.starts_with(above));
            let decision = self.decide(path).await?;
            let reason = match (decision, blocked) {
                (PathDecision::Same, _) => continue,
                (PathDecision::Step(_) | PathDecision::Leave(_), Some(above)) => {
                    UnrestoredReason::Blocked { by: above.to_path_buf() }
                }
                (PathDecision::Step(step), None) => {
                    steps.push(step);
                    continue;
                }
                (PathDecision::Leave(reason), None) => {
                    let is_directory = match present.presence(path) {
                        Presence::Known(entry) => entry.is_directory(),
                        Presence::Absent
                        | Presence::Ignored(_)
                        | Presence::Opaque(_)
                        | Presence::Unlisted => false,
                    };
                    if !is_directory || matches!(reason, UnrestoredReason::Occupied { .. }) {
                        blocked = Some(path);
                    }
                    reason
                }
            };
            left_alone.push(UnrestoredPath { path: path.clone(), reason });
        }
        // A directory stays if it contains a path that is left alone.
        let kept: BTreeSet<_> = left_alone.iter().flat_map(|left| left.path.ancestors().skip(1)).collect();
        steps.retain(|step| step.after.is_some() || !kept.contains(step.path.as_path()));
        Ok((steps, left_alone))
    }

    async fn decide(&mut self, path: &Path) -> Result<PathDecision, CheckpointError> {
        let (before, after) = match (self.present.presence(path), self.target.presence(path)) {
            (_, Presence::Ignored(by)) | (Presence::Ignored(by), _) => {
                return Ok(PathDecision::Leave(UnrestoredReason::Ignored { by: by.to_path_buf() }));
            }
            (_, Presence::Opaque(_) | Presence::Unlisted) => {
                return Ok(PathDecision::Leave(UnrestoredReason::NotInCheckpoint));
            }
            (Presence::Opaque(_) | Presence::Unlisted, _) => {
                return Ok(PathDecision::Leave(UnrestoredReason::NotKnownNow));
            }
            (Presence::Absent, Presence::Absent) => return Ok(PathDecision::Same),
            (Presence::Absent, Presence::Known(after)) => (None, Some(after)),
            (Presence::Known(before), Presence::Absent) => (Some(before), None),
            (Presence::Known(before), Presence::Known(after)) if before.is_same(after) => {
                return Ok(PathDecision::Same);
            }
            (Presence::Known(before), Presence::Known(after)) => (Some(before), Some(after)),
        };
        let entries = self.present.entries();
        if before.is_none()
            && let Some(by) = self
                .unlisted
                .in_the_way(path, &|path| entries.get(path).map(ManifestEntry::is_directory))
                .await?
        {
            return Ok(PathDecision::Leave(UnrestoredReason::Ignored { by }));
        }
        if before.is_some_and(ManifestEntry::is_directory)
            && after.is_some_and(|after| !after.is_directory())
            && let Some(by) = self.unlisted.remaining(path, self.present, self.target).await?
        {
            return Ok(PathDecision::Leave(UnrestoredReason::Occupied { by }));
        }
        Ok(PathDecision::Step(RestoreStep {
            path: path.to_path_buf(),
            before: before.cloned(),
            after: after.cloned(),
        }))
    }
}
