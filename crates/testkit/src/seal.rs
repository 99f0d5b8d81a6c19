//! Seals: opaque values that the server attaches to reasoning and expects to be returned verbatim.
//!
//! A seal names the reasoning it belongs to and contains a hash of that, so that changes are detected without state.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::dialect::Dialect;
use crate::fingerprint;

const PREFIX: &str = "pintle-testkit";

/// Contents of a seal: the reasoning it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) dialect: Dialect,
    /// Index of the turn in its dialect.
    pub(crate) turn: usize,
    /// Hash of the reasoning text.
    pub(crate) text: u64,
}

impl Seal {
    pub(crate) fn new(dialect: Dialect, turn: usize, text: &str) -> Self {
        Self { dialect, turn, text: fingerprint::hash(&[text]) }
    }

    /// Encodes it as base64, which Gemini requires.
    pub(crate) fn close(&self) -> String {
        let payload = format!("{PREFIX}/{}/{}/{:016x}", self.dialect, self.turn, self.text);
        let hash = fingerprint::hash(&[&payload]);
        STANDARD.encode(format!("{payload}/{hash:016x}"))
    }

    /// Decodes an opaque value; `None` unless this server created exactly this value.
    pub(crate) fn open(opaque: &str) -> Option<Self> {
        let bytes = STANDARD.decode(opaque).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut parts = text.strip_prefix(PREFIX)?.strip_prefix('/')?.split('/');
        let seal = Self {
            dialect: parts.next()?.parse().ok()?,
            turn: parts.next()?.parse().ok()?,
            text: u64::from_str_radix(parts.next()?, 16).ok()?,
        };
        (seal.close() == opaque).then_some(seal)
    }

    pub(crate) fn binds(&self, text: &str) -> bool {
        self.text == fingerprint::hash(&[text])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn seals_open_and_bind_their_text(text in ".*", turn in 0_usize..1000) {
            let seal = Seal::new(Dialect::Gemini, turn, &text);
            let opened = Seal::open(&seal.close()).unwrap();
            prop_assert_eq!(&opened, &seal);
            prop_assert!(opened.binds(&text));
            let other = format!("{text}.");
            prop_assert!(!opened.binds(&other));
        }

        #[test]
        fn changed_seals_do_not_open(position in 0_usize..60, with in "[A-Za-z0-9]") {
            let closed = Seal::new(Dialect::AnthropicMessages, 3, "thought").close();
            let mut changed = closed.clone();
            changed.replace_range(position..=position, &with);
            prop_assert_eq!(Seal::open(&changed).is_some(), changed == closed);
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".*") {
            prop_assert_eq!(Seal::open(&text), None);
        }
    }
}
