//! Revoked grants.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::grant::{Grant, GrantId};

/// Revoked grants as plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RevokedGrants {
    /// Ids of revoked grants. Grants that were attenuated from them are revoked as well.
    #[serde(default)]
    pub ids: BTreeSet<GrantId>,
    /// All grants with a lower [epoch](Grant::epoch) are revoked; default 0, which revokes none.
    #[serde(default)]
    pub before_epoch: u64,
}

/// List of revoked grants that the application stores, such as a file that several processes share.
pub trait RevocationSource: fmt::Debug + Send + Sync {
    /// Returns the current list. Called for each call of a tool, so it must not block for long.
    ///
    /// # Errors
    ///
    /// The reason why the list cannot be read. No grant is in force then.
    fn revoked(&self) -> Result<RevokedGrants, String>;
}

/// Revoked grants. Clones share them, and a revocation takes effect immediately.
#[derive(Clone, Debug, Default)]
pub struct Revocations {
    revoked: Arc<RwLock<RevokedGrants>>,
    source: Option<Arc<dyn RevocationSource>>,
}

impl Revocations {
    /// Creates a list without revocations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the revocations of a source, which is read again for each call.
    #[must_use]
    pub fn with_source(mut self, source: impl RevocationSource + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Revokes a grant, and all grants that were attenuated from it.
    pub fn revoke(&self, id: GrantId) {
        self.revoked.write().unwrap_or_else(PoisonError::into_inner).ids.insert(id);
    }

    /// Revokes all grants with a lower epoch. A lower `epoch` than in an earlier call has no effect.
    pub fn revoke_before(&self, epoch: u64) {
        let mut revoked = self.revoked.write().unwrap_or_else(PoisonError::into_inner);
        revoked.before_epoch = revoked.before_epoch.max(epoch);
    }

    /// Returns why a grant is not in force: the grant or one of its ancestors is revoked, or the source cannot be read.
    /// `None` if it is in force.
    #[must_use]
    pub fn objection(&self, grant: &Grant) -> Option<String> {
        let was_revoked = || Some(format!("grant {} was revoked", grant.id));
        if self.revoked.read().unwrap_or_else(PoisonError::into_inner).contains(grant) {
            return was_revoked();
        }
        match self.source.as_ref()?.revoked() {
            Ok(revoked) if revoked.contains(grant) => was_revoked(),
            Ok(_) => None,
            Err(reason) => Some(format!("the list of revoked grants cannot be read: {reason}")),
        }
    }
}

impl RevokedGrants {
    fn contains(&self, grant: &Grant) -> bool {
        grant.epoch < self.before_epoch
            || [&grant.id].into_iter().chain(&grant.ancestors).any(|id| self.ids.contains(id))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Debug)]
    struct Shared(Arc<Mutex<Result<RevokedGrants, String>>>);

    impl RevocationSource for Shared {
        fn revoked(&self) -> Result<RevokedGrants, String> {
            self.0.lock().unwrap().clone()
        }
    }

    #[test]
    fn a_source_revokes_at_once_and_no_grant_holds_without_it() {
        let shared = Shared(Arc::new(Mutex::new(Ok(RevokedGrants::default()))));
        let revocations = Revocations::new().with_source(shared.clone());
        let mut grant = Grant::all(GrantId::new("child"));
        grant.ancestors = vec![GrantId::new("parent")];
        grant.epoch = 4;
        for (revoked, expected) in [
            (Ok((&[][..], 0)), None),
            (Ok((&["other"], 4)), None),
            (Ok((&["parent"], 0)), Some("grant child was revoked")),
            (Ok((&["child"], 0)), Some("grant child was revoked")),
            (Ok((&[], 5)), Some("grant child was revoked")),
            (Err("no disk"), Some("the list of revoked grants cannot be read: no disk")),
        ] {
            let list = |(ids, before_epoch): (&[&str], u64)| RevokedGrants {
                ids: ids.iter().map(|id| GrantId::new(*id)).collect(),
                before_epoch,
            };
            *shared.0.lock().unwrap() = revoked.map(list).map_err(str::to_owned);
            assert_eq!(revocations.objection(&grant).as_deref(), expected, "{revoked:?}");
        }
    }
}
