//! Text of an error with its causes.

use std::error::Error;

/// Formats an error and its sources on one line, separated by `: `. A source whose text already appears is skipped.
///
/// ```
/// use std::io;
///
/// use pintle_llm::{Error, ErrorKind, error_chain};
///
/// let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "refused");
/// let error = Error::new(ErrorKind::Network, "no connection").with_source(refused);
/// assert_eq!(error_chain(&error), "network failure: no connection: refused");
/// ```
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Level {
        text: &'static str,
        source: Option<Box<dyn Error + Send + Sync>>,
    }

    fn nested(texts: &[&'static str]) -> Option<Box<dyn Error + Send + Sync>> {
        let (text, causes) = texts.split_first()?;
        Some(Box::new(Level { text, source: nested(causes) }))
    }

    #[test]
    fn causes_follow_their_error_and_are_not_repeated() {
        let cases: [(&[&'static str], &str); 5] = [
            (&["one"], "one"),
            (&["one", "two", "three"], "one: two: three"),
            (&["cannot connect: refused", "refused"], "cannot connect: refused"),
            (&["cannot connect", "refused", "refused", "reset"], "cannot connect: refused: reset"),
            (&["one", ""], "one"),
        ];
        for (texts, expected) in cases {
            let error = nested(texts).unwrap();
            assert_eq!(error_chain(error.as_ref()), expected, "{texts:?}");
        }
    }
}
