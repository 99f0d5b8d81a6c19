//! Tokens of Rust, without spaces and comments.

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Identifier, literal or lifetime.
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
pub(super) fn tokenise(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            let line = rest.lines().next().unwrap_or(rest);
            tokens.extend(documentation(line).map(|text| Token::Documentation(text.to_owned())));
            line.len()
        } else if rest.starts_with("/*") {
            block_comment_length(rest)
        } else if let Some(length) = literal_length(rest) {
            tokens.push(Token::Word(rest.get(..length).unwrap_or(rest).to_owned()));
            length
        } else if is_of_word(first) {
            let length = rest.find(|character| !is_of_word(character)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest.get(..length).unwrap_or(rest).to_owned()));
            length
        } else {
            tokens.push(Token::Sign(first));
            first.len_utf8()
        };
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    tokens
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the text of a line of documentation.
fn documentation(line: &str) -> Option<&str> {
    let text = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
    // A longer line of slashes is a comment.
    if text.starts_with('/') { None } else { Some(text) }
}

fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(rest) = text.get(index..) {
        if rest.starts_with("/*") {
            (depth, index) = (depth + 1, index + 2);
        } else if rest.starts_with("*/") {
            (depth, index) = (depth.saturating_sub(1), index + 2);
            if depth == 0 {
                return index;
            }
        } else {
            let Some(character) = rest.chars().next() else { break };
            index += character.len_utf8();
        }
    }
    text.len()
}

/// Returns the length of a literal with quotes, or of a lifetime, at the start of a text.
fn literal_length(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(*prefix).unwrap_or_default();
        let is_raw = prefix.ends_with('r');
        rest.starts_with('"')
            || is_raw && rest.trim_start_matches('#').starts_with('"')
            || matches!(*prefix, "" | "b") && rest.starts_with('\'')
    })?;
    let rest = text.get(prefix.len()..)?;
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let body = hashes + 1;
        let length = rest.get(body..)?.find(&end).map_or(rest.len(), |index| body + index + end.len());
        return Some(prefix.len() + length);
    }
    let quote = rest.chars().next()?;
    if quote == '\'' && is_lifetime(rest) {
        let name = rest.get(1..)?.find(|character| !is_of_word(character)).unwrap_or(rest.len() - 1);
        return Some(prefix.len() + 1 + name);
    }
    Some(prefix.len() + quoted_length(rest, quote))
}

/// Returns whether a text that starts with `'` is a lifetime: a name that no `'` follows.
fn is_lifetime(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    let is_name = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    is_name && characters.next() != Some('\'')
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if character == '\\' {
            is_escaped = true;
        } else if character == quote {
            return index + character.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_are_no_code() {
        let shown = |text: &str| {
            let tokens = tokenise(text).into_iter().map(|token| match token {
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
            ("'{' '\\'' 'a 'static x", "'{' '\\'' 'a 'static x"),
            ("b'x' b\"y\" r#type", "b'x' b\"y\" r # type"),
            ("/// text\n//// no\nfn f(){}", "doc text fn f ( ) { }"),
            ("1_000u32..x", "1_000u32 . . x"),
            ("ünit \"ö", "ünit \"ö"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
