//! Signed grants: authority that verifies offline, from a pinned key to the session.

mod canonical;
mod error;
#[cfg(test)]
mod tests;
mod trust;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::canonical::UnsignableNumber;
pub use self::error::ChainError;
pub use self::trust::{GrantTrust, GrantTrustError};
use crate::grant::{Axis, Grant};
use crate::signing_key::{PrivateKey, PublicKey};

/// Type of a signed text, so that no signature of the same key for another purpose is one of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClaimsKind {
    SignedGrant,
}

/// Parties of a signed grant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantRecipient {
    /// User that may use it.
    pub subject: String,
    /// Key that may attenuate it; `None` if it cannot be attenuated.
    pub holder: Option<PublicKey>,
    /// Servers and stores that accept it.
    pub audience: BTreeSet<String>,
}

impl GrantRecipient {
    /// Creates a recipient that cannot attenuate the grant.
    #[must_use]
    pub fn new<T: Into<String>>(subject: impl Into<String>, audience: impl IntoIterator<Item = T>) -> Self {
        let audience = audience.into_iter().map(Into::into).collect();
        Self { subject: subject.into(), holder: None, audience }
    }

    /// Allows the holder of a key to attenuate the grant.
    #[must_use]
    pub fn with_holder(mut self, holder: PublicKey) -> Self {
        self.holder = Some(holder);
        self
    }
}

/// Contents of a signed grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GrantClaims {
    kind: ClaimsKind,
    /// Key that signs it.
    pub issuer: PublicKey,
    /// User that may use it.
    pub subject: String,
    /// Key that may attenuate it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<PublicKey>,
    /// Servers and stores that accept it.
    pub audience: BTreeSet<String>,
    /// Id, generation, window, scopes, effect ceiling, budget and delegation.
    pub grant: Grant,
}

/// Signed grant of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SignedGrant {
    /// Contents.
    pub claims: GrantClaims,
    /// Ed25519 signature of the canonical JSON of the contents, as 128 hexadecimal digits.
    pub signature: String,
}

/// Chain of signed grants, from the grant of a root to its last attenuation.
///
/// The canonical JSON (RFC 8785) of the claims is signed, without fields that have their default and with times in UTC with
/// milliseconds. So the same claims have one signed text. Each further grant is signed by the holder of its predecessor, and is
/// valid only if it allows nothing that the predecessor does not allow. Each of them may spend the whole budget of its
/// predecessor: sessions under different attenuations share no counter.
///
/// Every value of this type has valid signatures and only narrows. Whether its root, its audience, its subject and its time are
/// accepted is the decision of a [`GrantTrust`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignedChain {
    version: u32,
    grants: Vec<SignedGrant>,
}

/// Chain whose signatures are not verified yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedChain {
    version: u32,
    grants: Vec<SignedGrant>,
}

impl SignedChain {
    /// Version of the form.
    pub const VERSION: u32 = 1;

    /// Maximum length of its text, in bytes.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// Maximum number of grants.
    pub const MAX_GRANTS: usize = 16;

    /// Issues a grant as the first of a chain.
    ///
    /// # Errors
    ///
    /// [`ChainError`] if the grant is not one that verifies.
    pub fn issue(key: &PrivateKey, recipient: GrantRecipient, grant: Grant) -> Result<Self, ChainError> {
        let first = SignedGrant::sign(key, recipient, grant)?;
        Self { version: Self::VERSION, grants: vec![first] }.checked()
    }

    /// Adds an attenuation, which the holder of the last grant signs. `grant` needs neither ancestors nor an epoch.
    ///
    /// # Errors
    ///
    /// [`ChainError`] if the key is not the holder's, or if the grant would allow more than the last one.
    pub fn attenuate(
        &self,
        key: &PrivateKey,
        recipient: GrantRecipient,
        grant: Grant,
    ) -> Result<Self, ChainError> {
        let last = &self.last()?.claims.grant;
        let position = self.grants.len() + 1;
        let grant = last
            .attenuate(grant)
            .map_err(|exceeded| ChainError::Exceeds { position, axis: exceeded.axis })?;
        let mut chain = self.clone();
        chain.grants.push(SignedGrant::sign(key, recipient, grant)?);
        chain.checked()
    }

    /// Parses the JSON form, and verifies the chain without its root: signatures, holders and attenuations.
    ///
    /// # Errors
    ///
    /// [`ChainError`].
    pub fn parse(text: &str) -> Result<Self, ChainError> {
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        check_size(text)?;
        // The version comes first, since the other fields depend on it.
        let Version { version } = serde_json::from_str(text).map_err(ChainError::Form)?;
        if version != u64::from(Self::VERSION) {
            return Err(ChainError::Version { found: version });
        }
        let UncheckedChain { version, grants } = serde_json::from_str(text).map_err(ChainError::Form)?;
        let chain = Self { version, grants };
        chain.check()?;
        Ok(chain)
    }

    /// Returns whether a text has the outer form of a chain. Everything else is an unsigned grant or an error.
    #[must_use]
    pub fn is_form_of(text: &str) -> bool {
        #[derive(Deserialize)]
        struct Outer {
            #[serde(rename = "grants")]
            _grants: serde::de::IgnoredAny,
        }
        serde_json::from_str::<Outer>(text).is_ok()
    }

    /// Returns its JSON form.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Every value of a grant has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the grants, that of the root first.
    #[must_use]
    pub fn grants(&self) -> &[SignedGrant] {
        &self.grants
    }

    fn last(&self) -> Result<&SignedGrant, ChainError> {
        self.grants.last().ok_or(ChainError::Empty)
    }

    /// Returns the chain if it verifies and its text is not too long.
    fn checked(self) -> Result<Self, ChainError> {
        self.check()?;
        check_size(&self.to_json())?;
        Ok(self)
    }

    fn check(&self) -> Result<(), ChainError> {
        if self.grants.len() > Self::MAX_GRANTS {
            return Err(ChainError::TooLong { grants: self.grants.len() });
        }
        let first = self.grants.first().ok_or(ChainError::Empty)?;
        if !first.claims.grant.ancestors.is_empty() {
            return Err(ChainError::Ancestors);
        }
        let mut issuers = BTreeSet::new();
        for (index, signed) in self.grants.iter().enumerate() {
            let position = index + 1;
            if !issuers.insert(signed.claims.issuer) {
                return Err(ChainError::Loop { position });
            }
            signed.check(position)?;
            if let Some(parent) = index.checked_sub(1).and_then(|before| self.grants.get(before)) {
                signed.claims.check_below(&parent.claims, position)?;
            }
        }
        Ok(())
    }
}

impl SignedGrant {
    fn sign(key: &PrivateKey, recipient: GrantRecipient, grant: Grant) -> Result<Self, ChainError> {
        let GrantRecipient { subject, holder, audience } = recipient;
        let issuer = key.public();
        let claims = GrantClaims { kind: ClaimsKind::SignedGrant, issuer, subject, holder, audience, grant };
        let signature = key.sign(claims.signed_text()?.as_bytes());
        Ok(Self { claims, signature })
    }

    /// Checks a grant without the rest of its chain.
    fn check(&self, position: usize) -> Result<(), ChainError> {
        let GrantClaims { issuer, subject, audience, grant, .. } = &self.claims;
        if !issuer.verifies(self.claims.signed_text()?.as_bytes(), &self.signature) {
            return Err(ChainError::Signature { position });
        }
        if subject.is_empty() || audience.is_empty() || audience.contains("") {
            return Err(ChainError::NoParty { position });
        }
        // The verification of a chain adds these fields.
        if !grant.issuers.is_empty() || grant.chain.is_some() || grant.version != Grant::VERSION {
            return Err(ChainError::Exceeds { position, axis: Axis::Form });
        }
        grant.check().map_err(|source| ChainError::Grant { position, source })
    }
}

impl GrantClaims {
    /// Returns the text that is signed.
    fn signed_text(&self) -> Result<String, ChainError> {
        let value = serde_json::to_value(self).map_err(ChainError::Form)?;
        Ok(canonical::canonical_json(&value)?)
    }

    /// Checks that the holder of the parent issued these claims, and that they allow nothing more.
    fn check_below(&self, parent: &Self, position: usize) -> Result<(), ChainError> {
        if parent.holder != Some(self.issuer) {
            return Err(ChainError::Holder { position });
        }
        if !self.audience.is_subset(&parent.audience) {
            return Err(ChainError::WiderAudience { position });
        }
        let (wide, narrow) = (&parent.grant, &self.grant);
        let is_direct = narrow.ancestors.len() == wide.ancestors.len() + 1;
        // Unlike a subagent, the recipient has no session of the parent's.
        let is_session_kept = wide.session.is_none() || narrow.session == wide.session;
        let axis = match wide.exceeded_by(narrow) {
            None if !is_direct => Some(Axis::Form),
            None if !is_session_kept => Some(Axis::Session),
            exceeded => exceeded,
        };
        axis.map_or(Ok(()), |axis| Err(ChainError::Exceeds { position, axis }))
    }
}

fn check_size(text: &str) -> Result<(), ChainError> {
    match text.len() {
        bytes if bytes > SignedChain::MAX_BYTES => Err(ChainError::Size { bytes }),
        _ => Ok(()),
    }
}
