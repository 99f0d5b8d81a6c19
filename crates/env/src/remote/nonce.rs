//! Names that nobody else has.

use std::hash::{BuildHasher, RandomState};

/// 32 hexadecimal digits that nobody can guess and that do not come twice.
pub(crate) fn nonce() -> String {
    // The standard library seeds its hashers from the system's randomness.
    let half = || RandomState::new().hash_one(());
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_nonce_comes_twice() {
        let one = nonce();
        assert_eq!(one.len(), 32);
        assert_ne!(one, nonce());
    }
}
