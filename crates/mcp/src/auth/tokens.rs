//! Tokens of a server, and the store of an application for them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Seconds between the renewal of a token and its expiry; half of its life if that is shorter.
const RENEWED_BEFORE: u64 = 30;

/// Tokens of one server, with the data for their renewal. Their JSON form is a secret.
///
/// `Debug` shows scopes and the authorization server, but no secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTokens {
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    /// The authorization server that issued them. They are sent to no other server.
    pub(super) issuer: String,
    pub(super) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// Seconds since 1970 at which the access token is renewed. If absent, it is renewed after the server refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renew_at: Option<u64>,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// Scopes that the server has requested since the login. The next login requests them as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) wanted_scopes: Vec<String>,
}

/// Lock of the tokens of a server. Dropping it unlocks them.
pub type TokenLock = Box<dyn Send>;

/// Store of an application for the tokens of servers: a file that only its user can read, or a keychain.
///
/// Keys are the [URLs](crate::HttpServer::url) of servers. Errors become part of messages, so they must not repeat a token.
#[async_trait]
pub trait TokenStore: Send + Sync + 'static {
    /// Returns the tokens of a server; `None` if the store has none.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn load(&self, server: &str) -> io::Result<Option<ServerTokens>>;

    /// Stores the tokens of a server in place of earlier tokens.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    async fn save(&self, server: &str, tokens: &ServerTokens) -> io::Result<()>;

    /// Removes the tokens of a server, if there are any.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    async fn clear(&self, server: &str) -> io::Result<()>;

    /// Locks the tokens of a server while they are changed, so that no other process uses the same refresh token. Default: no
    /// lock, which suffices for one process.
    ///
    /// # Errors
    ///
    /// The lock cannot be taken.
    async fn lock(&self, _server: &str) -> io::Result<Option<TokenLock>> {
        Ok(None)
    }
}

const _: fn(&dyn TokenStore) = |_| {};

/// Keeps tokens in memory, until it is dropped.
#[derive(Default)]
pub struct MemoryTokens(Mutex<HashMap<String, ServerTokens>>);

impl MemoryTokens {
    fn update<T>(&self, change: impl FnOnce(&mut HashMap<String, ServerTokens>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl TokenStore for MemoryTokens {
    async fn load(&self, server: &str) -> io::Result<Option<ServerTokens>> {
        Ok(self.update(|kept| kept.get(server).cloned()))
    }

    async fn save(&self, server: &str, tokens: &ServerTokens) -> io::Result<()> {
        self.update(|kept| kept.insert(server.to_owned(), tokens.clone()));
        Ok(())
    }

    async fn clear(&self, server: &str) -> io::Result<()> {
        self.update(|kept| kept.remove(server));
        Ok(())
    }
}

impl fmt::Debug for MemoryTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTokens").field("servers", &self.update(|kept| kept.len())).finish()
    }
}

impl ServerTokens {
    /// Returns the scopes that were granted.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().map(String::as_str)
    }

    /// Returns the secrets in them, for an application that redacts its output.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let others = [self.refresh_token.as_deref(), self.client_secret.as_deref()];
        std::iter::once(self.access_token.as_str()).chain(others.into_iter().flatten())
    }

    /// Returns the tokens that an authorization server has issued; `None` without an access token.
    pub(super) fn issued(
        stored: &StoredCredentials,
        client_secret: Option<String>,
        issuer: String,
    ) -> Option<Self> {
        let issued = serde_json::to_value(stored.token_response.as_ref()?).ok()?;
        let text = |key: &str| issued.get(key).and_then(Value::as_str).map(str::to_owned);
        let life = issued.get("expires_in").and_then(Value::as_u64);
        Some(Self {
            client_id: stored.client_id.clone(),
            client_secret,
            issuer,
            access_token: text("access_token")?,
            refresh_token: text("refresh_token"),
            renew_at: life.map(|life| now() + life.saturating_sub(RENEWED_BEFORE).max(life / 2)),
            scopes: stored.granted_scopes.clone(),
            wanted_scopes: Vec::new(),
        })
    }

    /// Returns them in the form that a renewal requires.
    pub(super) fn to_stored(&self) -> Option<StoredCredentials> {
        let mut issued = json!({"access_token": self.access_token, "token_type": "bearer"});
        if let (Some(issued), Some(token)) = (issued.as_object_mut(), &self.refresh_token) {
            issued.insert("refresh_token".into(), json!(token));
        }
        let issued = serde_json::from_value(issued).ok()?;
        Some(StoredCredentials::new(self.client_id.clone(), Some(issued), self.scopes.clone(), None))
    }

    /// Returns whether they should be renewed now.
    pub(super) fn are_due(&self) -> bool {
        self.renew_at.is_some_and(|at| at <= now())
    }

    /// Adds scopes that the next login requests. Returns whether they are new.
    pub(super) fn add_scopes(&mut self, scopes: &str) -> bool {
        let before = self.wanted_scopes.len();
        for scope in scopes.split_whitespace() {
            if !self.wanted_scopes.iter().any(|wanted| wanted == scope) {
                self.wanted_scopes.push(scope.to_owned());
            }
        }
        self.wanted_scopes.len() > before
    }
}

impl fmt::Debug for ServerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTokens")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "tokens end at a time of the clock, across processes")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(life: u64) -> ServerTokens {
        let response = json!({
            "access_token": "s3cret", "refresh_token": "r3fresh", "token_type": "Bearer", "expires_in": life
        });
        let response = serde_json::from_value(response).unwrap();
        let stored = StoredCredentials::new("id".into(), Some(response), vec!["read".into()], None);
        ServerTokens::issued(&stored, Some("cl1ent".into()), "https://issuer".into()).unwrap()
    }

    #[test]
    fn no_secret_is_shown() {
        let kept = MemoryTokens::default();
        kept.update(|kept| kept.insert("https://server".into(), tokens(60)));
        let shown = format!("{:?} {:?} {kept:?}", tokens(60), tokens(60).to_stored());
        for secret in ["s3cret", "r3fresh", "cl1ent"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        let settings = crate::OAuthSettings::new().with_client_id("id").with_client_secret("cl1ent");
        assert!(!format!("{settings:?}").contains("cl1ent"));
    }

    #[test]
    fn tokens_are_kept_as_json_and_renewed_before_their_end() {
        let kept: ServerTokens =
            serde_json::from_str(&serde_json::to_string(&tokens(3600)).unwrap()).unwrap();
        assert!(!kept.are_due() && !tokens(2).are_due() && tokens(0).are_due());
        assert_eq!(kept.scopes().collect::<Vec<_>>(), ["read"]);
        assert_eq!(kept.secrets().collect::<Vec<_>>(), ["s3cret", "r3fresh", "cl1ent"]);
        let again = kept.to_stored().unwrap();
        assert_eq!(ServerTokens::issued(&again, None, String::new()).unwrap().access_token, "s3cret");
    }
}
