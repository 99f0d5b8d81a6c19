//! A login of a user to a server.

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
use super::callback::{AuthorizationAnswer, RedirectListener};
use super::tokens::{ServerTokens, TokenStore};
use crate::http_client::{self, origin};
use crate::process_log::shorten;
use crate::spec::HttpServer;

/// Maximum number of characters of an authorization server's text in a message.
const MAX_TEXT: usize = 300;

/// Time for the request that discovers how a server authorizes.
const PROBE_TIME: Duration = Duration::from_secs(30);

/// Version of the protocol of that request.
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
    /// The server requires no login, or a login of an unknown kind.
    NotAsked,
    /// The server or its authorization server cannot be reached, or its metadata is invalid.
    Discovery,
    /// The authorization server does not register this client, and no client was declared.
    Registration,
    /// The user or the authorization server refused.
    Denied,
    /// No answer arrived in time.
    TimedOut,
    /// The authorization server issued no token for its own answer.
    Exchange,
    /// No port of this machine is free to wait for the answer.
    Listener,
    /// The tokens cannot be loaded or stored.
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

/// Logs a user in to a server. The new tokens replace earlier tokens in the store.
///
/// `open` receives the URL at which the user agrees, once, and shows or opens it without waiting. The user's browser then
/// returns to a port of 127.0.0.1. This function listens there until an answer with the right state arrives, for at most
/// `timeout`. Dropping the future ends the login: the port is closed and nothing is stored.
///
/// The login also requests the scopes that the server has requested since the last login.
///
/// # Errors
///
/// [`LoginError`], whose [kind](LoginError::kind) is the step that failed. No message contains a token or a code.
pub async fn login(
    server: &HttpServer,
    store: &dyn TokenStore,
    timeout: Duration,
    open: impl FnOnce(&str) + Send,
) -> Result<(), LoginError> {
    let failed = |kind, what: String| LoginError::new(server, kind, what);
    let earlier = store.load(server.url()).await.map_err(|error| unusable_store(server, &error))?;
    let mut manager =
        manager(server).await.map_err(|error| failed(LoginErrorKind::Discovery, error_text(&error)))?;
    let metadata = discover(server, &manager).await?;
    manager.set_metadata(metadata.clone());
    let callback = RedirectListener::bind()
        .await
        .map_err(|error| failed(LoginErrorKind::Listener, error.to_string()))?;
    let scopes = scopes(server, &manager, earlier.as_ref()).await;
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let secret = identify(server, &mut manager, &metadata, callback.redirect(), &scopes).await?;
    let kept = InMemoryCredentialStore::new();
    manager.set_credential_store(kept.clone());
    let url = manager.get_authorization_url(&scopes).await;
    let url = url.map_err(|error| failed(LoginErrorKind::Discovery, error_text(&error)))?;
    let answer = answer(server, callback, &url, timeout, open).await?;
    exchange(server, &manager, &url, answer).await?;
    let stored = kept.load().await.ok().flatten();
    let tokens = stored.and_then(|stored| ServerTokens::issued(&stored, secret, issuer(&metadata)));
    let tokens =
        tokens.ok_or_else(|| failed(LoginErrorKind::Exchange, "there is no token in the answer".into()))?;
    // Otherwise, a running renewal of earlier tokens could overwrite these.
    let _lock = store.lock(server.url()).await.map_err(|error| unusable_store(server, &error))?;
    store.save(server.url(), &tokens).await.map_err(|error| unusable_store(server, &error))
}

fn unusable_store(server: &HttpServer, error: &io::Error) -> LoginError {
    LoginError::new(server, LoginErrorKind::Store, format!("the tokens cannot be kept: {error}"))
}

/// Returns the text of an error. A text that may contain parts of an answer is replaced: these may be tokens or secrets.
fn error_text(error: &AuthError) -> String {
    let is_protocol = |text: &str| text.starts_with("Server returned error response");
    let is_unsafe = matches!(error, AuthError::TokenExchangeFailed(text) if !is_protocol(text))
        || matches!(error, AuthError::RegistrationFailed(text) if text.contains("analyze response error"));
    let text =
        if is_unsafe { "the authorization server gave no usable answer".into() } else { error.to_string() };
    shorten(&text, MAX_TEXT)
}

/// Discovers how the server authorizes, and its authorization server.
async fn discover(
    server: &HttpServer,
    manager: &AuthorizationManager,
) -> Result<AuthorizationMetadata, LoginError> {
    let failed = |kind, what: String| LoginError::new(server, kind, what);
    let challenge = challenge(server).await;
    let challenge =
        challenge.map_err(|why| failed(LoginErrorKind::Discovery, shorten(&why.to_string(), MAX_TEXT)))?;
    let resolved = manager.resolve_metadata_from_challenge(challenge.as_deref()).await;
    let resolved = resolved.map_err(|error| failed(LoginErrorKind::Discovery, error_text(&error)))?;
    // Without a refusal and without metadata, nothing indicates that the server supports logins.
    if challenge.is_none() && resolved.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return Err(failed(LoginErrorKind::NotAsked, "the server asks for no login".into()));
    }
    Ok(resolved.metadata)
}

/// Returns the header of the server's refusal of a first request without a token; `None` if it refuses no request. Some
/// servers complete the handshake with any client.
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

/// Returns the first requests, which a server may refuse.
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

/// Returns the scopes to request: the declared scopes, or else the scopes that the server names. If the server has
/// requested further scopes since the earlier login, the scopes of that login and the further scopes are added.
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

/// Sets the client of the login: the declared client, the client that its URL describes, or a newly registered client.
/// Returns its secret.
async fn identify(
    server: &HttpServer,
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    redirect: &str,
    scopes: &[&str],
) -> Result<Option<String>, LoginError> {
    let failed = |error: AuthError| LoginError::new(server, LoginErrorKind::Registration, error_text(&error));
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

/// Sends the user to the authorization server, and waits for its answer.
async fn answer(
    server: &HttpServer,
    callback: RedirectListener,
    url: &str,
    timeout: Duration,
    open: impl FnOnce(&str) + Send,
) -> Result<AuthorizationAnswer, LoginError> {
    let failed = |kind, what: String| LoginError::new(server, kind, what);
    let state = parameter(url, "state");
    let state = state.ok_or_else(|| failed(LoginErrorKind::Discovery, "the login has no state".into()))?;
    open(url);
    match tokio::time::timeout(timeout, callback.answer(&state)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(LoginErrorKind::Listener, error.to_string())),
        Err(_elapsed) => {
            Err(failed(LoginErrorKind::TimedOut, format!("no answer within {} s", timeout.as_secs_f64())))
        }
    }
}

/// Exchanges the answer for tokens, which the manager stores.
async fn exchange(
    server: &HttpServer,
    manager: &AuthorizationManager,
    url: &str,
    answer: AuthorizationAnswer,
) -> Result<(), LoginError> {
    let (code, from) = match answer {
        AuthorizationAnswer::Code { code, issuer } => (code, issuer),
        AuthorizationAnswer::Refused { error, description } => {
            let description = description.map(|text| format!(": {text}")).unwrap_or_default();
            let what = shorten(&format!("it was refused with {error}{description}"), MAX_TEXT);
            return Err(LoginError::new(server, LoginErrorKind::Denied, what));
        }
    };
    let state = parameter(url, "state").unwrap_or_default();
    let exchanged = manager.exchange_code_for_token_with_issuer(&code, &state, from.as_deref()).await;
    exchanged
        .map(|_tokens| ())
        .map_err(|error| LoginError::new(server, LoginErrorKind::Exchange, error_text(&error)))
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
            assert_eq!(error_text(&error), "the authorization server gave no usable answer");
        }
        let refused =
            AuthError::TokenExchangeFailed("Server returned error response: invalid_grant".to_owned());
        assert!(error_text(&refused).ends_with("invalid_grant"));
    }
}
