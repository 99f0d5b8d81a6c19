//! `pintle sessions delete` and `pintle sessions prune`.

use pintle_agent::{SessionId, Timestamp};
use pintle_store::{Filter, Page, PrunePolicy, StoreError, Summary, delete_tree, prune};
use serde_json::json;

use super::worktree::Worktree;
use super::{Sessions, empty, list, now, unreadable};
use crate::args::{DeleteArgs, ListFormat, PruneArgs};
use crate::console;
use crate::exit::Exit;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;
use crate::render::{self, sanitize};

/// Age up to which a session without a message stays, in milliseconds.
const MIN_EMPTY_AGE: i64 = 3_600_000;

pub(super) async fn delete(
    sessions: &Sessions,
    args: &DeleteArgs,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    // All or nothing: a wrong id must not leave half of the work done.
    let mut ids = Vec::new();
    for prefix in &args.ids {
        let summary = sessions.find(prefix).await?;
        refuse_worktree(&summary, process_env)?;
        ids.push(summary.id);
    }
    for id in &ids {
        remove(sessions, id).await?;
    }
    let text = match args.output {
        ListFormat::Json => {
            let ids: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
            render::json_line(&json!({"deleted": ids}))?
        }
        ListFormat::Text => ids.iter().map(|id| format!("deleted {id}\n")).collect(),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Deletes one session with its subagents.
///
/// Sessions with a worktree, and sessions that another process has open, are not deleted.
#[cfg(any(feature = "acp", feature = "server"))]
pub(crate) async fn delete_one(
    sessions: &Sessions,
    summary: &Summary,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    refuse_worktree(summary, process_env)?;
    remove(sessions, &summary.id).await
}

async fn remove(sessions: &Sessions, id: &SessionId) -> Result<(), Failure> {
    delete_tree(sessions.store(), id).await.map_err(|error| unreadable(&error, id))?;
    Ok(())
}

/// Refuses a session whose worktree would be lost silently.
fn refuse_worktree(summary: &Summary, process_env: &ProcessEnv) -> Result<(), Failure> {
    if !has_worktree(summary, process_env) {
        return Ok(());
    }
    Err(Failure::usage(format!("session {} has a worktree", summary.id))
        .with_hint("`pintle worktree merge` or `drop` it first"))
}

pub(super) async fn prune_old(
    sessions: &Sessions,
    args: &PruneArgs,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    let mut policy = PrunePolicy::default();
    policy.older_than = args.older_than.map(|age| {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(now().as_millis().saturating_sub(age))
    });
    (policy.keep, policy.dry_run) = (args.keep, args.dry_run);
    // A worktree is never lost silently.
    let all = sessions.list(&Filter::default(), &Page::default()).await?;
    let with_worktree = all.iter().filter(|summary| has_worktree(summary, process_env));
    policy.spared = with_worktree.map(|summary| summary.id.clone()).collect();
    let failed = "cannot delete old sessions";
    let mut pruned = prune(sessions.store(), &policy).await.or_failed(failed)?;
    policy.spared.extend(pruned.removed.iter().map(|summary| summary.id.clone()));
    let empty = delete_empty(sessions, &all, &policy).await.or_failed(failed)?;
    pruned.removed.extend(empty);
    let text = match args.output {
        ListFormat::Json => {
            let ids = |summaries: &[Summary]| -> Vec<String> {
                summaries.iter().map(|summary| summary.id.to_string()).collect()
            };
            render::json_line(&json!({
                "dry_run": args.dry_run,
                "deleted": ids(&pruned.removed),
                "kept": ids(&pruned.kept),
                "swept": pruned.swept,
            }))?
        }
        ListFormat::Text => {
            let verb = if args.dry_run { "would delete" } else { "deleted" };
            let mut text: String = pruned.removed.iter().map(|summary| line(verb, summary)).collect();
            text.extend(pruned.kept.iter().map(|summary| line("kept, since it is under way:", summary)));
            text
        }
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Deletes the sessions without a message that killed processes left, and returns them.
async fn delete_empty(
    sessions: &Sessions,
    all: &[Summary],
    policy: &PrunePolicy,
) -> Result<Vec<Summary>, StoreError> {
    let store = sessions.store();
    let before = Timestamp::from_millis(now().as_millis().saturating_sub(MIN_EMPTY_AGE));
    let found = empty::left_empty(store, all, &policy.spared, before).await;
    if policy.dry_run {
        return Ok(found);
    }
    let mut deleted = Vec::new();
    for summary in found {
        match delete_tree(store, &summary.id).await {
            Ok(()) => deleted.push(summary),
            // Another process has opened it meanwhile.
            Err(StoreError::InUse { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

fn line(what: &str, summary: &Summary) -> String {
    format!("{what} {}  {}\n", summary.id, sanitize(list::title_or_mark(&summary.title)))
}

fn has_worktree(summary: &Summary, process_env: &ProcessEnv) -> bool {
    Worktree::of(summary).is_some_and(|worktree| worktree.exists(process_env))
}
