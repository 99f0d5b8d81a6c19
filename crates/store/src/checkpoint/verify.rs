//! Verification of checkpoints.

use std::collections::HashSet;

use super::{CheckpointError, Manifest};
use crate::blob::Blobs;
use crate::error::StoreError;
use crate::hash::Hash;

/// Result of [`verify`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifiedCheckpoints {
    /// Number of checkpoints that can be restored completely.
    pub intact: u64,
    /// Number of contents that are intact.
    pub contents: u64,
    /// Checkpoints that cannot be restored completely, each with its first problem.
    pub problems: Vec<(Hash, CheckpointError)>,
}

/// Verifies checkpoints and all the contents that they need, in bounded memory: one manifest and one content at once.
///
/// # Errors
///
/// [`CheckpointError::Store`] if the store cannot be read. A damaged, removed or unreadable value is a result.
pub async fn verify(
    blobs: &dyn Blobs,
    checkpoints: impl IntoIterator<Item = Hash>,
) -> Result<VerifiedCheckpoints, CheckpointError> {
    let mut result = VerifiedCheckpoints::default();
    let (mut right, mut seen) = (HashSet::new(), HashSet::new());
    for id in checkpoints {
        if !seen.insert(id) {
            continue;
        }
        match verify_one(blobs, &id, &mut right).await {
            Ok(()) => result.intact += 1,
            Err(CheckpointError::Store(error)) if !matches!(error, StoreError::DamagedBlob(_)) => {
                return Err(error.into());
            }
            Err(problem) => result.problems.push((id, problem)),
        }
    }
    result.contents = right.len() as u64;
    Ok(result)
}

async fn verify_one(blobs: &dyn Blobs, id: &Hash, right: &mut HashSet<Hash>) -> Result<(), CheckpointError> {
    let manifest = Manifest::load(blobs, id).await?;
    for hash in manifest.blobs() {
        if !right.contains(&hash) {
            blobs.get(&hash).await?.ok_or(CheckpointError::Removed(hash))?;
            right.insert(hash);
        }
    }
    Ok(())
}
