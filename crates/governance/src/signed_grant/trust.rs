//! Which signed grants an operator accepts.

use std::collections::BTreeSet;
use std::time::Duration;

use pintle_agent::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ChainError, PublicKey, SignedChain};
use crate::grant::Grant;

/// Keys and names that an operator pins. Without them no signed grant is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct GrantTrust {
    /// Keys that may issue the first grant of a chain.
    pub roots: BTreeSet<PublicKey>,
    /// Names of this server or store.
    pub audience: BTreeSet<String>,
    /// Names of the users that use it.
    pub subjects: BTreeSet<String>,
}

/// Mistake in the TOML form. It contains no line of the file, which could be a private key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid grant roots: {0}")]
pub struct GrantTrustError(String);

impl GrantTrust {
    /// How far the clock of an issuer may be ahead. The end of a window is exact.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

    /// Parses the TOML form.
    ///
    /// # Errors
    ///
    /// The mistake, such as an unknown key or a root that is not a public key.
    pub fn parse(text: &str) -> Result<Self, GrantTrustError> {
        toml::from_str(text).map_err(|error| GrantTrustError(error.message().to_owned()))
    }

    /// Verifies a chain, and returns the grant of its session: the last one, with the issuers and the text of the chain. Its
    /// window starts earlier by [`CLOCK_SKEW`](Self::CLOCK_SKEW).
    ///
    /// Revocations are not included, since they also apply to running sessions: see [`Revocations`](crate::Revocations).
    ///
    /// # Errors
    ///
    /// [`ChainError`].
    pub fn verify(&self, chain: &SignedChain, now: Timestamp) -> Result<Grant, ChainError> {
        let (first, last) = (&chain.grants.first().ok_or(ChainError::Empty)?.claims, &chain.last()?.claims);
        if !self.roots.contains(&first.issuer) {
            return Err(ChainError::Root(first.issuer));
        }
        if self.audience.is_disjoint(&last.audience) {
            let names: Vec<String> = last.audience.iter().map(|name| format!("`{name}`")).collect();
            return Err(ChainError::Audience(names.join(", ")));
        }
        if !self.subjects.contains(&last.subject) {
            return Err(ChainError::Subject(last.subject.clone()));
        }
        let mut grant = last.grant.clone();
        if let Some(start) = grant.window.not_before.filter(|start| now < with_skew(*start)) {
            return Err(ChainError::NotYet(start));
        }
        if let Some(end) = grant.window.not_after.filter(|end| *end <= now) {
            return Err(ChainError::Expired(end));
        }
        grant.window.not_before = grant.window.not_before.map(with_skew);
        grant.issuers = chain.grants.iter().map(|signed| signed.claims.issuer).collect();
        grant.chain = Some(chain.to_json());
        Ok(grant)
    }
}

/// Returns the start of a window for a clock that is behind the clock of the issuer.
fn with_skew(start: Timestamp) -> Timestamp {
    let skew = i64::try_from(GrantTrust::CLOCK_SKEW.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(start.as_millis().saturating_sub(skew))
}
