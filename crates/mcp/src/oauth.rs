//! Login settings in a server's declaration.

use std::fmt;

use pintle_env::setters;

/// Settings for the logins to one server. By default, the client registers itself and requests the scopes that the server
/// names.
///
/// `Debug` shows no secret.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OAuthSettings {
    /// Identifier of a client that is registered with the authorization server. Default: the client registers itself.
    pub client_id: Option<String>,
    /// Secret of that client. Default: none.
    pub client_secret: Option<String>,
    /// HTTPS URL of a document that describes the client, which serves as its identifier with authorization servers that
    /// accept one. Default: none.
    pub client_metadata_url: Option<String>,
    /// Scopes to request in place of the server's scopes. Default: the server's scopes.
    pub scopes: Vec<String>,
}

impl OAuthSettings {
    /// Creates settings without any client or scope.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the identifier of a registered client.
        pub fn with_client_id(id: impl Into<String>) => client_id = Some(id.into());
        /// Sets the secret of the registered client.
        pub fn with_client_secret(secret: impl Into<String>) => client_secret = Some(secret.into());
        /// Sets the HTTPS URL of a document that describes the client.
        pub fn with_client_metadata_url(url: impl Into<String>) => client_metadata_url = Some(url.into());
        /// Sets the scopes to request.
        pub fn with_scopes(scopes: Vec<String>) => scopes = scopes;
    }
}

impl fmt::Debug for OAuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthSettings")
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.as_ref().map(|_| "…"))
            .field("client_metadata_url", &self.client_metadata_url)
            .field("scopes", &self.scopes)
            .finish()
    }
}
