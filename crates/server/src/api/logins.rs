//! Login sessions of browsers, identified by a cookie.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use pintle_agent::Timestamp;

use crate::access_token::{TokenError, hash, random_text};

/// Cookie of a page that has logged in. It contains no token and is invalid after a restart.
pub(super) const LOGIN_COOKIE: &str = "pintle_login";

/// Time after which a page has to log in again.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Maximum number of logins. New logins evict the oldest.
const MAX_LOGINS: usize = 10_000;

/// Logins of a server, by the hash of their cookie. They end with the server.
#[derive(Debug, Default)]
pub(crate) struct BrowserLogins(Mutex<HashMap<String, BrowserLogin>>);

#[derive(Clone, Debug)]
struct BrowserLogin {
    /// Hash of the token that was presented.
    token: String,
    /// Host name and port by which the page reached the server. Browsers send a cookie to all ports of a host.
    authority: String,
    started_at: Timestamp,
}

impl BrowserLogins {
    /// Starts a login for the token with this hash. Returns the value of the cookie.
    ///
    /// # Errors
    ///
    /// [`TokenError`].
    pub(super) fn start(&self, token: String, authority: &str, now: Timestamp) -> Result<String, TokenError> {
        let secret = random_text()?;
        let mut logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logins.retain(|_, login| now.since(login.started_at) < LIFETIME);
        if logins.len() >= MAX_LOGINS
            && let Some(oldest) =
                logins.iter().min_by_key(|(_, login)| login.started_at).map(|(key, _)| key.clone())
        {
            logins.remove(&oldest);
        }
        let authority = authority.to_ascii_lowercase();
        logins.insert(hash(&secret), BrowserLogin { token, authority, started_at: now });
        Ok(secret)
    }

    /// Returns the hash of the token for which a cookie was issued, if the login has the same authority.
    pub(super) fn token_hash(&self, cookie: &str, authority: &str, now: Timestamp) -> Option<String> {
        let logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let login = logins.get(&hash(cookie))?;
        let is_there =
            login.authority.eq_ignore_ascii_case(authority) && now.since(login.started_at) < LIFETIME;
        is_there.then(|| login.token.clone())
    }

    pub(super) fn end(&self, cookie: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash(cookie));
    }
}

/// Returns the value of the login cookie.
pub(super) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|value| value.split(';')).find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == LOGIN_COOKIE).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_holds_for_its_page_and_its_time() {
        let logins = BrowserLogins::default();
        let at = Timestamp::from_millis;
        let cookie = logins.start("t".to_owned(), "localhost:1", at(0)).unwrap();
        let end = i64::try_from(LIFETIME.as_millis()).unwrap();
        for (authority, now, is_valid) in [
            ("localhost:1", 0, true),
            ("LOCALHOST:1", end - 1, true),
            ("localhost:1", end, false),
            ("localhost:2", 0, false),
            ("127.0.0.1:1", 0, false),
        ] {
            assert_eq!(
                logins.token_hash(&cookie, authority, at(now)).is_some(),
                is_valid,
                "{authority} {now}"
            );
        }
        assert_eq!(logins.token_hash("other", "localhost:1", at(0)), None);
        logins.end(&cookie);
        assert_eq!(logins.token_hash(&cookie, "localhost:1", at(0)), None);
    }
}
