//! Tokens of Rust for comparisons: single signs, and documentation.

use std::ops::Range;

use crate::source_tokens::{SourceLanguage, TokenKind, source_parts};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Identifier or literal.
    Word(String),
    /// Single character of punctuation or a bracket.
    Sign(char),
    /// Text of a documentation comment of one line.
    Documentation(String),
}

impl Token {
    pub(super) fn is_sign(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    pub(super) fn is_word(&self, expected: &str) -> bool {
        self.word() == Some(expected)
    }

    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Sign(_) | Self::Documentation(_) => None,
        }
    }
}

/// Splits a text into tokens. A text that is not Rust gives some tokens as well.
pub(super) fn tokenize_rust(text: &str) -> Vec<Token> {
    located_tokens(text).into_iter().map(|(token, _)| token).collect()
}

/// As [`tokenize_rust`], with the positions of the tokens in bytes. The signs of a symbol have its position.
pub(super) fn located_tokens(text: &str) -> Vec<(Token, Range<usize>)> {
    let mut tokens = Vec::new();
    for (kind, part, start) in source_parts(SourceLanguage::Rust, text) {
        let range = start..start + part.len();
        let at_range = |token: Token| (token, range.clone());
        match kind {
            None => {
                tokens.extend(documentation(part).map(|text| at_range(Token::Documentation(text.to_owned()))))
            }
            Some(TokenKind::Symbol) => tokens.extend(part.chars().map(Token::Sign).map(at_range)),
            Some(TokenKind::Word | TokenKind::Number | TokenKind::Text) => {
                tokens.push(at_range(Token::Word(part.to_owned())));
            }
        }
    }
    tokens
}

/// Returns the text of a line of documentation.
fn documentation(line: &str) -> Option<&str> {
    let text = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
    // A longer line of slashes is a comment.
    if text.starts_with('/') { None } else { Some(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_are_no_code() {
        let shown = |text: &str| {
            let tokens = tokenize_rust(text).into_iter().map(|token| match token {
                Token::Word(word) => word,
                Token::Sign(sign) => sign.to_string(),
                Token::Documentation(text) => format!("doc{text}"),
            });
            tokens.collect::<Vec<_>>().join(" ")
        };
        for (text, expected) in [
            ("a+b // c\n/* d /* e */ f */ g", "a + b g"),
            ("\"a \\\" { b\" c", "\"a \\\" { b\" c"),
            ("r#\"a\"b\"# c", "r#\"a\"b\"# c"),
            ("'{' '\\'' 'a 'static x", "'{' '\\'' ' a ' static x"),
            ("b'x' b\"y\" r#type", "b'x' b\"y\" r # type"),
            ("/// text\n//// no\nfn f(){}", "doc text fn f ( ) { }"),
            ("1_000u32..x", "1_000u32 . . x"),
            ("ünit \"ö", "ünit \" ö"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
