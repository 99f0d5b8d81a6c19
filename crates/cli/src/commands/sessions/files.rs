//! Shows and reverts the changes of a session in its directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_agent::{
    Checkpoint, CheckpointReason, Checkpoints as _, Journal as _, RecordEntry, Replay, RewindError,
};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{Rules, WorkspacePolicy};
use pintle_store::checkpoint::{
    CheckpointLimits, Comparison, DiffLimits, GitPatch, Manifest, RepositoryPosition, RestoreAction,
    RestorePlan, RestoreResult, StoredCheckpoints, UnrestoredReason, git_patch, plan_restore, restore,
    unified_diff,
};
#[cfg(feature = "server")]
use pintle_store::checkpoint::{FileDiffs, file_diffs};
use pintle_store::{Hash, Summary};
use serde_json::{Value, json};

use crate::arguments::{ListFormat, RewindArgs};
use crate::console;
use crate::environment::{Confinement, EnvTarget, UNUSABLE};
use crate::failure::{Failure, OrFailure as _};
use crate::policy::{self, PROJECT_DIRECTORY};
use crate::process_env::ProcessEnv;
use crate::render::{self, in_one_line};
use crate::sessions::{Place, Sessions, denials, now, require_directory};

/// Parts of a session to rewind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RewindOptions {
    pub(crate) files: bool,
    /// Whether to rewind the conversation, if the point is in the conversation.
    pub(crate) conversation: bool,
    /// Whether to restore files that another process may have changed.
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
    /// Whether settings of projects stay as they are: rules, hooks and configuration.
    pub(crate) keeps_protected: bool,
}

/// A session with its files: its environment is connected, and its checkpoints are available.
pub(crate) struct Files<'a> {
    pub(super) sessions: &'a Sessions,
    pub(super) summary: Summary,
    replay: Replay,
    environment: Arc<dyn ExecutionEnvironment>,
    /// Rules that deny to read files.
    rules: Rules,
    /// Working directory with all links resolved.
    root: PathBuf,
    /// Paths that are neither shown nor changed, relative to the working directory.
    excluded: BTreeSet<PathBuf>,
}

/// Point in the conversation, or a checkpoint by its id.
pub(crate) enum Point<'a> {
    Turns(usize),
    Checkpoint(&'a str),
}

/// Writes the notice about a change that is not in a patch.
pub(crate) fn notify_left_out(path: &str) {
    console::notice(&format!("not in the patch: {}", in_one_line(path)));
}

/// Returns the failure of a rewind of the conversation.
fn rewind_failure(error: &RewindError) -> Failure {
    Failure::usage(error.to_string())
}

/// Connects to the environment of a session, runs `work` there, and disconnects.
pub(crate) async fn in_place<'a, T>(
    sessions: &'a Sessions,
    prefix: &str,
    process_env: &ProcessEnv,
    work: impl AsyncFnOnce(&Files<'a>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let summary = sessions.find(prefix).await?;
    require_directory(&summary, process_env)?;
    let record = sessions.record(&summary.id).await?;
    let replay = record.replay().or_failed("the session cannot be read")?;
    let choice = Place::of_summary(&summary).to_choice(&summary.id)?;
    let target = EnvTarget::new(choice, Confinement::none(), process_env)?;
    let connected = target.connect().await?;
    let place = (connected.environment(), connected.workspace());
    let result = match Files::open(sessions, summary, replay, place, process_env).await {
        Ok(files) => work(&files).await,
        Err(failure) => Err(failure),
    };
    let closed = connected.close().await;
    result.and_then(|value| closed.map(|()| value))
}

impl<'a> Files<'a> {
    /// Returns the files of a session in its environment, without hidden files and files that rules of the user, of the
    /// project and of the session deny to read.
    pub(super) async fn open(
        sessions: &'a Sessions,
        summary: Summary,
        replay: Replay,
        (environment, workspace): (Arc<dyn ExecutionEnvironment>, &WorkspacePolicy),
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let denials = denials(&summary)?;
        let rules = policy::denials(&denials, environment.as_ref(), process_env).await?;
        let excluded = workspace.excluded_from_checkpoints(environment.as_ref(), &rules);
        let excluded = excluded.await.or_failed(UNUSABLE)?;
        let directory = environment.working_directory();
        let root = environment.canonicalize(directory).await.unwrap_or_else(|_| directory.to_path_buf());
        Ok(Self { sessions, summary, replay, environment, rules, root, excluded })
    }
}

impl Files<'_> {
    fn checkpoints(&self) -> StoredCheckpoints {
        let store = self.sessions.shared_store();
        let limits = CheckpointLimits::default().with_excluded(self.excluded.iter().cloned());
        let checkpoints = StoredCheckpoints::new(store, self.summary.id.clone()).with_limits(limits);
        match self.replay.newest_checkpoint().and_then(|newest| newest.id.parse().ok()) {
            Some(newest) => checkpoints.after(newest),
            None => checkpoints,
        }
    }

    async fn manifest(&self, id: &str) -> Result<Manifest, Failure> {
        let hash: Hash =
            id.parse().or_usage("expected the id of a checkpoint, as `sessions show` prints it")?;
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
    fn checkpoint_at(&self, point: &Point<'_>) -> Result<Option<String>, Failure> {
        match point {
            Point::Checkpoint(id) => Ok(Some((*id).to_owned())),
            Point::Turns(turns) if *turns > self.replay.rewindable => Err(Failure::usage(format!(
                "session {} has {}, expected at most that many",
                self.summary.id,
                render::plural(self.replay.rewindable as u64, "entry")
            ))),
            Point::Turns(turns) => {
                let checkpoints = self.replay.checkpoints();
                let first = checkpoints.into_iter().find(|(taken, _)| taken >= turns);
                Ok(first.map(|(_, checkpoint)| checkpoint.id))
            }
        }
    }

    async fn compare(&self, id: &str) -> Result<Comparison, Failure> {
        let before = self.manifest(id).await?;
        let (_, after) = self.present().await?;
        Ok(before.compare(&after))
    }

    /// Returns the changes since a point, with its checkpoint; `None` if nothing was changed since.
    #[cfg(feature = "server")]
    pub(crate) async fn changes(
        &self,
        point: &Point<'_>,
    ) -> Result<Option<(String, Comparison, FileDiffs)>, Failure> {
        let Some(id) = self.checkpoint_at(point)? else { return Ok(None) };
        let comparison = self.compare(&id).await?;
        let blobs = self.sessions.store().blobs(&self.summary.id);
        let diffs = file_diffs(&comparison, blobs.as_ref(), blobs.as_ref(), &DiffLimits::default()).await;
        Ok(Some((id, comparison, diffs.or_failed("the changes cannot be shown")?)))
    }

    pub(super) async fn diff(&self, point: &Point<'_>, output: ListFormat) -> Result<String, Failure> {
        let Some(id) = self.checkpoint_at(point)? else {
            return match output {
                ListFormat::Json => render::json_line(&json!({"changes": [], "unknown": []})),
                ListFormat::Text => Ok(String::new()),
            };
        };
        let comparison = self.compare(&id).await?;
        if output == ListFormat::Json {
            let changes: Vec<Value> = comparison
                .changes
                .iter()
                .map(|change| json!({"path": change.path.to_string_lossy(), "kind": change.kind}))
                .collect();
            let unknown: Vec<_> = comparison.unknown.iter().map(|path| path.to_string_lossy()).collect();
            return render::json_line(&json!({"checkpoint": id, "changes": changes, "unknown": unknown}));
        }
        let blobs = self.sessions.store().blobs(&self.summary.id);
        let diff = unified_diff(&comparison, blobs.as_ref(), blobs.as_ref(), &DiffLimits::default()).await;
        let mut diff = diff.or_failed("the changes cannot be shown")?;
        if diff.left_out > 0 {
            let more = render::plural(diff.left_out as u64, "more file");
            diff.text.push_str(&format!("[{more}]\n"));
        }
        for path in &comparison.unknown {
            diff.text.push_str(&format!("not known: {}\n", in_one_line(&path.to_string_lossy())));
        }
        Ok(diff.text)
    }

    /// Returns the changes since a point as a patch for `git apply`.
    pub(super) async fn patch(
        &self,
        point: &Point<'_>,
        process_env: &ProcessEnv,
    ) -> Result<GitPatch, Failure> {
        let Some(id) = self.checkpoint_at(point)? else { return Ok(GitPatch::default()) };
        let comparison = self.compare(&id).await?;
        let failed = "cannot make a patch of the changes";
        let position = RepositoryPosition::locate(self.environment.as_ref()).await.or_failed(failed)?;
        let directory = tempfile::tempdir().or_failed("cannot create a temporary directory for git")?;
        let scratch = process_env.local_environment(directory.path())?;
        let blobs = self.sessions.store().blobs(&self.summary.id);
        let patch = git_patch(&comparison, blobs.as_ref(), blobs.as_ref(), &position, &scratch).await;
        patch.or_failed(failed)
    }

    pub(super) async fn rewind(&self, point: &Point<'_>, args: &RewindArgs) -> Result<String, Failure> {
        let options = RewindOptions {
            files: !args.conversation,
            conversation: !args.files,
            force: args.force,
            dry_run: args.dry_run,
            // Only the user can restore files with this command.
            keeps_protected: false,
        };
        let report = self.go_back(point, options).await?;
        if !report.foreign.is_empty() && !args.force && !args.dry_run {
            let changed: Vec<String> = report.foreign.iter().map(|path| in_one_line(path)).collect();
            let message = format!("another process may have changed {}", changed.join(", "));
            return Err(Failure::failed(message).with_hint(
                "nothing was changed; --force restores these files as well, and --dry-run shows all",
            ));
        }
        let text = report.text(args.output)?;
        if report.problems.is_empty() {
            return Ok(text);
        }
        console::print(&text).await?;
        Err(Failure::failed("not every file was restored")
            .with_hint("the same command resumes where it stopped"))
    }

    /// Restores files and rewinds the conversation. Without `force`, it acts as a dry run if another process may have
    /// changed one of the files.
    pub(crate) async fn go_back(&self, point: &Point<'_>, options: RewindOptions) -> Result<Report, Failure> {
        let id = &self.summary.id;
        let turns = match point {
            Point::Turns(turns) if options.conversation => Some(*turns),
            Point::Turns(_) | Point::Checkpoint(_) => None,
        };
        let target = if options.files { self.checkpoint_at(point)? } else { None };
        // Held until the end, so that no other process runs the session meanwhile.
        let record = self.sessions.record(id).await?;
        let writer = if options.dry_run { None } else { Some(self.sessions.writer(id).await?) };
        record.rewound(now(), turns, None).map_err(|error| rewind_failure(&error))?;
        let before = self.replay.history.len();
        let mut report =
            Report { id: id.to_string(), dry_run: options.dry_run, turns, before, ..Report::default() };
        let mut taken = None;
        if let Some(target) = &target {
            let (before, plan) = self.plan(target, options.keeps_protected).await?;
            report.plan(&plan);
            if !plan.foreign.is_empty() && !options.force {
                return Ok(Report { dry_run: true, ..report });
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
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) id: String,
    pub(crate) dry_run: bool,
    pub(crate) turns: Option<usize>,
    /// Number of entries that the conversation had.
    pub(crate) before: usize,
    pub(crate) steps: Vec<(String, &'static str)>,
    pub(crate) foreign: Vec<String>,
    pub(crate) left_alone: Vec<(String, String)>,
    /// Checkpoint that undoes the restore.
    pub(crate) undo: Option<String>,
    pub(crate) problems: Vec<String>,
}

impl Report {
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

    fn text(&self, output: ListFormat) -> Result<String, Failure> {
        if output == ListFormat::Json {
            let list = |pairs: &[(String, &'static str)]| -> Vec<Value> {
                pairs.iter().map(|(path, action)| json!({"path": path, "action": action})).collect()
            };
            let left: Vec<Value> =
                self.left_alone.iter().map(|(path, why)| json!({"path": path, "reason": why})).collect();
            return render::json_line(&json!({
                "id": self.id,
                "dry_run": self.dry_run,
                "turns": self.turns,
                "turns_before": self.before,
                "files": list(&self.steps),
                "changed_by_others": self.foreign,
                "left_alone": left,
                "undo": self.undo.as_ref().filter(|_| !self.dry_run),
                "problems": self.problems,
            }));
        }
        let mut text = String::new();
        for (path, action) in &self.steps {
            let by = if self.foreign.contains(path) { "  (possibly changed by another process)" } else { "" };
            text.push_str(&format!("{action:<9} {}{by}\n", in_one_line(path)));
        }
        for (path, why) in &self.left_alone {
            text.push_str(&format!("left      {}: {}\n", in_one_line(path), in_one_line(why)));
        }
        for problem in &self.problems {
            text.push_str(&format!("FAILED    {}\n", in_one_line(problem)));
        }
        let would = if self.dry_run { "would be" } else { "was" };
        let entries = |turns: usize| render::plural(turns as u64, "entry");
        match self.turns {
            Some(turns) if turns < self.before => {
                text.push_str(&format!("the conversation {would} rewound to {}\n", entries(turns)));
                if !self.dry_run {
                    text.push_str(&format!(
                        "to undo this before the conversation continues: pintle sessions rewind {}@{} --conversation\n",
                        self.id, self.before
                    ));
                }
            }
            Some(turns) => {
                text.push_str(&format!("the conversation {would} restored to {}\n", entries(turns)))
            }
            None => {}
        }
        match &self.undo {
            None if self.turns.is_none() => text.push_str("no file has changed since\n"),
            Some(undo) if !self.dry_run => text.push_str(&format!(
                "to undo the files: pintle sessions rewind {} --checkpoint {undo}\n",
                self.id
            )),
            None | Some(_) => {}
        }
        Ok(text)
    }
}

fn action_name(action: RestoreAction) -> &'static str {
    match action {
        RestoreAction::Create => "create",
        RestoreAction::Overwrite => "overwrite",
        RestoreAction::Remove => "remove",
        RestoreAction::Replace => "replace",
        RestoreAction::SetMode => "set mode",
    }
}

fn reason(reason: &UnrestoredReason) -> String {
    match reason {
        UnrestoredReason::NotInCheckpoint => "the checkpoint does not have it".to_owned(),
        UnrestoredReason::NotKnownNow => "its current content could not be restored".to_owned(),
        UnrestoredReason::Ignored { by } => format!("{} is ignored", by.display()),
        UnrestoredReason::Occupied { by } => format!("{} is in the way", by.display()),
        UnrestoredReason::Blocked { by } => format!("{} is left alone", by.display()),
    }
}
