//! `pintle task apply`: applies the change of a candidate.

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironment;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{ProcessEnv, absolute};
use pintle_host::sessions::Sessions;
use pintle_tui::console::{self, Console};
use pintle_workflow::Diff;
use pintle_workflow::report::{CandidateDiff, TaskReport};
use pintle_workflow::repository::{RepositoryError, UserRepository, read_blob};
use pintle_workflow::task::{StepSnapshot, Task, TaskCandidate, TaskOutcome, TaskPlan};

use super::push::BranchPush;
use super::{find, read_intact};
use crate::arguments::ApplyTaskArgs;
use crate::exit::Exit;

/// Message of a change that cannot be applied.
const FAILED: &str = "the change cannot be applied";

/// Change of a candidate.
#[derive(Debug)]
pub(super) struct CandidateChange {
    pub(super) candidate: usize,
    /// Patch that adds the anchor; empty without an anchor.
    pub(super) anchor: Vec<u8>,
    /// Patch of the candidate, on top of the anchor.
    pub(super) patch: Vec<u8>,
}

/// Returns the newest change of a candidate. In a plan, the steps that hold are the change of candidate 0.
fn newest_diff(task: &Task, candidate: usize) -> Option<&Diff> {
    let is_done = matches!(task.outcome(), Some(TaskOutcome::Done(_)));
    let plan = task.plan().filter(|_| candidate == 0 && !is_done);
    let held = plan.and_then(TaskPlan::snapshot).map(StepSnapshot::diff);
    held.or_else(|| task.candidates().get(candidate).and_then(TaskCandidate::diff))
}

/// Returns the change of a candidate, or of the one that reached the goal.
pub(super) async fn read_change(
    sessions: &Sessions,
    id: &SessionId,
    task: &Task,
    candidate: Option<usize>,
) -> Result<CandidateChange, Failure> {
    let best = match task.outcome() {
        Some(TaskOutcome::Done(done)) => Some(done.candidate()),
        _ => None,
    };
    let candidate = candidate.or(best).ok_or_else(|| {
        Failure::usage(format!("no candidate of task {id} has reached the goal"))
            .with_hint("`--candidate N` applies the change of another candidate")
    })?;
    let count = task.candidates().len();
    if candidate >= count {
        let last = count.saturating_sub(1);
        let expected = if last == 0 { "0".to_owned() } else { format!("0 to {last}") };
        return Err(Failure::usage(format!("task {id} has no candidate {candidate}; expected {expected}")));
    }
    let diff = newest_diff(task, candidate)
        .ok_or_else(|| Failure::usage(format!("candidate {candidate} of task {id} has changed nothing")))?;
    let blobs = sessions.store().blobs(id);
    let lost = "the change cannot be read";
    let anchor = match task.anchor().and_then(|anchor| anchor.patch()) {
        Some(patch) => read_blob(patch, blobs.as_ref()).await.or_failed(lost)?,
        None => Vec::new(),
    };
    let patch = read_blob(&diff.patch, blobs.as_ref()).await.or_failed(lost)?;
    Ok(CandidateChange { candidate, anchor, patch })
}

/// Returns the diff of the candidate that reached the goal, or else the newest one of each.
pub(super) async fn read_diffs(
    sessions: &Sessions,
    id: &SessionId,
    task: &Task,
) -> Result<Vec<CandidateDiff>, Failure> {
    let chosen = match task.outcome() {
        Some(TaskOutcome::Done(done)) => Some(done.candidate()),
        _ => None,
    };
    let mut diffs = Vec::new();
    for candidate in 0..task.candidates().len() {
        let has_diff = newest_diff(task, candidate).is_some();
        if has_diff && chosen.is_none_or(|chosen| chosen == candidate) {
            let change = read_change(sessions, id, task, Some(candidate)).await?;
            let patch = [change.anchor, change.patch].concat();
            diffs.push(CandidateDiff { candidate, patch: String::from_utf8_lossy(&patch).into_owned() });
        }
    }
    Ok(diffs)
}

pub(super) async fn apply(args: ApplyTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    let task = read_intact(&sessions, &id).await?.task;
    let change = read_change(&sessions, &id, &task, args.candidate).await?;
    let patch = [change.anchor, change.patch].concat();
    if args.patch {
        console::print_patch(&patch).await?;
        return Ok(Exit::Done);
    }
    let base = task.contract().base.as_ref().ok_or_else(|| Failure::failed("the task has no repository"))?;
    let directory = process_env.directory(None)?;
    let machine: Arc<dyn ExecutionEnvironment> = Arc::new(process_env.local_environment(&directory)?);
    let root = std::path::Path::new(&base.repository);
    let repository = UserRepository::find(machine, root).await.or_failed(FAILED)?;
    if args.files {
        repository.apply(&patch).await.or_failed(FAILED)?;
        console::print(&format!("applied to {}\n", repository.root.display())).await?;
        return Ok(Exit::Done);
    }
    let push = BranchPush::prepare(&args, &repository, process_env).await?;
    let branch = args.branch.clone().unwrap_or_else(|| format!("pintle/{id}"));
    let worktree = args.worktree.as_deref().map(absolute).transpose()?;
    let subject = commit_subject(&task);
    let message =
        format!("{subject}\n\nTask {id} of Pintle, with its evidence in `pintle task report {id}`.\n");
    let commit = repository.commit_to_branch(&base.commit, &patch, &branch, &message).await;
    let commit = commit.map_err(|error| {
        let failure = Failure::failed(FAILED).caused_by(&error);
        if matches!(error, RepositoryError::Unusable(_)) {
            failure.with_hint("`--files` changes the working tree, and `--patch` prints the patch")
        } else if matches!(error, RepositoryError::BranchExists(_)) {
            failure.with_hint("another name for `--branch` keeps both")
        } else {
            failure
        }
    })?;
    let mut console = Console::new();
    console.write(&format!("committed {commit} to {branch}\n")).await?;
    if let Some(path) = worktree {
        let added = repository.add_worktree(&path, &branch).await.or_failed("the worktree cannot be made");
        let hint = format!("the commit is on {branch}: `git worktree add DIRECTORY {branch}` checks it out");
        added.map_err(|failure| failure.with_hint(&hint))?;
        console.write(&format!("checked out in {}\n", path.display())).await?;
    }
    if let Some(push) = push {
        let body = TaskReport::from_task(&task).to_pull_request();
        let remote = push.push(&branch, &subject, &body)?;
        console.write(&format!("pushed {branch} to {remote}\n")).await?;
    }
    Ok(Exit::Done)
}

/// Returns the first line of the goal, truncated.
fn commit_subject(task: &Task) -> String {
    let goal = task.contract().goal.trim();
    goal.lines().next().unwrap_or_default().chars().take(72).collect()
}
