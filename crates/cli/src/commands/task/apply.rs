//! `pintle task apply`: applies the change of a candidate.

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironment;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{ProcessEnv, absolute};
use pintle_host::sessions::Sessions;
use pintle_tui::console::{self, Console};
use pintle_workflow::contract::Contract;
use pintle_workflow::report::{CandidateDiff, TaskReport};
use pintle_workflow::repository::{RepositoryError, UserRepository, read_blob};
use pintle_workflow::task::{Task, TaskOutcome};

use super::push::{BranchPush, PullRequest};
use super::{find, read_intact};
use crate::arguments::ApplyTaskArgs;
use crate::exit::Exit;

/// Longest subject of a commit, in characters.
const MAX_SUBJECT: usize = 72;

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
    let candidate = candidate.or(best).ok_or_else(|| not_reached(task, id))?;
    let count = task.candidates().len();
    if candidate >= count {
        let last = count.saturating_sub(1);
        let expected = if last == 0 { "0".to_owned() } else { format!("0 to {last}") };
        return Err(Failure::usage(format!("task {id} has no candidate {candidate}; expected {expected}")));
    }
    let diff = task
        .newest_change(candidate)
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

/// Returns the failure of a command that needs a candidate that reached the goal.
fn not_reached(task: &Task, id: &SessionId) -> Failure {
    let failure = Failure::usage(format!("no candidate of task {id} has reached the goal"));
    let mut changed = (0..task.candidates().len()).filter(|number| task.newest_change(*number).is_some());
    match changed.next() {
        Some(number) => {
            failure.with_hint(&format!("`--candidate {number}` applies its change, which lacks evidence"))
        }
        None => failure.with_hint("no candidate has changed a file so far"),
    }
}

/// Returns the patch with the test of the anchor. `None` if it is missing or cannot be read: a report is complete without it.
pub(super) async fn read_anchor(sessions: &Sessions, id: &SessionId, task: &Task) -> Option<String> {
    let patch = task.anchor()?.patch()?;
    let patch = read_blob(patch, sessions.store().blobs(id).as_ref()).await.ok()?;
    Some(String::from_utf8_lossy(&patch).into_owned())
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
        let has_diff = task.newest_change(candidate).is_some();
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
    let push = BranchPush::prepare(&args, base, &repository, process_env).await?;
    let branch = args.branch.clone().unwrap_or_else(|| format!("pintle/{id}"));
    let worktree = args.worktree.as_deref().map(absolute).transpose()?;
    let report = TaskReport::from_task(&task);
    let request = PullRequest {
        title: commit_subject(task.contract(), report.is_chosen(change.candidate)),
        body: report.to_pull_request(change.candidate),
        is_draft: !report.is_chosen(change.candidate),
    };
    let message = commit_message(&request.title, &task.contract().goal, &id);
    let mut console = Console::new();
    let commit = commit(&repository, &base.commit, &patch, &branch, &message).await?;
    console.write(&format!("committed {commit} to {branch}\n")).await?;
    if base.has_local_changes {
        console::notice(&format!(
            "the parent of this commit, {}, has the local changes of `--changes`",
            base.commit
        ));
    }
    if let Some(path) = worktree {
        let added = repository.add_worktree(&path, &branch).await.or_failed("the worktree cannot be made");
        let hint = format!("the commit is on {branch}: `git worktree add DIRECTORY {branch}` checks it out");
        added.map_err(|failure| failure.with_hint(&hint))?;
        console.write(&format!("checked out in {}\n", path.display())).await?;
    }
    if let Some(push) = push {
        let remote = push.push(&branch, &request)?;
        console.write(&format!("pushed {branch} to {remote}\n")).await?;
    }
    Ok(Exit::Done)
}

/// Commits a patch to a branch, and returns the commit.
async fn commit(
    repository: &UserRepository,
    base: &str,
    patch: &[u8],
    branch: &str,
    message: &str,
) -> Result<String, Failure> {
    repository.commit_to_branch(base, patch, branch, message).await.map_err(|error| {
        let failure = Failure::failed(FAILED).caused_by(&error);
        if matches!(error, RepositoryError::Unusable(_)) {
            failure.with_hint("`--files` changes the working tree, and `--patch` prints the patch")
        } else if matches!(error, RepositoryError::BranchExists(_)) {
            failure.with_hint("another name for `--branch` keeps both")
        } else {
            failure
        }
    })
}

/// Returns the title of a change. A change that does not reach the goal is named as incomplete.
fn commit_subject(contract: &Contract, is_chosen: bool) -> String {
    let prefix = if is_chosen { "" } else { "Incomplete: " };
    format!("{prefix}{}", contract.title(MAX_SUBJECT - prefix.len()))
}

/// Returns the message of a commit: its subject, the goal unless the subject has all of it, and the task.
fn commit_message(subject: &str, goal: &str, id: &SessionId) -> String {
    let goal = goal.trim();
    let rest = if subject.ends_with(goal) { String::new() } else { format!("{goal}\n\n") };
    format!("{subject}\n\n{rest}Task {id} of Pintle, with its evidence in `pintle task report {id}`.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_the_whole_goal() {
        let id = SessionId::new("t");
        let end = "Task t of Pintle, with its evidence in `pintle task report t`.\n";
        let long = "x".repeat(80);
        for (goal, is_chosen, subject, rest) in [
            ("Sums are right.\n", true, "Sums are right.".to_owned(), String::new()),
            ("Sums are right.", false, "Incomplete: Sums are right.".to_owned(), String::new()),
            ("One.\n\nTwo.", true, "One.".to_owned(), "One.\n\nTwo.\n\n".to_owned()),
            (long.as_str(), true, format!("{}…", "x".repeat(71)), format!("{long}\n\n")),
            (long.as_str(), false, format!("Incomplete: {}…", "x".repeat(59)), format!("{long}\n\n")),
        ] {
            let found = commit_subject(&Contract::new(goal), is_chosen);
            assert_eq!(found, subject);
            assert_eq!(commit_message(&found, goal, &id), format!("{subject}\n\n{rest}{end}"));
        }
    }
}
