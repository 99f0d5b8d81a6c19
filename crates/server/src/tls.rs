//! Certificates of a server, which can be replaced while it runs.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Name of HTTP/2 in a TLS handshake (ALPN).
pub(crate) const HTTP2: &[u8] = b"h2";

/// Certificate chain and private key of a server. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct TlsIdentity(Arc<RwLock<Arc<CertifiedKey>>>);

/// Reason why a certificate and a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no PEM certificate, or a certificate is damaged.
    #[error("expected certificates in PEM: {0}")]
    Certificates(String),
    /// There is no PEM private key, or it is damaged.
    #[error("expected a private key in PEM: {0}")]
    Key(String),
    /// The key is of an unknown kind or does not match the certificate.
    #[error("the private key cannot be used with the certificate")]
    Mismatch(#[source] rustls::Error),
}

impl TlsIdentity {
    /// Reads the chain of certificates, with the server's certificate first, and its private key, both in PEM.
    ///
    /// # Errors
    ///
    /// [`TlsError`].
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(load_certified_key(certificates, key)?))))
    }

    /// Replaces the certificates and the key, from the next connection on.
    ///
    /// # Errors
    ///
    /// [`TlsError`]. The previous certificates and key then stay in use.
    pub fn set(&self, certificates: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let certified = load_certified_key(certificates, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = certified;
        Ok(())
    }

    pub(crate) fn config(&self) -> Result<Arc<rustls::ServerConfig>, rustls::Error> {
        let builder = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn load_certified_key(certificates: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.map_err(|error| TlsError::Certificates(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::Certificates("no certificate found".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
    certified.map(Arc::new).map_err(TlsError::Mismatch)
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for TlsIdentity {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}
