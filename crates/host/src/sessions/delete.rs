//! Deletes sessions, except sessions whose worktree would be lost silently.

use pintle_agent::{SessionId, Timestamp};
use pintle_store::{PrunePolicy, StoreError, Summary, delete_tree};

use super::worktree::Worktree;
use super::{Sessions, empty, now, unreadable};
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Age up to which a session without a message stays, in milliseconds.
const MIN_EMPTY_AGE: i64 = 3_600_000;

/// Deletes a session with its subagents.
///
/// Sessions with a worktree, and sessions that another process has open, are not deleted.
pub async fn delete_stored_session(
    sessions: &Sessions,
    summary: &Summary,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    refuse_worktree(summary, process_env)?;
    delete_unchecked(sessions, &summary.id).await
}

/// Deletes a session with its subagents, whether it has a worktree or not. Fails if another process has it open.
pub async fn delete_unchecked(sessions: &Sessions, id: &SessionId) -> Result<(), Failure> {
    delete_tree(sessions.store(), id).await.map_err(|error| unreadable(&error, id))?;
    Ok(())
}

/// Refuses a session whose worktree would be lost silently.
pub fn refuse_worktree(summary: &Summary, process_env: &ProcessEnv) -> Result<(), Failure> {
    if !has_worktree(summary, process_env) {
        return Ok(());
    }
    Err(Failure::usage(format!("session {} has a worktree", summary.id))
        .with_hint("`pintle worktree merge` or `drop` it first"))
}

/// Returns whether a session has a worktree that was not removed.
pub fn has_worktree(summary: &Summary, process_env: &ProcessEnv) -> bool {
    Worktree::from_summary(summary).is_some_and(|worktree| worktree.exists(process_env))
}

/// Deletes the sessions without a message that killed processes left, and returns them.
pub async fn delete_empty(
    sessions: &Sessions,
    all: &[Summary],
    policy: &PrunePolicy,
) -> Result<Vec<Summary>, StoreError> {
    let store = sessions.store();
    let before = Timestamp::from_millis(now().as_millis().saturating_sub(MIN_EMPTY_AGE));
    let found = empty::find_abandoned_empty(store, all, &policy.spared, before).await;
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
