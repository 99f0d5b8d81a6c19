//! Grants that hold no longer.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::grant::{Grant, GrantId};

/// Revoked grants. Clones share them, and a revocation is in force at once.
#[derive(Clone, Debug, Default)]
pub struct Revocations(Arc<RwLock<Revoked>>);

#[derive(Debug, Default)]
struct Revoked {
    ids: BTreeSet<GrantId>,
    /// Lowest generation that holds.
    epoch: u64,
}

impl Revocations {
    /// Creates a list without revocations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Revokes a grant, and all that were attenuated from it.
    pub fn revoke(&self, id: GrantId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).ids.insert(id);
    }

    /// Revokes all grants of generations before `epoch`. A lower one than before changes nothing.
    pub fn revoke_before(&self, epoch: u64) {
        let mut revoked = self.0.write().unwrap_or_else(PoisonError::into_inner);
        revoked.epoch = revoked.epoch.max(epoch);
    }

    /// Returns whether a grant, or one that it was attenuated from, is revoked.
    #[must_use]
    pub fn contains(&self, grant: &Grant) -> bool {
        let revoked = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grant.epoch < revoked.epoch
            || [&grant.id].into_iter().chain(&grant.ancestors).any(|id| revoked.ids.contains(id))
    }
}
