//! Authentication of clients by the application that embeds the server.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
pub use axum::http::request::Parts as RequestParts;

use crate::access_token::{AccessTokens, TokenScope};

/// Authenticates the requests of a server in place of [`AccessTokens`]. Implemented by embedding applications.
///
/// A closure from the head of a request to an optional [`ClientIdentity`] is an authenticator. Middleware of the application
/// can authenticate a request earlier and insert the result into its extensions.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Returns the sender of a request; `None` if the sender is unknown, which is refused with the status 401. Called for
    /// each request, and dropped when the client disconnects.
    async fn authenticate(&self, request: &RequestParts) -> Option<ClientIdentity>;
}

#[async_trait]
impl<F: Fn(&RequestParts) -> Option<ClientIdentity> + Send + Sync> Authenticator for F {
    async fn authenticate(&self, request: &RequestParts) -> Option<ClientIdentity> {
        self(request)
    }
}

/// Sender of a request, as the application has authenticated it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientIdentity {
    /// Name of the principal. Records contain it with the principal's messages and decisions.
    pub name: String,
    /// Permissions.
    pub scopes: Vec<TokenScope>,
    /// Tenant whose sessions the client can access; sessions without a tenant if `None`.
    pub tenant: Option<String>,
}

impl ClientIdentity {
    /// Creates the identity of a principal with these scopes, without a tenant.
    #[must_use]
    pub fn new(name: impl Into<String>, scopes: impl Into<Vec<TokenScope>>) -> Self {
        Self { name: name.into(), scopes: scopes.into(), tenant: None }
    }

    /// Sets the tenant whose sessions the client can access.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }
}

/// How a server authenticates its clients.
#[derive(Clone)]
pub(crate) enum Authentication {
    /// Every client that can connect has all scopes, as on a socket of one user.
    Open,
    /// Clients present tokens.
    Tokens(AccessTokens),
    /// The application authenticates its clients.
    Application(Arc<dyn Authenticator>),
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::Tokens(_) => "Tokens",
            Self::Application(_) => "Application",
        })
    }
}
