//! Compares and restores the files of a session in its environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_agent::{
    Checkpoint, CheckpointReason, Checkpoints as _, Count, Journal as _, RecordEntry, Replay, RewindError,
};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{Rules, WorkspacePolicy};
use pintle_store::checkpoint::{
    CheckpointLimits, Comparison, DiffLimits, FileDiffs, GitPatch, Manifest, RepositoryPosition,
    RestoreAction, RestorePlan, RestoreResult, StoredCheckpoints, UnifiedDiff, UnrestoredReason, file_diffs,
    git_patch, plan_restore, restore, unified_diff,
};
use pintle_store::{Hash, Summary};

use super::{SessionLocation, Sessions, now, remembered_denials, remembered_hidden_paths, require_directory};
use crate::environment::{Confinement, ENVIRONMENT_UNUSABLE, EnvTarget};
use crate::failure::{Failure, OrFailure as _};
use crate::policy::{self, PROJECT_DIRECTORY, Project};
use crate::process_env::ProcessEnv;

/// Parts of a session to rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewindOptions {
    /// Whether to restore files.
    pub files: bool,
    /// Whether to rewind the conversation, if the point is in the conversation.
    pub conversation: bool,
    /// Whether to restore files that another process may have changed.
    pub force: bool,
    /// Whether to change nothing.
    pub dry_run: bool,
    /// Whether settings of projects stay as they are: rules, hooks and configuration.
    pub keeps_protected: bool,
}

/// A session with its files: its environment is connected, and its checkpoints are available.
#[derive(Debug)]
pub struct SessionFiles<'a> {
    sessions: &'a Sessions,
    summary: Summary,
    replay: Replay,
    environment: Arc<dyn ExecutionEnvironment>,
    /// Rules that deny to read files.
    rules: Rules,
    /// Working directory with all links resolved.
    root: PathBuf,
    /// Paths that are neither shown nor changed, relative to the working directory.
    excluded: BTreeSet<PathBuf>,
}

/// Point in the history of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPoint<'a> {
    /// The end of the first entries of the history.
    Entries(usize),
    /// A checkpoint, by its id.
    Checkpoint(&'a str),
}

/// Message of a failure to show changes.
const UNSHOWN: &str = "the changes cannot be shown";

/// Returns the failure of a rewind of the conversation.
fn rewind_failure(error: &RewindError) -> Failure {
    Failure::usage(error.to_string())
}

/// Connects to the environment of a session, runs `work` there, and disconnects. `prefix` is the id of the session or the
/// beginning of it.
///
/// Dropping the future stops the work. A restore that it stops leaves each file with its old or its new content.
///
/// # Errors
///
/// A session that is not found, whose directory is missing or whose record is damaged, an environment that cannot be used, and
/// the failure of `work`.
pub async fn with_session_files<'a, T>(
    sessions: &'a Sessions,
    prefix: &str,
    process_env: &ProcessEnv,
    work: impl AsyncFnOnce(&SessionFiles<'a>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let summary = sessions.find(prefix).await?;
    require_directory(&summary, process_env)?;
    let record = sessions.record(&summary.id).await?;
    let replay = record.replay().or_failed("the session cannot be read")?;
    let choice = SessionLocation::from_summary(&summary).to_choice(&summary.id)?;
    let hidden = remembered_hidden_paths(&summary)?;
    let target = EnvTarget::new(choice, Confinement::none(), process_env)?.with_hidden(&hidden);
    let connected = target.connect().await?;
    let place = (connected.environment(), connected.workspace());
    let result = match SessionFiles::open(sessions, summary, replay, place, process_env).await {
        Ok(files) => work(&files).await,
        Err(failure) => Err(failure),
    };
    let closed = connected.close().await;
    result.and_then(|value| closed.map(|()| value))
}

impl<'a> SessionFiles<'a> {
    /// Returns the files of a session in its environment, without hidden files and files that rules of the user, of the
    /// project and of the session deny to read.
    ///
    /// # Errors
    ///
    /// Rules that cannot be read, and an environment that cannot be used.
    pub async fn open(
        sessions: &'a Sessions,
        summary: Summary,
        replay: Replay,
        (environment, workspace): (Arc<dyn ExecutionEnvironment>, &WorkspacePolicy),
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let denials = remembered_denials(&summary)?;
        let projects = Project::read_all(environment.as_ref()).await?;
        let rules = policy::load_denials(&denials, environment.as_ref(), &projects, process_env).await?;
        let excluded = workspace.excluded_from_checkpoints(environment.as_ref(), &rules);
        let excluded = excluded.await.or_failed(ENVIRONMENT_UNUSABLE)?;
        let directory = environment.working_directory();
        let root = environment.canonicalize(directory).await.unwrap_or_else(|_| directory.to_path_buf());
        Ok(Self { sessions, summary, replay, environment, rules, root, excluded })
    }
}

impl SessionFiles<'_> {
    fn checkpoints(&self) -> StoredCheckpoints {
        let store = self.sessions.shared_store();
        let limits = CheckpointLimits::default().with_excluded(self.excluded.iter().cloned());
        let checkpoints =
            StoredCheckpoints::new(store, self.summary.id.clone()).with_limits(limits).with_fresh_walks();
        match self.replay.newest_checkpoint().and_then(|newest| newest.id.parse().ok()) {
            Some(newest) => checkpoints.after(newest),
            None => checkpoints,
        }
    }

    async fn manifest(&self, id: &str) -> Result<Manifest, Failure> {
        let hash: Hash =
            id.parse().or_usage("expected the id of a checkpoint, as `sessions show` names it")?;
        let blobs = self.sessions.store().blobs(&self.summary.id);
        let manifest =
            Manifest::load(blobs.as_ref(), &hash).await.or_failed("the checkpoint cannot be read")?;
        // An earlier checkpoint may contain files that are hidden or denied now, including removed ones.
        let denied =
            manifest.entries().keys().filter(|path| self.rules.denies_reading(&self.root.join(path)));
        let left_out: Vec<PathBuf> = self.excluded.iter().chain(denied).cloned().collect();
        Ok(manifest.with_ignored(left_out))
    }

    /// Takes a checkpoint of the current state of the directory.
    async fn present(&self) -> Result<(Checkpoint, Manifest), Failure> {
        let taken = self.checkpoints().take(self.environment.as_ref()).await;
        let taken = taken.or_failed("the directory of the session cannot be read")?;
        let manifest = self.manifest(&taken.id).await?;
        Ok((taken, manifest))
    }

    /// Returns the checkpoint of a point; `None` if nothing was changed since.
    fn checkpoint_at(&self, point: &SessionPoint<'_>) -> Result<Option<String>, Failure> {
        match point {
            SessionPoint::Checkpoint(id) => Ok(Some((*id).to_owned())),
            SessionPoint::Entries(entries) if *entries > self.replay.rewindable => {
                Err(Failure::usage(format!(
                    "session {} has {}, expected at most that many",
                    self.summary.id,
                    Count(self.replay.rewindable as u64, "entry")
                )))
            }
            SessionPoint::Entries(entries) => {
                let checkpoints = self.replay.checkpoints();
                let first = checkpoints.into_iter().find(|(taken, _)| taken >= entries);
                Ok(first.map(|(_, checkpoint)| checkpoint.id))
            }
        }
    }

    /// Returns the checkpoint of a point, and the changes since; `None` if nothing was changed since.
    ///
    /// # Errors
    ///
    /// A point that the session does not have, and files that cannot be read.
    pub async fn changes(&self, point: &SessionPoint<'_>) -> Result<Option<(String, Comparison)>, Failure> {
        let Some(id) = self.checkpoint_at(point)? else { return Ok(None) };
        let before = self.manifest(&id).await?;
        let (_, after) = self.present().await?;
        Ok(Some((id, before.compare(&after))))
    }

    /// Returns changes by files and lines.
    ///
    /// # Errors
    ///
    /// Contents that cannot be read.
    pub async fn file_diffs(&self, changes: &Comparison) -> Result<FileDiffs, Failure> {
        let blobs = self.sessions.store().blobs(&self.summary.id);
        let diffs = file_diffs(changes, blobs.as_ref(), blobs.as_ref(), &DiffLimits::default()).await;
        diffs.or_failed(UNSHOWN)
    }

    /// Returns changes as a unified diff.
    ///
    /// # Errors
    ///
    /// Contents that cannot be read.
    pub async fn unified_diff(&self, changes: &Comparison) -> Result<UnifiedDiff, Failure> {
        let blobs = self.sessions.store().blobs(&self.summary.id);
        let diff = unified_diff(changes, blobs.as_ref(), blobs.as_ref(), &DiffLimits::default()).await;
        diff.or_failed(UNSHOWN)
    }

    /// Returns the changes since a point as a patch for `git apply`.
    ///
    /// # Errors
    ///
    /// As [`changes`](Self::changes), and a failure of git.
    pub async fn patch(
        &self,
        point: &SessionPoint<'_>,
        process_env: &ProcessEnv,
    ) -> Result<GitPatch, Failure> {
        let Some((_, changes)) = self.changes(point).await? else { return Ok(GitPatch::default()) };
        let failed = "cannot make a patch of the changes";
        let position = RepositoryPosition::locate(self.environment.as_ref()).await.or_failed(failed)?;
        let directory = tempfile::tempdir().or_failed("cannot create a temporary directory for git")?;
        let scratch = process_env.local_environment(directory.path())?;
        let blobs = self.sessions.store().blobs(&self.summary.id);
        let patch = git_patch(&changes, blobs.as_ref(), blobs.as_ref(), &position, &scratch).await;
        patch.or_failed(failed)
    }

    /// Restores files and rewinds the conversation. Without `force`, it acts as a dry run if another process may have
    /// changed one of the files. Files that could not be restored are problems of the report.
    ///
    /// # Errors
    ///
    /// A point that the session does not have, a session that another process has, and a rewind that cannot be recorded.
    pub async fn rewind(
        &self,
        point: &SessionPoint<'_>,
        options: RewindOptions,
    ) -> Result<RewindReport, Failure> {
        let id = &self.summary.id;
        let turns = match point {
            SessionPoint::Entries(turns) if options.conversation => Some(*turns),
            SessionPoint::Entries(_) | SessionPoint::Checkpoint(_) => None,
        };
        let target = if options.files { self.checkpoint_at(point)? } else { None };
        // Held until the end, so that no other process runs the session meanwhile.
        let record = self.sessions.record(id).await?;
        let writer = if options.dry_run { None } else { Some(self.sessions.writer(id).await?) };
        record.rewound(now(), turns, None).map_err(|error| rewind_failure(&error))?;
        let before = self.replay.history.len();
        let mut report = RewindReport {
            id: id.to_string(),
            dry_run: options.dry_run,
            turns,
            before,
            ..RewindReport::default()
        };
        let mut taken = None;
        if let Some(target) = &target {
            let (before, plan) = self.plan(target, options.keeps_protected).await?;
            report.plan(&plan);
            if !plan.foreign.is_empty() && !options.force {
                return Ok(RewindReport { dry_run: true, ..report });
            }
            report.undo = Some(before.id.clone());
            taken = Some((before, plan));
        }
        let Some(writer) = writer else { return Ok(report) };
        // Recorded before the first file is changed, so that it can be undone after any failure.
        let (checkpoint, plan) = taken.map_or((None, None), |(before, plan)| (Some(before), Some(plan)));
        let entries = record.rewound(now(), turns, checkpoint).map_err(|error| rewind_failure(&error))?;
        let mut journal = self.sessions.journal(writer, self.summary.clone());
        if !entries.is_empty() {
            let appended = journal.append(&entries, pintle_agent::Barrier::Synced).await;
            appended.or_failed("the rewind cannot be recorded")?;
        }
        if let Some(plan) = plan {
            let blobs = self.sessions.store().blobs(id);
            let restored = restore(&self.environment, &plan, blobs.as_ref()).await;
            report.restored(&restored.or_failed("the files cannot be restored")?);
            // Later changes come from other processes.
            let (restored, _) = self.present().await?;
            let entry = RecordEntry::checkpoint_taken(now(), CheckpointReason::AfterRewind, restored);
            let appended = journal.append(&[Arc::new(entry)], pintle_agent::Barrier::Synced).await;
            appended.or_failed("the rewind cannot be recorded")?;
        }
        let closed = journal.close().await;
        closed.or_failed("the session cannot be closed")?;
        Ok(report)
    }

    /// Returns a checkpoint of the present state, and the plan to restore an earlier one. With `keeps_protected`, directories with
    /// settings of projects stay as they are.
    async fn plan(&self, target: &str, keeps_protected: bool) -> Result<(Checkpoint, RestorePlan), Failure> {
        let target = self.manifest(target).await?;
        let (taken, present) = self.present().await?;
        let present = match keeps_protected {
            true => {
                let protected = [&target, &present].into_iter().flat_map(protected_paths);
                let protected: BTreeSet<PathBuf> = protected.collect();
                present.with_ignored(protected)
            }
            false => present,
        };
        let newest = match self.replay.newest_checkpoint() {
            Some(newest) => self.manifest(&newest.id).await?,
            None => present.clone(),
        };
        let root = self.environment.working_directory().to_path_buf();
        let plan = plan_restore(self.environment.as_ref(), &root, &target, &newest, &present).await;
        Ok((taken, plan.or_failed("the files cannot be restored")?))
    }
}

/// Returns the directories with settings of a project, which only the user changes.
fn protected_paths(manifest: &Manifest) -> BTreeSet<PathBuf> {
    let is_protected =
        |path: &&Path| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(PROJECT_DIRECTORY));
    let outermost = |path: &PathBuf| path.ancestors().filter(is_protected).last().map(Path::to_path_buf);
    manifest.entries().keys().filter_map(outermost).collect()
}

/// Effects of a rewind, done or planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewindReport {
    /// Id of the session.
    pub id: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Number of entries that the conversation keeps; `None` if it is not rewound.
    pub turns: Option<usize>,
    /// Number of entries that the conversation had.
    pub before: usize,
    /// Path and action for each file.
    pub steps: Vec<(String, &'static str)>,
    /// Files that another process may have changed.
    pub foreign: Vec<String>,
    /// Files that are not restored, each with the reason.
    pub left_alone: Vec<(String, String)>,
    /// Checkpoint that undoes the restore.
    pub undo: Option<String>,
    /// Files that could not be restored, each with the reason.
    pub problems: Vec<String>,
}

impl RewindReport {
    fn plan(&mut self, plan: &RestorePlan) {
        let name = |path: &PathBuf| path.display().to_string();
        self.steps = plan.steps.iter().map(|step| (name(&step.path), action_name(step.action()))).collect();
        self.foreign = plan.foreign.iter().map(name).collect();
        self.left_alone =
            plan.left_alone.iter().map(|left| (name(&left.path), reason(&left.reason))).collect();
    }

    fn restored(&mut self, restored: &RestoreResult) {
        let changed = restored.changed_meanwhile.iter();
        self.problems.extend(changed.map(|path| format!("{} has changed meanwhile", path.display())));
        for failed in &restored.failed {
            self.problems.push(format!("{}: {}", failed.path.display(), failed.error));
        }
        self.problems
            .extend(restored.not_done.iter().map(|path| format!("{} was not reached", path.display())));
    }
}

fn action_name(action: RestoreAction) -> &'static str {
    match action {
        RestoreAction::Create => "create",
        RestoreAction::Overwrite => "overwrite",
        RestoreAction::Remove => "remove",
        RestoreAction::Replace => "replace",
        RestoreAction::SetMode => "set mode",
        _ => "change",
    }
}

fn reason(reason: &UnrestoredReason) -> String {
    match reason {
        UnrestoredReason::NotInCheckpoint => "the checkpoint does not have it".to_owned(),
        UnrestoredReason::NotKnownNow => "its present content could not be brought back".to_owned(),
        UnrestoredReason::Ignored { by } => format!("{} is ignored", by.display()),
        UnrestoredReason::Occupied { by } => format!("{} is in the way", by.display()),
        UnrestoredReason::Blocked { by } => format!("{} is left alone", by.display()),
        _ => "it cannot be restored".to_owned(),
    }
}
