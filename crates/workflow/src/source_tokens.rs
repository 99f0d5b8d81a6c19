//! Tokens of source files, for edits of tests and of changed lines. Comments and white space are no tokens.

#[cfg(test)]
mod tests;

/// Language of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceLanguage {
    /// C and C++.
    C,
    Go,
    Java,
    /// JavaScript and TypeScript.
    JavaScript,
    Python,
    Rust,
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Identifier or keyword.
    Word,
    Number,
    /// String or character literal, with its quotes and its prefix.
    Text,
    /// Operator, bracket or separator.
    Symbol,
}

/// A token with its position in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceToken<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

/// Symbols of more than one character, the longest first.
const SYMBOLS: [&str; 38] = [
    ">>>=", "===", "!==", "<<=", ">>=", "...", "**=", "//=", "&&=", "||=", "??=", "==", "!=", "<=", ">=",
    "&&", "||", "->", "=>", "::", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", ":=", "<-", "**", "//",
    "<<", ">>", "++", "--", "..", "?.",
];

impl SourceLanguage {
    /// Returns the language of a file by its name.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        Some(match extension {
            "c" | "h" | "cc" | "cpp" | "cxx" | "hpp" => Self::C,
            "go" => Self::Go,
            "java" => Self::Java,
            "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => Self::JavaScript,
            "py" => Self::Python,
            "rs" => Self::Rust,
            _ => return None,
        })
    }
}

impl SourceToken<'_> {
    /// Returns the position after the token.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Returns whether it is this word or symbol.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Symbol) && self.text == text
    }
}

/// Splits a source file into tokens. An unterminated literal becomes symbols.
pub(crate) fn tokenize(language: SourceLanguage, text: &str) -> Vec<SourceToken<'_>> {
    let tokens = source_parts(language, text)
        .filter_map(|(kind, text, start)| Some(SourceToken { kind: kind?, text, start }));
    tokens.collect()
}

/// Returns the tokens, comments and white space of a source file with their positions. Only tokens have a kind.
pub(crate) fn source_parts(
    language: SourceLanguage,
    text: &str,
) -> impl Iterator<Item = (Option<TokenKind>, &str, usize)> {
    let (mut next, mut open) = (0, OpenQuotes::default());
    std::iter::from_fn(move || {
        let (start, rest) = (next, text.get(next..).filter(|rest| !rest.is_empty())?);
        let (length, kind) = next_token(language, rest, &mut open);
        next += length;
        Some((kind, rest.get(..length)?, start))
    })
}

/// Returns the index of the bracket that closes the bracket at `open`.
pub(crate) fn closing_bracket(tokens: &[SourceToken<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        if is_opening(token) {
            depth += 1;
        } else if is_closing(token) {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(index);
            }
        }
    }
    None
}

/// Returns whether a token opens a bracket.
pub(crate) fn is_opening(token: &SourceToken<'_>) -> bool {
    token.is("(") || token.is("[") || token.is("{")
}

/// Returns whether a token closes a bracket.
pub(crate) fn is_closing(token: &SourceToken<'_>) -> bool {
    token.is(")") || token.is("]") || token.is("}")
}

/// Quotes that no later quote closes. Without them, each quote of a damaged file would search the rest of the file.
#[derive(Debug, Default)]
struct OpenQuotes(Vec<char>);

/// Returns the length of the first token, comment or white space, and the kind of a token.
fn next_token(language: SourceLanguage, rest: &str, open: &mut OpenQuotes) -> (usize, Option<TokenKind>) {
    let first = rest.chars().next().unwrap_or_default();
    if let Some(length) = comment_length(language, rest) {
        return (length, None);
    }
    if let Some(length) = literal_length(language, rest, open) {
        return (length, Some(TokenKind::Text));
    }
    if first.is_whitespace() {
        return (first.len_utf8(), None);
    }
    if first.is_ascii_digit() {
        return (number_length(rest), Some(TokenKind::Number));
    }
    if is_word_character(first) {
        return (rest.find(|next| !is_word_character(next)).unwrap_or(rest.len()), Some(TokenKind::Word));
    }
    let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    (symbol.map_or(first.len_utf8(), |symbol| symbol.len()), Some(TokenKind::Symbol))
}

/// Returns whether a character can be part of an identifier.
pub(crate) fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

fn comment_length(language: SourceLanguage, rest: &str) -> Option<usize> {
    let (line, has_blocks) = if language == SourceLanguage::Python { ("#", false) } else { ("//", true) };
    if rest.starts_with(line) {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !has_blocks || !rest.starts_with("/*") {
        return None;
    }
    if language == SourceLanguage::Rust {
        return Some(nested_comment_length(rest));
    }
    // The star of `/*/` does not close the comment.
    Some(rest.get(2..)?.find("*/").map_or(rest.len(), |end| end + 4))
}

fn nested_comment_length(rest: &str) -> usize {
    let (mut depth, mut index) = (0_usize, 0);
    while let Some(next) = rest.get(index..).and_then(|rest| rest.chars().next()) {
        let mark = rest.get(index..index + 2);
        match mark {
            Some("/*") => depth += 1,
            Some("*/") => depth = depth.saturating_sub(1),
            _ => {
                index += next.len_utf8();
                continue;
            }
        }
        index += 2;
        if depth == 0 {
            break;
        }
    }
    index
}

fn literal_length(language: SourceLanguage, rest: &str, open: &mut OpenQuotes) -> Option<usize> {
    let prefixes = match language {
        SourceLanguage::Python => "rRbBuUfF",
        SourceLanguage::Rust => "rbc",
        SourceLanguage::C | SourceLanguage::Go | SourceLanguage::Java | SourceLanguage::JavaScript => "",
    };
    let prefix = rest.chars().take_while(|next| prefixes.contains(*next)).count();
    if prefix > 2 {
        return None;
    }
    let body = rest.get(prefix..)?;
    if language == SourceLanguage::Rust && rest.get(..prefix)?.contains('r') {
        return Some(prefix + raw_length(body)?);
    }
    let quote = body.chars().next()?;
    let has_backticks = matches!(language, SourceLanguage::Go | SourceLanguage::JavaScript);
    if !(matches!(quote, '"' | '\'') || quote == '`' && has_backticks) {
        return None;
    }
    let inner = body.get(1..)?;
    let triple = quote.to_string().repeat(3);
    if matches!(language, SourceLanguage::Python | SourceLanguage::Java) && body.starts_with(&triple) {
        let end = body.get(3..)?.find(&triple)?;
        return Some(prefix + end + 6);
    }
    if language == SourceLanguage::Rust && quote == '\'' && !is_character_literal(inner) {
        return None;
    }
    let has_escapes = !(quote == '`' && language == SourceLanguage::Go);
    let has_lines = quote == '`' || language == SourceLanguage::Rust;
    if open.0.contains(&quote) {
        return None;
    }
    let Some(close) = closing_quote(inner, quote, has_escapes, has_lines) else {
        // Another line may close a quote that must end on its own line.
        open.0.extend(has_lines.then_some(quote));
        return None;
    };
    Some(prefix + 2 + close)
}

/// Returns the length of a raw string of Rust after its prefix.
fn raw_length(body: &str) -> Option<usize> {
    let hashes = body.chars().take_while(|next| *next == '#').count();
    let inner = body.get(hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(hashes + 1 + inner.find(&close)? + close.len())
}

/// Returns whether the text after a quote is a character of Rust, and not the name of a lifetime.
fn is_character_literal(inner: &str) -> bool {
    let mut characters = inner.chars();
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Returns the position of the closing quote.
fn closing_quote(inner: &str, quote: char, has_escapes: bool, has_lines: bool) -> Option<usize> {
    let mut is_escaped = false;
    for (index, character) in inner.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if character == '\\' && has_escapes {
            is_escaped = true;
        } else if character == quote {
            return Some(index);
        } else if character == '\n' && !has_lines {
            return None;
        }
    }
    None
}

/// Returns the length of a number. A point belongs to it only before a digit, and a sign only in an exponent.
fn number_length(rest: &str) -> usize {
    let is_hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
    let mut characters = rest.char_indices().peekable();
    let mut before = ' ';
    while let Some((index, character)) = characters.next() {
        let next_is_digit = characters.peek().is_some_and(|(_, next)| next.is_ascii_digit());
        let is_sign = matches!(character, '+' | '-') && matches!(before, 'e' | 'E') && !is_hexadecimal;
        let is_part = is_word_character(character) || (character == '.' || is_sign) && next_is_digit;
        if !is_part {
            return index;
        }
        before = character;
    }
    rest.len()
}
