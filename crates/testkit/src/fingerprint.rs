//! Hash that is stable across processes, for ids, seals and prefixes. Not for secrets.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Hashes a list of texts. The boundaries between texts are significant.
pub(crate) fn hash(parts: &[&str]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(0x7069_6e74, 0x6c65);
    for part in parts {
        hasher.write(part.as_bytes());
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

/// Hashes a list of texts to 32 lower-case hexadecimal digits.
pub(crate) fn hex(parts: &[&str]) -> String {
    let first = hash(parts);
    let second = hash(&[&first.to_string(), "second half"]);
    format!("{first:016x}{second:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_between_texts_are_significant() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_eq!(hash(&["ab", "c"]), hash(&["ab", "c"]));
        assert_eq!(hex(&["a"]).len(), 32);
    }
}
