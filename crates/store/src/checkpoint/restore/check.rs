//! Checks of the steps of a plan before they are executed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pintle_env::{
    EntryKind, ExecutionEnvironment, FileContent, MAX_READ, ReadLimits, WalkEntry, WalkRequest,
};

use super::super::error::CheckpointError;
use super::super::manifest::{EntryState, ManifestEntry};
use super::super::plan::{RestorePlan, RestoreStep};
use super::unlisted::UnlistedPaths;
use crate::hash::Hash;

/// Maximum number of entries of the workspace when it is listed before a restore.
const MAX_ENTRIES: usize = 1_000_000;

/// Verdict about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepVerdict {
    /// The path has the state that the plan expects, or does not exist, so that nothing can be lost.
    Due,
    /// The path has the type and content to restore, but another mode: an earlier attempt was interrupted.
    ModeIsDue,
    /// The path has the state to restore.
    Done,
    /// The path has neither state.
    Changed,
}

/// A step with its verdict.
pub(super) struct CheckedStep<'a> {
    pub(super) step: &'a RestoreStep,
    pub(super) verdict: StepVerdict,
}

/// The steps of a plan with their verdicts.
pub(super) struct PlanChecks<'a>(Vec<CheckedStep<'a>>);

impl<'a> PlanChecks<'a> {
    /// Lists the workspace and checks every step.
    pub(super) async fn new(
        env: &dyn ExecutionEnvironment,
        plan: &'a RestorePlan,
    ) -> Result<Self, CheckpointError> {
        let request = WalkRequest::new(&plan.root).with_max_entries(MAX_ENTRIES).with_fresh(true);
        let walked = env.walk(&request).await?;
        let now = walked.entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
        let mut check =
            StepChecker { env, root: &plan.root, now, unlisted: UnlistedPaths::new(env, &plan.root) };
        let mut steps = Vec::with_capacity(plan.steps.len());
        let mut directories = BTreeSet::new();
        for step in &plan.steps {
            let mut verdict = check.verdict(step).await?;
            if matches!(verdict, StepVerdict::Due | StepVerdict::ModeIsDue) {
                if !check.is_below_directories(&step.path, &directories) {
                    verdict = StepVerdict::Changed;
                } else if step.after.as_ref().is_some_and(ManifestEntry::is_directory) {
                    directories.insert(step.path.as_path());
                }
            }
            steps.push(CheckedStep { step, verdict });
        }
        Ok(Self(steps))
    }

    /// Returns the steps in the order of the plan.
    pub(super) fn steps(&self) -> impl Iterator<Item = &CheckedStep<'a>> {
        self.0.iter()
    }
}

struct StepChecker<'a> {
    env: &'a dyn ExecutionEnvironment,
    root: &'a Path,
    /// The present state of the workspace.
    now: BTreeMap<PathBuf, WalkEntry>,
    unlisted: UnlistedPaths<'a>,
}

impl StepChecker<'_> {
    /// Returns whether every path above `path` is a directory, or will be one of `directories`. Another entry, such as
    /// a link that replaced a directory, would redirect the step.
    fn is_below_directories(&self, path: &Path, directories: &BTreeSet<&Path>) -> bool {
        let mut above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        above.all(|above| match self.now.get(above) {
            Some(now) if now.kind == EntryKind::Directory => true,
            Some(_) | None => directories.contains(above),
        })
    }

    async fn verdict(&mut self, step: &RestoreStep) -> Result<StepVerdict, CheckpointError> {
        let hash = self.hash_if_needed(step).await?;
        let now = self.now.get(&step.path);
        if now.is_none() {
            let is_directory = |path: &Path| Some(self.now.get(path)?.kind == EntryKind::Directory);
            if self.unlisted.in_the_way(&step.path, &is_directory).await?.is_some() {
                return Ok(StepVerdict::Changed);
            }
        }
        let Some(now) = now else {
            return Ok(if step.after.is_none() { StepVerdict::Done } else { StepVerdict::Due });
        };
        let has_content =
            |entry: &Option<ManifestEntry>| entry.as_ref().is_some_and(|entry| has_content(now, entry, hash));
        let has_mode =
            |entry: &Option<ManifestEntry>| entry.as_ref().is_some_and(|entry| has_mode(now, entry));
        Ok(if has_content(&step.after) && has_mode(&step.after) {
            StepVerdict::Done
        } else if has_content(&step.before) && has_mode(&step.before) {
            StepVerdict::Due
        } else if has_content(&step.after) && !has_content(&step.before) {
            StepVerdict::ModeIsDue
        } else {
            StepVerdict::Changed
        })
    }

    /// Returns the hash of the present content of a file, without reading the file if its identity has not changed.
    /// `None` if there is no readable file.
    async fn hash_if_needed(&self, step: &RestoreStep) -> Result<Option<Hash>, CheckpointError> {
        let Some(now) = self.now.get(&step.path).filter(|now| now.kind == EntryKind::File) else {
            return Ok(None);
        };
        if let Some(ManifestEntry { state: EntryState::File { hash, .. }, identity: Some(identity), .. }) =
            &step.before
            && now.identity == Some(*identity)
        {
            return Ok(Some(*hash));
        }
        let size = |entry: &Option<ManifestEntry>| match entry {
            Some(ManifestEntry { state: EntryState::File { size, .. }, .. }) => Some(*size),
            Some(_) | None => None,
        };
        if size(&step.before) != Some(now.size) && size(&step.after) != Some(now.size) {
            return Ok(None);
        }
        let paths = [self.root.join(&step.path)];
        let content = self.env.read_many(&paths, ReadLimits::new(MAX_READ, MAX_READ)).await?.pop();
        Ok(match content {
            Some(FileContent::Bytes(bytes)) => Some(Hash::of(&bytes)),
            Some(
                FileContent::TooLarge
                | FileContent::Missing
                | FileContent::NotAFile
                | FileContent::Unreadable
                | FileContent::Skipped,
            )
            | None => None,
        })
    }
}

/// Returns whether an entry has the type and content of another; `found` is the hash of its content if it is a file.
fn has_content(now: &WalkEntry, expected: &ManifestEntry, found: Option<Hash>) -> bool {
    match (&expected.state, now.kind) {
        (EntryState::File { hash, .. }, EntryKind::File) => found == Some(*hash),
        (EntryState::Directory, EntryKind::Directory) => true,
        (EntryState::Symlink { target }, EntryKind::Symlink) => now.target.as_ref() == Some(target),
        (
            EntryState::File { .. }
            | EntryState::Directory
            | EntryState::Symlink { .. }
            | EntryState::Other
            | EntryState::Unknown(_),
            EntryKind::File | EntryKind::Directory | EntryKind::Symlink | EntryKind::Other,
        ) => false,
    }
}

/// Returns whether an entry has the mode of another, if both modes are known.
fn has_mode(now: &WalkEntry, expected: &ManifestEntry) -> bool {
    match (expected.mode_if_any(), now.mode) {
        (Some(expected), Some(now)) => expected == now,
        (None, _) | (_, None) => true,
    }
}
