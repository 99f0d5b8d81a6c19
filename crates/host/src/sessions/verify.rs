//! Verifies the checkpoints of a session.

use pintle_agent::protocol::InputKind;
use pintle_agent::{Record, RecordEntry, SessionId};
use pintle_store::checkpoint::{VerifiedCheckpoints, verify};
use pintle_store::{Hash, Position};

use super::Sessions;
use crate::failure::{Failure, OrFailure as _};

/// Verifies the checkpoints that a record names.
///
/// # Errors
///
/// A store that cannot be read. A damaged checkpoint is a problem of the result.
pub async fn verify_checkpoints(
    sessions: &Sessions,
    id: &SessionId,
    record: &Record,
) -> Result<VerifiedCheckpoints, Failure> {
    // Collected, since an iterator with a closure would keep the future from being `Send`.
    let ids: Vec<Hash> = record.entries.iter().filter_map(|entry| checkpoint_of(entry)).collect();
    let blobs = sessions.store().blobs(&owner_of_checkpoints(sessions, id, record).await?);
    verify(blobs.as_ref(), ids).await.or_failed("the checkpoints cannot be verified")
}

fn checkpoint_of(entry: &RecordEntry) -> Option<Hash> {
    let InputKind::CheckpointTaken { checkpoint, .. } = &entry.input.kind else { return None };
    checkpoint.id.parse().ok()
}

/// Returns the session that stores the contents of a session's checkpoints. For a subagent, this is the root session
/// that the user started.
async fn owner_of_checkpoints(
    sessions: &Sessions,
    id: &SessionId,
    record: &Record,
) -> Result<SessionId, Failure> {
    let mut owner = id.clone();
    let Some(origin) = &record.header.subagent else { return Ok(owner) };
    let mut parent = Some(origin.parent.clone());
    for _ in 0..origin.depth {
        let Some(next) = parent else { break };
        let summary = sessions.store().summary(&next).await.or_failed("the session cannot be verified")?;
        parent = summary.and_then(|summary| summary.parent);
        owner = next;
    }
    Ok(owner)
}

/// Returns a head as `EPOCH:LINE:HASH`.
pub fn head_text(head: &Position) -> String {
    format!("{}:{}:{}", head.epoch, head.seq, head.hash)
}
