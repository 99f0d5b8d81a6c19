//! The parts of Rust text: its code, its comments and its literals, so that each rule reads only what it is about.

/// Kind of a part of Rust text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A single character of code.
    Code,
    /// A line comment or a block comment, with its delimiters.
    Comment,
    /// A string, byte string or C string, with its quotes.
    String,
    /// A raw string, with its prefix, hashes and quotes.
    RawString,
    /// A character or byte, with its quotes.
    Character,
}

/// A part of Rust text.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) kind: Kind,
    /// Line of its first character, from 1.
    pub(super) line: usize,
    pub(super) text: &'a str,
}

/// Replaces comments, strings and character literals by spaces. Line breaks are kept.
pub(super) fn without_comments_and_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in parts(text) {
        if part.kind == Kind::Code {
            out.push_str(part.text);
        } else {
            out.extend(part.text.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        }
    }
    out
}

/// Splits Rust text into its parts, which together are the whole text.
pub(super) fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    Scanner { rest: text, line: 1, after_word: false }
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    /// Whether the last character of code can be part of a name.
    after_word: bool,
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let first = self.rest.chars().next()?;
        let (kind, length) = self.literal_or_comment().unwrap_or((Kind::Code, first.len_utf8()));
        self.after_word = kind == Kind::Code && (first == '_' || first.is_alphanumeric());
        let (text, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        let part = Part { kind, line: self.line, text };
        self.line += text.matches('\n').count();
        Some(part)
    }
}

impl Scanner<'_> {
    fn literal_or_comment(&self) -> Option<(Kind, usize)> {
        let rest = self.rest;
        if rest.starts_with("//") {
            return Some((Kind::Comment, rest.find('\n').unwrap_or(rest.len())));
        }
        if rest.starts_with("/*") {
            return Some((Kind::Comment, block_comment(rest)));
        }
        if rest.starts_with('"') {
            return Some((Kind::String, quoted(rest, '"')));
        }
        if rest.starts_with('\'') {
            return character(rest).map(|length| (Kind::Character, length));
        }
        if self.after_word {
            return None;
        }
        raw_string(rest).map(|length| (Kind::RawString, length))
    }
}

/// Returns the length of a block comment, which may be nested.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of a literal that ends at the next unescaped `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return index + quote.len_utf8();
        }
    }
    text.len()
}

/// Returns the length of a character literal; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut characters = text.chars().skip(1);
    let first = characters.next()?;
    (first == '\\' || characters.next() == Some('\'')).then(|| quoted(text, '\''))
}

/// Returns the length of a raw string: `r"…"`, `r#"…"#`, or the byte or C variant.
fn raw_string(text: &str) -> Option<usize> {
    let after_kind = text.strip_prefix('b').or_else(|| text.strip_prefix('c')).unwrap_or(text);
    let after_r = after_kind.strip_prefix('r')?;
    let hashes = after_r.bytes().take_while(|byte| *byte == b'#').count();
    let body = after_r.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let opening = text.len() - body.len();
    Some(body.find(&end).map_or(text.len(), |index| opening + index + end.len()))
}

#[cfg(test)]
mod tests {
    use super::{Kind, parts, without_comments_and_literals};

    #[test]
    fn only_code_is_left() {
        let cases = [
            ("a // dbg!(1)\nb", "a \nb"),
            ("a /* x /* y */ z */ b", "a  b"),
            ("f(\"todo!()\", 1)", "f(, 1)"),
            (r#"f("a\"b", 'c')"#, "f(, )"),
            ("f(r#\"say \"todo!\" \"#)", "f()"),
            ("f(br\"x\", b\"y\", b'z', '\\'', '\"')", "f(, b, b, , )"),
            ("fn f<'a>(x: &'a str) -> &'a str", "fn f<'a>(x: &'a str) -> &'a str"),
            ("attr\"x\"", "attr"),
            ("let r#type = 1;", "let r#type = 1;"),
            ("\"never ends", ""),
        ];
        for (text, code) in cases {
            let found = without_comments_and_literals(text);
            assert_eq!(found.replace(' ', ""), code.replace(' ', ""), "{text}");
            assert_eq!(found.matches('\n').count(), text.matches('\n').count(), "{text}");
        }
    }
    #[test]
    fn comments_and_literals_have_their_kind_and_line() {
        let text = r##"let a = "http://x"; // one "two"
/* three
   /* four */ " */ let b = r#"five // "six" "#;
/// seven 'eight'
let c = ('"', b'\'', '\u{22}', b"nine\"", br"\", 'x');
fn f<'a>(text: &'a str) {} // ten"##;
        let found: Vec<(Kind, usize, &str)> = parts(text)
            .filter(|part| part.kind != Kind::Code)
            .map(|part| (part.kind, part.line, part.text))
            .collect();
        let expected = [
            (Kind::String, 1, r#""http://x""#),
            (Kind::Comment, 1, r#"// one "two""#),
            (Kind::Comment, 2, "/* three\n   /* four */ \" */"),
            (Kind::RawString, 3, r##"r#"five // "six" "#"##),
            (Kind::Comment, 4, "/// seven 'eight'"),
            (Kind::Character, 5, r#"'"'"#),
            (Kind::Character, 5, r"'\''"),
            (Kind::Character, 5, r"'\u{22}'"),
            (Kind::String, 5, r#""nine\"""#),
            (Kind::RawString, 5, r#"br"\""#),
            (Kind::Character, 5, "'x'"),
            (Kind::Comment, 6, "// ten"),
        ];
        assert_eq!(found, expected);
        let together: String = parts(text).map(|part| part.text).collect();
        assert_eq!(together, text);
    }
}
