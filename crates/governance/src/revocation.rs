//! Revoked grants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::grant::{Grant, GrantId};
use crate::signing_key::PublicKey;

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
    /// Keys, each with the epoch below which the grants that it signed are revoked, with all their attenuations. Every signed
    /// grant has a lower epoch than [`ALL_EPOCHS`](Self::ALL_EPOCHS).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub issuers: BTreeMap<PublicKey, u64>,
    /// Roots that are pinned now; `None` if the source has none. A signed grant of another root is not in force.
    #[serde(skip)]
    pub pinned_roots: Option<BTreeSet<PublicKey>>,
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
        if let Some(objection) = self.revoked.read().unwrap_or_else(PoisonError::into_inner).objection(grant)
        {
            return Some(objection);
        }
        match self.source.as_ref()?.revoked() {
            Ok(revoked) => revoked.objection(grant),
            Err(reason) => Some(format!("the list of revoked grants cannot be read: {reason}")),
        }
    }
}

impl RevokedGrants {
    /// Epoch that is above the epoch of every signed grant.
    pub const ALL_EPOCHS: u64 = u64::MAX;

    /// Returns why a grant is not in force; `None` if it is in force.
    #[must_use]
    pub fn objection(&self, grant: &Grant) -> Option<String> {
        if self.contains(grant) {
            return Some(format!("grant {} was revoked", grant.id));
        }
        let root = grant.issuers.first()?;
        let is_pinned = self.pinned_roots.as_ref().is_none_or(|roots| roots.contains(root));
        (!is_pinned).then(|| format!("the root of grant {} is not pinned any more", grant.id))
    }

    fn contains(&self, grant: &Grant) -> bool {
        let by_issuer = |key: &PublicKey| self.issuers.get(key).is_some_and(|before| grant.epoch < *before);
        grant.epoch < self.before_epoch
            || grant.issuers.iter().any(by_issuer)
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
                ..RevokedGrants::default()
            };
            *shared.0.lock().unwrap() = revoked.map(list).map_err(str::to_owned);
            assert_eq!(revocations.objection(&grant).as_deref(), expected, "{revoked:?}");
        }
    }

    #[test]
    fn signed_grants_are_revoked_by_issuer_and_generation_and_with_their_root() {
        let key = |digit: &str| format!("ed25519:{}", digit.repeat(64)).parse::<PublicKey>().unwrap();
        let mut signed = Grant::all(GrantId::new("g"));
        signed.issuers = vec![key("1"), key("2")];
        signed.epoch = 3;
        let unsigned = Grant::all(GrantId::new("g"));
        let revoked = Some("grant g was revoked");
        for (issuers, roots, expected) in [
            (vec![], None, None),
            (vec![(key("1"), 3)], None, None),
            (vec![(key("1"), 4)], None, revoked),
            (vec![(key("2"), RevokedGrants::ALL_EPOCHS)], None, revoked),
            (vec![(key("3"), RevokedGrants::ALL_EPOCHS)], None, None),
            (vec![], Some(vec![key("1")]), None),
            (vec![], Some(vec![key("2")]), Some("the root of grant g is not pinned any more")),
            (vec![], Some(vec![]), Some("the root of grant g is not pinned any more")),
        ] {
            let mut list =
                RevokedGrants { issuers: issuers.into_iter().collect(), ..RevokedGrants::default() };
            list.pinned_roots = roots.map(|roots| roots.into_iter().collect());
            let source = Shared(Arc::new(Mutex::new(Ok(list.clone()))));
            let revocations = Revocations::new().with_source(source);
            assert_eq!(revocations.objection(&signed).as_deref(), expected, "{list:?}");
            assert_eq!(revocations.objection(&unsigned), None, "{list:?}");
        }
    }
}
