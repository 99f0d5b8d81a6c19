//! Execution of a restore plan.

mod check;
pub(super) mod unlisted;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_env::{ConfinedEnvironment, EnvError, ExecutionEnvironment};

use self::check::{CheckedStep, PlanChecks, StepVerdict};
use super::error::CheckpointError;
use super::manifest::{EntryState, ManifestEntry};
use super::plan::{RestoreAction, RestorePlan, RestoreStep};
use crate::blob::Blobs;

/// Permission bits that the owner needs to change the entries of a directory.
const OWNER: u32 = 0o700;

/// Permission of the owner to write.
const OWNER_WRITE: u32 = 0o200;

/// Permission bits that let other users read a file.
const OTHERS_READ: u32 = 0o044;

/// Result of [`restore`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RestoreResult {
    /// Paths that have the state to restore, sorted. Some may have had it already.
    pub done: Vec<PathBuf>,
    /// Paths that changed after the present state was listed, and were left alone.
    pub changed_meanwhile: Vec<PathBuf>,
    /// Directories that should have been removed but are not empty, for example because of ignored files. Sorted.
    pub kept_directories: Vec<PathBuf>,
    /// Paths whose step failed, sorted.
    pub failed: Vec<RestoreFailure>,
    /// Paths whose step was skipped, because the environment was lost or the step of a directory above failed.
    pub not_done: Vec<PathBuf>,
}

/// Failure of one step.
#[derive(Debug)]
#[non_exhaustive]
pub struct RestoreFailure {
    /// The path relative to the root.
    pub path: PathBuf,
    /// The error.
    pub error: CheckpointError,
}

impl RestoreResult {
    /// Returns whether every step was done. Directories that are not empty may remain.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.changed_meanwhile.is_empty() && self.failed.is_empty() && self.not_done.is_empty()
    }
}

/// Executes a plan. The contents are read from `blobs` one by one.
///
/// Each step is checked before it is done: a path that differs from the plan is left alone. Files are replaced as a
/// whole and get new timestamps. The environment is confined to the root if it can resolve links, so that no link
/// redirects a change outside.
///
/// A failed step does not prevent the others. Executing the plan again continues it: finished steps count as done.
///
/// # Errors
///
/// [`CheckpointError::Environment`] if the workspace cannot be listed before the first step. Later errors are part of the
/// result.
pub async fn restore(
    env: &Arc<dyn ExecutionEnvironment>,
    plan: &RestorePlan,
    blobs: &dyn Blobs,
) -> Result<RestoreResult, CheckpointError> {
    let env = confine(env, &plan.root).await?;
    let checks = PlanChecks::new(env.as_ref(), plan).await?;
    let result = RestoreResult::default();
    let mut run = RestoreRun { env: &env, root: &plan.root, blobs, result, is_lost: false };
    let mut work = Vec::new();
    for CheckedStep { step, verdict } in checks.steps() {
        match verdict {
            StepVerdict::Due => work.push(DueStep::new(step)),
            StepVerdict::ModeIsDue => work.push(DueStep { step, action: RestoreAction::SetMode, mode: None }),
            StepVerdict::Done => run.result.done.push(step.path.clone()),
            StepVerdict::Changed => run.result.changed_meanwhile.push(step.path.clone()),
        }
    }
    run.carry_out(&work).await;
    let mut result = run.result;
    result.done.sort();
    result.kept_directories.sort();
    result.failed.sort_by(|left, right| left.path.cmp(&right.path));
    result.not_done.sort();
    Ok(result)
}

/// Confines an environment to the root, if it can resolve links.
async fn confine(
    env: &Arc<dyn ExecutionEnvironment>,
    root: &Path,
) -> Result<Arc<dyn ExecutionEnvironment>, CheckpointError> {
    match env.canonicalize(root).await {
        Ok(_) => Ok(Arc::new(ConfinedEnvironment::new(Arc::clone(env), [root]))),
        Err(EnvError::Unsupported { .. }) => Ok(Arc::clone(env)),
        Err(error) => Err(error.into()),
    }
}

struct RestoreRun<'a> {
    env: &'a Arc<dyn ExecutionEnvironment>,
    root: &'a Path,
    blobs: &'a dyn Blobs,
    result: RestoreResult,
    /// Whether the environment is lost.
    is_lost: bool,
}

/// Whether a step follows a link at the path of its entry.
#[derive(Clone, Copy)]
enum LastLink {
    Followed,
    Kept,
}

/// A step that is due.
#[derive(Clone, Copy)]
struct DueStep<'a> {
    step: &'a RestoreStep,
    action: RestoreAction,
    /// Mode of the entry after its content is restored, if it is known.
    mode: Option<u32>,
}

impl<'a> DueStep<'a> {
    fn new(step: &'a RestoreStep) -> Self {
        let action = step.action();
        let mode = match action {
            RestoreAction::SetMode | RestoreAction::Overwrite => {
                step.before.as_ref().and_then(|before| before.mode)
            }
            RestoreAction::Create | RestoreAction::Remove | RestoreAction::Replace => None,
        };
        Self { step, action, mode }
    }

    /// Returns the mode to restore, unless the entry already has it.
    fn missing_mode(&self) -> Option<u32> {
        let mode = self.step.after.as_ref()?.mode?;
        (self.mode != Some(mode)).then_some(mode)
    }
}

/// State of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepProgress {
    Pending,
    Done,
    /// A directory is not empty and stays.
    Kept,
    Failed,
    NotDone,
}

impl RestoreRun<'_> {
    /// Executes steps, which are sorted by path.
    async fn carry_out(&mut self, work: &[DueStep<'_>]) {
        let mut progress = vec![StepProgress::Pending; work.len()];
        for (work, progress) in work.iter().zip(&mut progress) {
            let outcome = self.open(work).await;
            self.advance(work, outcome, progress);
        }
        // Entries of a directory are removed before it, and created after it.
        for (work, progress) in work.iter().zip(&mut progress).rev() {
            if *progress == StepProgress::Pending {
                let outcome = self.clear(work).await;
                self.advance(work, outcome, progress);
            }
        }
        // The paths below a directory directly follow it.
        let mut failed: Option<&Path> = None;
        for (work, progress) in work.iter().zip(&mut progress) {
            failed = failed.filter(|above| work.step.path.starts_with(above));
            if *progress == StepProgress::Pending && failed.is_some() {
                *progress = StepProgress::NotDone;
            }
            if *progress == StepProgress::Pending {
                let outcome = self.create(work).await;
                self.advance(work, outcome, progress);
            }
            if *progress == StepProgress::Failed && failed.is_none() {
                failed = Some(&work.step.path);
            }
        }
        // The final mode of a directory may forbid changes of its entries.
        for (work, progress) in work.iter().zip(&mut progress).rev() {
            if *progress == StepProgress::Pending {
                let outcome = self.finish(work).await.map(|()| StepProgress::Done);
                self.advance(work, outcome, progress);
            }
        }
        for (work, progress) in work.iter().zip(progress) {
            let path = work.step.path.clone();
            match progress {
                StepProgress::Done => self.result.done.push(path),
                StepProgress::Kept => self.result.kept_directories.push(path),
                StepProgress::Pending | StepProgress::NotDone => self.result.not_done.push(path),
                // The result already contains its error.
                StepProgress::Failed => {}
            }
        }
    }

    fn advance(
        &mut self,
        work: &DueStep<'_>,
        outcome: Result<StepProgress, CheckpointError>,
        progress: &mut StepProgress,
    ) {
        *progress = match outcome {
            Ok(StepProgress::Done) if self.is_lost => StepProgress::NotDone,
            Ok(reached) => reached,
            Err(error) => {
                self.is_lost |= error.is_environment_failure();
                self.result.failed.push(RestoreFailure { path: work.step.path.clone(), error });
                StepProgress::Failed
            }
        };
    }

    /// Returns the environment for a step with `path` held. Fails if a link replaced a directory above it. The step
    /// therefore changes only its own entry in the root.
    async fn confine_step(
        &self,
        path: &Path,
        last: LastLink,
    ) -> Result<Arc<dyn ExecutionEnvironment>, CheckpointError> {
        let Some(held) = self.env.hold(&[self.root.to_path_buf(), path.to_path_buf()]).await? else {
            return Ok(Arc::clone(self.env));
        };
        let judged = match last {
            LastLink::Followed => path,
            LastLink::Kept => path.parent().unwrap_or(path),
        };
        let below = judged.strip_prefix(self.root).unwrap_or(Path::new(""));
        if held.canonicalize(judged).await? == held.canonicalize(self.root).await?.join(below) {
            return Ok(held);
        }
        Err(CheckpointError::Environment(EnvError::Refused {
            operation: format!("restoring {}", path.display()),
            reason: "it, or a directory above it, was replaced by a link".to_owned(),
        }))
    }

    /// Makes the entries of a directory changeable if its mode is restored, and checks that the content which replaces
    /// an entry of another type can be read.
    async fn open(&mut self, work: &DueStep<'_>) -> Result<StepProgress, CheckpointError> {
        let Some(after) = work.step.after.as_ref().filter(|_| !self.is_lost) else {
            return Ok(StepProgress::Pending);
        };
        match (&after.state, work.action) {
            (EntryState::Directory, RestoreAction::SetMode) => {
                if let Some(mode) = work.missing_mode() {
                    let path = self.root.join(&work.step.path);
                    self.confine_step(&path, LastLink::Followed).await?.set_mode(&path, mode | OWNER).await?;
                }
            }
            (EntryState::File { hash, .. }, RestoreAction::Replace) => {
                self.blobs.get(hash).await?.ok_or(CheckpointError::Removed(*hash))?;
            }
            (
                EntryState::File { .. }
                | EntryState::Directory
                | EntryState::Symlink { .. }
                | EntryState::Other
                | EntryState::Unknown(_),
                RestoreAction::Create
                | RestoreAction::Overwrite
                | RestoreAction::Remove
                | RestoreAction::Replace
                | RestoreAction::SetMode,
            ) => {}
        }
        Ok(StepProgress::Pending)
    }

    /// Removes the entry that a step removes or replaces.
    async fn clear(&mut self, work: &DueStep<'_>) -> Result<StepProgress, CheckpointError> {
        if self.is_lost {
            return Ok(StepProgress::NotDone);
        }
        let step = work.step;
        // Links cannot be changed, only re-created.
        let is_link =
            step.before.as_ref().is_some_and(|before| matches!(before.state, EntryState::Symlink { .. }));
        let is_in_the_way = match work.action {
            RestoreAction::Create | RestoreAction::SetMode => false,
            RestoreAction::Overwrite => is_link,
            RestoreAction::Replace | RestoreAction::Remove => true,
        };
        if !is_in_the_way {
            return Ok(StepProgress::Pending);
        }
        let path = self.root.join(&step.path);
        let env = self.confine_step(&path, LastLink::Kept).await?;
        match (remove(env.as_ref(), &path).await, work.action) {
            (Ok(()), RestoreAction::Remove) => Ok(StepProgress::Done),
            (Err(EnvError::IsADirectory { .. }), RestoreAction::Remove) => Ok(StepProgress::Kept),
            (removed, _) => Ok(removed.map(|()| StepProgress::Pending)?),
        }
    }

    /// Creates or overwrites the entry of a step.
    async fn create(&mut self, work: &DueStep<'_>) -> Result<StepProgress, CheckpointError> {
        let step = work.step;
        let Some(after) = step.after.as_ref().filter(|_| !self.is_lost) else {
            return Ok(StepProgress::NotDone);
        };
        let path = self.root.join(&step.path);
        let last = match &after.state {
            EntryState::Symlink { .. } => LastLink::Kept,
            EntryState::Directory | EntryState::File { .. } | EntryState::Other | EntryState::Unknown(_) => {
                LastLink::Followed
            }
        };
        let env = self.confine_step(&path, last).await?;
        match &after.state {
            EntryState::Directory => {
                if work.action != RestoreAction::SetMode {
                    env.create_directory(&path).await?;
                    if let Some(mode) = work.missing_mode() {
                        env.set_mode(&path, mode | OWNER).await?;
                    }
                }
                Ok(StepProgress::Pending)
            }
            EntryState::File { hash, .. } => {
                if work.action != RestoreAction::SetMode {
                    let bytes = self.blobs.get(hash).await?.ok_or(CheckpointError::Removed(*hash))?;
                    write(env.as_ref(), work, after, &path, &bytes).await?;
                }
                if let Some(mode) = work.missing_mode() {
                    env.set_mode(&path, mode).await?;
                }
                Ok(StepProgress::Done)
            }
            EntryState::Symlink { target } => {
                env.create_symlink(&path, target).await?;
                Ok(StepProgress::Done)
            }
            EntryState::Other | EntryState::Unknown(_) => Ok(StepProgress::Done),
        }
    }

    /// Sets the final mode of a directory.
    async fn finish(&mut self, work: &DueStep<'_>) -> Result<(), CheckpointError> {
        match work.missing_mode().filter(|mode| !self.is_lost && mode & OWNER != OWNER) {
            Some(mode) => {
                let path = self.root.join(&work.step.path);
                Ok(self.confine_step(&path, LastLink::Followed).await?.set_mode(&path, mode).await?)
            }
            None => Ok(()),
        }
    }
}

async fn write(
    env: &dyn ExecutionEnvironment,
    work: &DueStep<'_>,
    after: &ManifestEntry,
    path: &Path,
    bytes: &[u8],
) -> Result<(), CheckpointError> {
    let is_private = after.mode.is_some_and(|mode| mode & OTHERS_READ != OTHERS_READ);
    let is_new = work.action != RestoreAction::Overwrite;
    if let Some(mode) = work.mode.filter(|mode| mode & OWNER_WRITE == 0) {
        // A file that its owner cannot write is made writable while its content is restored.
        env.set_mode(path, mode | OWNER_WRITE).await?;
        let written = env.write(path, bytes).await;
        let reset = env.set_mode(path, mode).await;
        return Ok(written.and(reset)?);
    }
    if let Some(mode) = after.mode.filter(|_| is_private && is_new) {
        // Replacing the content keeps the mode, so other users cannot read the content while it is written.
        env.write(path, b"").await?;
        env.set_mode(path, mode & 0o777 | OWNER_WRITE).await?;
    }
    Ok(env.write(path, bytes).await?)
}

/// Removes an entry. Succeeds if it does not exist.
async fn remove(env: &dyn ExecutionEnvironment, path: &Path) -> Result<(), EnvError> {
    match env.remove(path).await {
        Err(EnvError::NotFound { .. }) => Ok(()),
        removed => removed,
    }
}
