//! The tokens of one server in use: loading, renewal, and scopes to request.

use std::io;
use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore as _, InMemoryCredentialStore,
    OAuthClientConfig, WWWAuthenticateParams,
};
use tokio::sync::Mutex;

use super::oauth_http::OAuthHttp;
use super::tokens::{ServerTokens, TokenStore};
use crate::spec::HttpServer;

/// Tokens of one server, as a connection uses them.
pub(crate) struct TokenAuthority {
    server: HttpServer,
    store: Arc<dyn TokenStore>,
    /// Held during a change, so that the requests of one connection share it.
    renewing: Mutex<()>,
}

impl TokenAuthority {
    pub(crate) fn new(server: HttpServer, store: Arc<dyn TokenStore>) -> Self {
        Self { server, store, renewing: Mutex::default() }
    }

    /// Returns the access token, renewed if it expires soon; `None` without a token.
    pub(super) async fn token(&self) -> io::Result<Option<String>> {
        let Some(tokens) = self.store.load(self.server.url()).await? else { return Ok(None) };
        if !tokens.are_due() || tokens.refresh_token.is_none() {
            return Ok(Some(tokens.access_token));
        }
        match self.replace_token(&tokens.access_token).await {
            // The server decides whether it has expired.
            Err(_cannot_be_renewed) => Ok(Some(tokens.access_token)),
            renewed => renewed,
        }
    }

    /// Returns a replacement for an expired or refused token; `None` if a login is needed.
    ///
    /// # Errors
    ///
    /// The store fails, or the authorization server does not answer.
    pub(super) async fn replace_token(&self, refused: &str) -> io::Result<Option<String>> {
        let url = self.server.url();
        let _renewing = self.renewing.lock().await;
        let _lock = self.store.lock(url).await?;
        let Some(mut tokens) = self.store.load(url).await? else { return Ok(None) };
        if tokens.access_token != refused {
            return Ok(Some(tokens.access_token));
        }
        if tokens.refresh_token.is_none() {
            return Ok(None);
        }
        match self.renew(&tokens).await {
            Ok(Some(renewed)) => {
                self.store.save(url, &renewed).await?;
                Ok(Some(renewed.access_token))
            }
            Ok(None) => {
                // The server uses another authorization server now.
                self.store.clear(url).await?;
                Ok(None)
            }
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => {
                tokens.refresh_token = None;
                self.store.save(url, &tokens).await?;
                Ok(None)
            }
            Err(error) => Err(io::Error::other(format!("its token cannot be renewed: {error}"))),
        }
    }

    /// Renews tokens; `None` if the server now uses another authorization server than their issuer.
    async fn renew(&self, tokens: &ServerTokens) -> Result<Option<ServerTokens>, AuthError> {
        let mut manager = manager(&self.server).await?;
        let metadata = manager.resolve_metadata().await?.metadata;
        let issuer = issuer(&metadata);
        if issuer != tokens.issuer {
            return Ok(None);
        }
        manager.set_metadata(metadata);
        let mut client = OAuthClientConfig::new(&tokens.client_id, self.server.url());
        client.client_secret.clone_from(&tokens.client_secret);
        manager.configure_client(client)?;
        let kept = InMemoryCredentialStore::new();
        kept.save(tokens.to_stored().ok_or(AuthError::AuthorizationRequired)?).await?;
        manager.set_credential_store(kept.clone());
        manager.refresh_token().await?;
        let stored = kept.load().await?.ok_or(AuthError::AuthorizationRequired)?;
        let renewed = ServerTokens::issued(&stored, tokens.client_secret.clone(), issuer);
        let mut renewed = renewed.ok_or(AuthError::AuthorizationRequired)?;
        renewed.wanted_scopes.clone_from(&tokens.wanted_scopes);
        if renewed.refresh_token.is_none() {
            renewed.refresh_token.clone_from(&tokens.refresh_token);
        }
        Ok(Some(renewed))
    }

    /// Records the scopes that a server requests, so that the next login requests them.
    pub(super) async fn request_scopes(&self, challenge: &str) -> io::Result<()> {
        let challenge = WWWAuthenticateParams::parse(challenge, self.server.parsed_url());
        let Some(scope) = challenge.scope else { return Ok(()) };
        let url = self.server.url();
        // A renewal between loading and saving would be lost, and with it the only refresh token that is still valid.
        let _renewing = self.renewing.lock().await;
        let _lock = self.store.lock(url).await?;
        let Some(mut tokens) = self.store.load(url).await? else { return Ok(()) };
        if tokens.add_scopes(&scope) { self.store.save(url, &tokens).await } else { Ok(()) }
    }
}

/// Returns the client for the authorization server of a server.
pub(super) async fn manager(server: &HttpServer) -> Result<AuthorizationManager, AuthError> {
    let url = server.parsed_url();
    AuthorizationManager::new_with_oauth_http_client(url.clone(), Arc::new(OAuthHttp::new(url))).await
}

/// Returns the identity of an authorization server: its issuer, or else its token endpoint.
pub(super) fn issuer(metadata: &AuthorizationMetadata) -> String {
    metadata.issuer.clone().unwrap_or_else(|| metadata.token_endpoint.clone())
}
