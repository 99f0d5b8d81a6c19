//! Random identifiers.

use std::hash::{BuildHasher, RandomState};

/// Returns 32 random hexadecimal digits.
pub(crate) fn nonce() -> String {
    // The standard library seeds its hashers from the system's randomness.
    let half = || RandomState::new().hash_one(());
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_unique() {
        let one = nonce();
        assert_eq!(one.len(), 32);
        assert_ne!(one, nonce());
    }
}
