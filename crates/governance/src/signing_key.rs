//! Ed25519 keys as text.

use std::fmt;
use std::str::FromStr;

use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

/// Length of a public key and of the seed of a private key.
const KEY_LENGTH: usize = 32;

/// Length of a signature.
const SIGNATURE_LENGTH: usize = 64;

const PUBLIC: &str = "ed25519:";

const PRIVATE: &str = "ed25519-private:";

/// Public key. Its text is `ed25519:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PublicKey([u8; KEY_LENGTH]);

/// Private key, which signs grants. Its text is `ed25519-private:` and 64 hexadecimal digits. Its debug form has only the public
/// key.
pub struct PrivateKey {
    seed: [u8; KEY_LENGTH],
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// Reason why a text is not the expected key. It never contains the text, which could be a private key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A private key in place of a public key.
    #[error("it is a private key: expected a public key")]
    Private,
    /// A public key in place of a private key.
    #[error("it is a public key: expected a private key")]
    Public,
    /// Another type of key, or not a key.
    #[error("it is not an Ed25519 key: expected `{0}` and 64 hexadecimal digits in lower case")]
    Form(&'static str),
    /// The operating system has no random numbers.
    #[error("the operating system has no random numbers")]
    Random,
}

impl PublicKey {
    /// Returns whether a signature, as 128 hexadecimal digits, is a signature of this key.
    pub(super) fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        from_hex::<SIGNATURE_LENGTH>(signature).is_some_and(|bytes| key.verify(message, &bytes).is_ok())
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.starts_with(PRIVATE) {
            return Err(KeyError::Private);
        }
        text.strip_prefix(PUBLIC).and_then(from_hex).map(Self).ok_or(KeyError::Form(PUBLIC))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC}{}", to_hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PrivateKey {
    /// Generates a key from random numbers of the operating system.
    ///
    /// # Errors
    ///
    /// [`KeyError::Random`].
    pub fn generate() -> Result<Self, KeyError> {
        let seed = ring::rand::generate::<[u8; KEY_LENGTH]>(&SystemRandom::new());
        Self::from_seed(seed.map_err(|_| KeyError::Random)?.expose())
    }

    /// Parses the text of a private key. White space around it is ignored.
    ///
    /// # Errors
    ///
    /// [`KeyError::Public`] and [`KeyError::Form`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.starts_with(PUBLIC) {
            return Err(KeyError::Public);
        }
        let seed = text.strip_prefix(PRIVATE).and_then(from_hex).ok_or(KeyError::Form(PRIVATE))?;
        Self::from_seed(seed)
    }

    fn from_seed(seed: [u8; KEY_LENGTH]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::Form(PRIVATE))?;
        let public: [u8; KEY_LENGTH] =
            pair.public_key().as_ref().try_into().map_err(|_| KeyError::Form(PUBLIC))?;
        Ok(Self { seed, pair, public: PublicKey(public) })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Returns the text, which is a secret.
    #[must_use]
    pub fn to_secret_text(&self) -> String {
        format!("{PRIVATE}{}", to_hex(&self.seed))
    }

    /// Returns the signature of a message, as hexadecimal digits.
    pub(super) fn sign(&self, message: &[u8]) -> String {
        to_hex(self.pair.sign(message).as_ref())
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("public", &self.public).finish_non_exhaustive()
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses exactly `N` bytes. Each value has one text, so digits in upper case are refused.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = digits else { return None };
        *byte = (digit(*high)? << 4) | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sign_as_in_the_first_example_of_rfc_8032() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let key = PrivateKey::parse(&format!("{PRIVATE}{seed}\n")).unwrap();
        assert_eq!(
            key.public().to_string(),
            "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        );
        let signature = key.sign(b"");
        assert!(signature.starts_with("e5564300c360ac729086e2cc806e828a"), "{signature}");
        assert!(key.public().verifies(b"", &signature));
        assert!(!key.public().verifies(b"x", &signature));
        assert!(!key.public().verifies(b"", &signature.to_uppercase()), "each signature has one text");
        assert!(!key.public().verifies(b"", &signature[2..]));
    }

    #[test]
    fn a_generated_key_comes_back_from_its_text_and_its_debug_form_has_no_secret() {
        let key = PrivateKey::generate().unwrap();
        let text = key.to_secret_text();
        assert_eq!(PrivateKey::parse(&text).unwrap().public(), key.public());
        assert_ne!(PrivateKey::generate().unwrap().public(), key.public());
        assert!(!format!("{key:?}").contains(text.trim_start_matches(PRIVATE)));
    }

    #[test]
    fn keys_of_a_wrong_type_are_refused() {
        let (digits, short) = ("ab".repeat(KEY_LENGTH), "ab".repeat(KEY_LENGTH - 1));
        for (text, expected) in [
            (format!("{PRIVATE}{digits}"), KeyError::Private),
            (format!("rsa:{digits}"), KeyError::Form(PUBLIC)),
            (format!("{PUBLIC}{short}"), KeyError::Form(PUBLIC)),
            (format!("{PUBLIC}{digits}00"), KeyError::Form(PUBLIC)),
            (format!("{PUBLIC}{}", digits.to_uppercase()), KeyError::Form(PUBLIC)),
            (format!("{PUBLIC}{short}\u{e9}"), KeyError::Form(PUBLIC)),
            (digits.clone(), KeyError::Form(PUBLIC)),
            (String::new(), KeyError::Form(PUBLIC)),
        ] {
            assert_eq!(text.parse::<PublicKey>(), Err(expected), "{text}");
        }
        assert_eq!(PrivateKey::parse(&format!("{PUBLIC}{digits}")).unwrap_err(), KeyError::Public);
        for text in [digits, format!("{PRIVATE}{short}"), "-----BEGIN PRIVATE KEY-----".to_owned()] {
            assert_eq!(PrivateKey::parse(&text).unwrap_err(), KeyError::Form(PRIVATE), "{text}");
        }
    }
}
