//! API keys that no log can show.

use std::fmt;

use pintle_llm::{Error, ErrorKind};

/// An API key. `Debug` hides it, and there is no `Display`.
#[derive(Clone, Default)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the key, for the header that carries it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the key if it is a legal header value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`], without the key, if it is empty or contains a line break, a space or another
    /// character that is illegal in a header.
    pub(crate) fn validate(self, provider: &str) -> Result<Self, Error> {
        let problem = if self.0.is_empty() {
            "is empty"
        } else if self.0.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(self);
        } else {
            "contains characters other than visible ASCII; is there a stray line break or quote?"
        };
        Err(Error::new(ErrorKind::Configuration, format!("the API key {problem}")).with_provider(provider))
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
        assert_eq!(Secret::new("sk-abc").validate("openai").unwrap().expose(), "sk-abc");
        for bad in ["", "sk-abc\n", "sk abc", "ключ"] {
            let error = Secret::new(bad).validate("openai").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(bad.is_empty() || !format!("{error:?}").contains(bad.trim()), "{error:?}");
        }
        assert_eq!(format!("{:?}", Secret::new("sk-abc")), "hidden");
    }
}
