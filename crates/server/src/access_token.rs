//! Tokens of clients, with their scopes.

use std::sync::{Arc, PoisonError, RwLock};

use pintle_agent::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Prefix of every token, by which scanners find published tokens.
const TOKEN_PREFIX: &str = "pintle_";

/// Permission of a token. Scopes do not include one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
#[non_exhaustive]
pub enum TokenScope {
    /// Lists and reads sessions and tasks.
    Read,
    /// Creates sessions, sends messages, steers and cancels tasks, and stops work.
    Run,
    /// Decides on calls, and on gates of tasks.
    Approve,
    /// Deletes sessions.
    Admin,
}

impl TokenScope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Approve, Self::Admin];

    /// Returns the serialised name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// Stored form of a token, with its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AccessToken {
    /// Name of the token's owner. Records contain it with the owner's messages and decisions.
    pub name: String,
    /// BLAKE3 hash of the token, in hexadecimal.
    pub hash: String,
    /// Permissions.
    pub scopes: Vec<TokenScope>,
    /// Time at which the token expires; never if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Tenant whose sessions the token can access; sessions without a tenant if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// The operating system provides no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct TokenError;

impl AccessToken {
    /// Creates a token with these scopes. Returns its stored form and the token itself, which is shown only once.
    ///
    /// # Errors
    ///
    /// [`TokenError`].
    pub fn generate(
        name: impl Into<String>,
        scopes: impl Into<Vec<TokenScope>>,
    ) -> Result<(Self, String), TokenError> {
        let secret = TOKEN_PREFIX.to_owned() + &random_text()?;
        let token = Self {
            name: name.into(),
            hash: hash(&secret),
            scopes: scopes.into(),
            expires: None,
            tenant: None,
        };
        Ok((token, secret))
    }

    /// Sets the time at which the token expires.
    #[must_use]
    pub fn with_expiry(mut self, expires: Timestamp) -> Self {
        self.expires = Some(expires);
        self
    }

    /// Sets the tenant whose sessions the token can access.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }
}

/// Returns an unguessable random hexadecimal text.
pub(crate) fn random_text() -> Result<String, TokenError> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|_| TokenError)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

pub(crate) fn hash(secret: &str) -> String {
    blake3::hash(secret.as_bytes()).to_hex().to_string()
}

/// Tokens of a server. Cheap to clone; clones share the tokens.
#[derive(Clone, Debug, Default)]
pub struct AccessTokens(Arc<RwLock<Vec<AccessToken>>>);

impl AccessTokens {
    /// Creates a set of tokens.
    #[must_use]
    pub fn new(tokens: impl Into<Vec<AccessToken>>) -> Self {
        Self(Arc::new(RwLock::new(tokens.into())))
    }

    /// Replaces all tokens, from the next request on.
    pub fn set(&self, tokens: impl Into<Vec<AccessToken>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens.into();
    }

    /// Returns the stored form of this token, unless it has expired.
    pub(crate) fn find(&self, secret: &str, now: Timestamp) -> Option<AccessToken> {
        // The time of the comparison leaks nothing useful, because hashes of random tokens are compared.
        self.find_hash(&hash(secret), now)
    }

    /// Returns the token with this hash, unless it has expired.
    pub(crate) fn find_hash(&self, hash: &str, now: Timestamp) -> Option<AccessToken> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = tokens.iter().find(|token| token.hash == hash)?;
        found.expires.is_none_or(|expires| now < expires).then(|| found.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_until_they_expire_or_are_revoked() {
        let (token, secret) = AccessToken::generate("ann", [TokenScope::Read]).unwrap();
        assert!(!format!("{token:?}").contains(&secret), "only the hash is kept");
        let tokens = AccessTokens::new([token.clone().with_expiry(Timestamp::from_millis(100))]);
        assert!(tokens.find(&secret, Timestamp::from_millis(99)).is_some());
        assert!(tokens.find(&secret, Timestamp::from_millis(100)).is_none(), "it has expired");
        assert!(tokens.find("pintle_00", Timestamp::from_millis(0)).is_none());
        tokens.set([]);
        assert!(tokens.find(&secret, Timestamp::from_millis(0)).is_none(), "it was revoked");
    }
}
