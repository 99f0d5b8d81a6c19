//! A login of a person to a server.

use std::io;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::WWW_AUTHENTICATE;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource,
    CredentialStore as _, InMemoryCredentialStore, OAuthClientConfig,
};
use serde_json::{Value, json};

use super::authority::{issuer, manager};
use super::callback::{Answer, Callback};
use super::tokens::{ServerTokens, TokenStore};
use crate::diary::shortened;
use crate::http_client::{self, origin};
use crate::spec::HttpServer;

/// Characters of an authorization server's own words that a message has.
const MAX_TEXT: usize = 300;

/// Time for the request by which a server is asked how it authorizes.
const PROBE_TIME: Duration = Duration::from_secs(30);

/// Version of the protocol in which the server is asked.
const NEWEST: &str = "2026-07-28";

/// Reason why a login failed.
#[derive(Debug, thiserror::Error)]
#[error("the login to {server} failed: {what}")]
pub struct LoginError {
    server: String,
    kind: LoginErrorKind,
    what: String,
}

/// Kind of a [`LoginError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginErrorKind {
    /// The server asks for no login, or for one of a kind that is not known.
    NotAsked,
    /// The server or its authorization server cannot be reached, or what it says of itself cannot be used.
    Discovery,
    /// The authorization server does not register this client, and none was declared.
    Registration,
    /// The person or the authorization server refused.
    Denied,
    /// Nobody answered in time.
    TimedOut,
    /// The authorization server gave no token for its own answer.
    Exchange,
    /// No port of this machine is free to wait for the answer.
    Listener,
    /// The tokens cannot be loaded or kept.
    Store,
}

impl LoginError {
    fn new(server: &HttpServer, kind: LoginErrorKind, what: impl Into<String>) -> Self {
        Self { server: origin(server.parsed_url()), kind, what: what.into() }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> LoginErrorKind {
        self.kind
    }
}

/// Logs a person in to a server, and keeps the tokens in the store in place of earlier ones.
///
/// `open` gets the URL at which the person agrees, once, and shows or opens it without waiting. Their browser then returns to
/// a port of 127.0.0.1, on which this function listens until one answer with the right state has come, at most `timeout`.
/// Dropping the future ends the login; nothing listens afterwards and nothing is kept.
///
/// Scopes that the server has asked for since the last login are requested as well.
///
/// # Errors
///
/// [`LoginError`], whose [kind](LoginError::kind) says what failed. No message has a token or a code.
pub async fn login(
    server: &HttpServer,
    store: &dyn TokenStore,
    timeout: Duration,
    open: impl FnOnce(&str) + Send,
) -> Result<(), LoginError> {
    let failed = |kind, what: String| LoginError::new(server, kind, what);
    let earlier = store.load(server.url()).await.map_err(|error| unusable_store(server, &error))?;
    let mut manager =
        manager(server).await.map_err(|error| failed(LoginErrorKind::Discovery, words(&error)))?;
    let metadata = discover(server, &manager).await?;
    manager.set_metadata(metadata.clone());
    let callback =
        Callback::bind().await.map_err(|error| failed(LoginErrorKind::Listener, error.to_string()))?;
    let scopes = scopes(server, &manager, earlier.as_ref()).await;
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let secret = identify(server, &mut manager, &metadata, callback.redirect(), &scopes).await?;
    let kept = InMemoryCredentialStore::new();
    manager.set_credential_store(kept.clone());
    let url = manager.get_authorization_url(&scopes).await;
    let url = url.map_err(|error| failed(LoginErrorKind::Discovery, words(&error)))?;
    let answer = answer(server, callback, &url, timeout, open).await?;
    exchange(server, &manager, &url, answer).await?;
    let stored = kept.load().await.ok().flatten();
    let tokens = stored.and_then(|stored| ServerTokens::issued(&stored, secret, issuer(&metadata)));
    let tokens =
        tokens.ok_or_else(|| failed(LoginErrorKind::Exchange, "there is no token in the answer".into()))?;
    // A renewal that has begun with earlier tokens would write over these otherwise.
    let _lock = store.lock(server.url()).await.map_err(|error| unusable_store(server, &error))?;
    store.save(server.url(), &tokens).await.map_err(|error| unusable_store(server, &error))
}

fn unusable_store(server: &HttpServer, error: &io::Error) -> LoginError {
    LoginError::new(server, LoginErrorKind::Store, format!("the tokens cannot be kept: {error}"))
}

/// Returns what an error says. Where its text may have parts of an answer, which may be tokens or secrets, it is replaced.
fn words(error: &AuthError) -> String {
    let is_protocol = |text: &str| text.starts_with("Server returned error response");
    let is_unsafe = matches!(error, AuthError::TokenExchangeFailed(text) if !is_protocol(text))
        || matches!(error, AuthError::RegistrationFailed(text) if text.contains("analyze response error"));
    let text =
        if is_unsafe { "the authorization server gave no usable answer".into() } else { error.to_string() };
    shortened(&text, MAX_TEXT)
}

/// Asks the server how it authorizes, and finds its authorization server.
async fn discover(
    server: &HttpServer,
    manager: &AuthorizationManager,
) -> Result<AuthorizationMetadata, LoginError> {
    let failed = |kind, what: String| LoginError::new(server, kind, what);
    let challenge = challenge(server).await;
    let challenge =
        challenge.map_err(|why| failed(LoginErrorKind::Discovery, shortened(&why.to_string(), MAX_TEXT)))?;
    let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let resolved = resolved.map_err(|error| failed(LoginErrorKind::Discovery, words(&error)))?;
    // Without a refusal and without metadata, nothing says that the server knows logins.
    if challenge.is_none() && resolved.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return Err(failed(LoginErrorKind::NotAsked, "the server asks for no login".into()));
    }
    Ok(resolved.metadata)
}

/// Returns the header by which the server refuses a first request without a token; `None` if it refuses none. Some servers
/// let everybody complete the handshake.
async fn challenge(server: &HttpServer) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
    let url = server.parsed_url();
    let client = http_client::client(url, http_client::within_origin())?;
    for first in first_requests() {
        let method = first.get("method").and_then(Value::as_str).unwrap_or_default();
        let request = client
            .post(url.clone())
            .timeout(PROBE_TIME)
            .headers(server.headers().into_iter().collect())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-method", method)
            .header("mcp-protocol-version", NEWEST)
            .body(first.to_string());
        let response = request.send().await.map_err(|error| match http_client::refused_redirect(&error) {
            Some(reason) => Box::<dyn std::error::Error + Send + Sync>::from(reason),
            None => error.without_url().into(),
        })?;
        if response.status() == reqwest::StatusCode::UNAUTHORIZED {
            let header = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            return Ok(Some(header.unwrap_or_default().to_owned()));
        }
    }
    Ok(None)
}

/// Returns the requests that a server may refuse first.
fn first_requests() -> [Value; 2] {
    let client = json!({"name": "pintle", "version": env!("CARGO_PKG_VERSION")});
    ["server/discover", "tools/list"].map(|method| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": client,
        }}})
    })
}

/// Returns the scopes to request: the declared ones, or else those that the server names; and those that an earlier login
/// had and the server has found wanting.
async fn scopes(
    server: &HttpServer,
    manager: &AuthorizationManager,
    earlier: Option<&ServerTokens>,
) -> Vec<String> {
    let declared = &server.oauth().scopes;
    let mut scopes =
        if declared.is_empty() { manager.select_initial_scopes(&[]).await } else { declared.clone() };
    if let Some(earlier) = earlier.filter(|earlier| !earlier.wanted_scopes.is_empty()) {
        for scope in earlier.scopes.iter().chain(&earlier.wanted_scopes) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
    }
    scopes
}

/// Sets the client as which the login happens: the declared one, one that its URL describes, or a newly registered one.
/// Returns its secret.
async fn identify(
    server: &HttpServer,
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    redirect: &str,
    scopes: &[&str],
) -> Result<Option<String>, LoginError> {
    let failed = |error: AuthError| LoginError::new(server, LoginErrorKind::Registration, words(&error));
    let settings = server.oauth();
    let takes_url = metadata.additional_fields.get("client_id_metadata_document_supported");
    let described =
        settings.client_metadata_url.as_ref().filter(|_| takes_url.and_then(Value::as_bool) == Some(true));
    let Some(id) = settings.client_id.as_ref().or(described) else {
        let registered = manager.register_client("Pintle", redirect, scopes).await.map_err(failed)?;
        return Ok(registered.client_secret);
    };
    let mut client = OAuthClientConfig::new(id, redirect);
    client.client_secret = settings.client_secret.clone().filter(|_| settings.client_id.is_some());
    let secret = client.client_secret.clone();
    manager.configure_client(client).map_err(failed)?;
    Ok(secret)
}

/// Sends the person to the authorization server, and waits for its answer.
async fn answer(
    server: &HttpServer,
    callback: Callback,
    url: &str,
    timeout: Duration,
    open: impl FnOnce(&str) + Send,
) -> Result<Answer, LoginError> {
    let failed = |kind, what: String| LoginError::new(server, kind, what);
    let state = parameter(url, "state");
    let state = state.ok_or_else(|| failed(LoginErrorKind::Discovery, "the login has no state".into()))?;
    open(url);
    match tokio::time::timeout(timeout, callback.answer(&state)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(LoginErrorKind::Listener, error.to_string())),
        Err(_elapsed) => Err(failed(
            LoginErrorKind::TimedOut,
            format!("nobody answered within {} s", timeout.as_secs_f64()),
        )),
    }
}

/// Exchanges the answer for tokens, which the manager keeps.
async fn exchange(
    server: &HttpServer,
    manager: &AuthorizationManager,
    url: &str,
    answer: Answer,
) -> Result<(), LoginError> {
    let (code, from) = match answer {
        Answer::Code { code, issuer } => (code, issuer),
        Answer::Refused { error, description } => {
            let description = description.map(|text| format!(": {text}")).unwrap_or_default();
            let what = shortened(&format!("it was refused with {error}{description}"), MAX_TEXT);
            return Err(LoginError::new(server, LoginErrorKind::Denied, what));
        }
    };
    let state = parameter(url, "state").unwrap_or_default();
    let exchanged = manager.exchange_code_for_token_with_issuer(&code, &state, from.as_deref()).await;
    exchanged
        .map(|_tokens| ())
        .map_err(|error| LoginError::new(server, LoginErrorKind::Exchange, words(&error)))
}

fn parameter(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_answers_are_in_no_message() {
        let wrong = r#"invalid type: string "s3cret", expected a map"#;
        for error in [
            AuthError::TokenExchangeFailed(wrong.to_owned()),
            AuthError::RegistrationFailed(format!("analyze response error: {wrong}")),
        ] {
            assert_eq!(words(&error), "the authorization server gave no usable answer");
        }
        let refused =
            AuthError::TokenExchangeFailed("Server returned error response: invalid_grant".to_owned());
        assert!(words(&refused).ends_with("invalid_grant"));
    }
}
