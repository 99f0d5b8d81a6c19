//! Keys of the engines whose requests a worker accepts.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use restate_sdk::endpoint::Endpoint;
use ring::signature::{ED25519, UnparsedPublicKey};
use thiserror::Error;

/// Public keys of engines, each in the form `publickeyv1_…`. Restate logs its key when it starts.
///
/// With keys, a worker answers only requests that one of these engines has signed: Restate signs them if it has a private
/// key (`worker.invoker.request-identity-private-key-pem-file` of its configuration, Ed25519 in PEM). Without keys, it
/// answers every client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityKeys(Vec<String>);

/// Invalid identity key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}` is no identity key of an engine: {reason}")]
pub struct IdentityKeyError {
    key: String,
    reason: String,
}

impl IdentityKeys {
    /// Checks the keys. If there are any, and the process has installed no cryptography for [`jsonwebtoken`], which the SDK
    /// uses to verify signatures, installs a provider based on [`ring`].
    ///
    /// # Errors
    ///
    /// [`IdentityKeyError`] for the first invalid key.
    pub fn new(keys: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, IdentityKeyError> {
        let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        for key in &keys {
            if let Err(error) = Endpoint::builder().identity_key(key) {
                return Err(IdentityKeyError { key: key.clone(), reason: error.to_string() });
            }
        }
        if !keys.is_empty() {
            // A provider that the application has installed is kept.
            let _ = ENGINE_SIGNATURES.install_default();
        }
        Ok(Self(keys))
    }

    /// Returns whether there are no keys, so that the worker answers every client.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Verifies the signatures of engines, which all use Ed25519.
static ENGINE_SIGNATURES: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

struct Ed25519Verifier(DecodingKey);

fn verifier(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> Result<Box<dyn JwtVerifier>, jsonwebtoken::errors::Error> {
    if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Ed25519Verifier(key.clone())))
}

impl JwtVerifier for Ed25519Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

impl Verifier<Vec<u8>> for Ed25519Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let key = UnparsedPublicKey::new(&ED25519, self.0.as_bytes());
        key.verify(message, signature).map_err(|_| signature::Error::new())
    }
}
