//! Keys that tell a worker which engines may ask it.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtVerifier};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use restate_sdk::endpoint::Endpoint;
use ring::signature::{ED25519, UnparsedPublicKey};
use thiserror::Error;

/// Public keys of engines, each in the form `publickeyv1_…`, as Restate logs its own when it starts.
///
/// With keys, a worker answers only requests that one of these engines has signed: Restate signs them if it has a private key
/// (`worker.invoker.request-identity-private-key-pem-file` of its configuration, Ed25519 in PEM). Without any, it answers everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityKeys(Vec<String>);

/// A key that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}` is no identity key of an engine: {reason}")]
pub struct IdentityKeyError {
    key: String,
    reason: String,
}

impl IdentityKeys {
    /// Takes these keys. If there are any, and the process has chosen no cryptography for [`jsonwebtoken`], with which the SDK
    /// reads signatures, it is that of [`ring`] from now on.
    ///
    /// # Errors
    ///
    /// [`IdentityKeyError`] for the first one that is none.
    pub fn new(keys: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, IdentityKeyError> {
        let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        for key in &keys {
            if let Err(error) = Endpoint::builder().identity_key(key) {
                return Err(IdentityKeyError { key: key.clone(), reason: error.to_string() });
            }
        }
        if !keys.is_empty() {
            // One that the application has installed is kept.
            let _ = ENGINE_SIGNATURES.install_default();
        }
        Ok(Self(keys))
    }

    /// Returns whether everybody is answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Verifies the signatures of engines, which are of one kind.
static ENGINE_SIGNATURES: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

struct Ed25519(DecodingKey);

fn verifier(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> Result<Box<dyn JwtVerifier>, jsonwebtoken::errors::Error> {
    if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Ed25519(key.clone())))
}

impl JwtVerifier for Ed25519 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

impl Verifier<Vec<u8>> for Ed25519 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let key = UnparsedPublicKey::new(&ED25519, self.0.as_bytes());
        key.verify(message, signature).map_err(|_| signature::Error::new())
    }
}
