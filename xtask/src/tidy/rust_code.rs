//! Rust text reduced to its code, so that rules about code ignore prose and data.

/// Replaces comments, strings and character literals by spaces. Line breaks are kept.
pub(super) fn without_comments_and_literals(text: &str) -> String {
    let mut scanner = Scanner { rest: text, out: String::with_capacity(text.len()), after_word: false };
    while scanner.step() {}
    scanner.out
}

struct Scanner<'a> {
    rest: &'a str,
    out: String,
    /// Whether the last character of code can be part of a name.
    after_word: bool,
}

impl Scanner<'_> {
    /// Reads one comment, one literal or one character. Returns `false` at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        if let Some(length) = self.literal_or_comment() {
            self.blank(length);
            self.after_word = false;
        } else {
            self.out.push(first);
            self.after_word = first == '_' || first.is_alphanumeric();
            self.rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
        }
        true
    }

    fn literal_or_comment(&self) -> Option<usize> {
        let rest = self.rest;
        if rest.starts_with("//") {
            return Some(rest.find('\n').unwrap_or(rest.len()));
        }
        if rest.starts_with("/*") {
            return Some(block_comment(rest));
        }
        if rest.starts_with('"') {
            return Some(quoted(rest, '"'));
        }
        if rest.starts_with('\'') {
            return character(rest);
        }
        if self.after_word {
            return None;
        }
        raw_string(rest)
    }

    fn blank(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.out.extend(taken.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
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
    use super::without_comments_and_literals;

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
}
