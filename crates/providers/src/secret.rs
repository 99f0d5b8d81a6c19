//! A key that no log can show.

use std::fmt;

use pintle_llm::{Error, ErrorKind};

/// A provider's key. `Debug` hides it, and there is no `Display`.
#[derive(Clone, Default)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key itself, for the one header that carries it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The key, if it is one: a key that cannot stand in a header is a mistake of the configuration.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`], without the key, if it is empty or holds a line break, a space or another
    /// character that no header may carry.
    pub(crate) fn checked(self, provider: &str) -> Result<Self, Error> {
        let wrong = if self.0.is_empty() {
            "is empty"
        } else if self.0.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(self);
        } else {
            "holds characters other than visible ASCII; is there a line break or a quote too many?"
        };
        Err(Error::new(ErrorKind::Configuration, format!("the API key {wrong}")).with_provider(provider))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "hidden" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_validated_and_never_shown() {
        assert_eq!(Secret::new("sk-abc").checked("openai").unwrap().expose(), "sk-abc");
        for bad in ["", "sk-abc\n", "sk abc", "ключ"] {
            let error = Secret::new(bad).checked("openai").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(bad.is_empty() || !format!("{error:?}").contains(bad.trim()), "{error:?}");
        }
        assert_eq!(format!("{:?}", Secret::new("sk-abc")), "hidden");
    }
}
