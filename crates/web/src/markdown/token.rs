//! The tokens of an HTML text, forgiving as browsers are.

use super::entity;

pub(super) enum Token<'a> {
    /// Text, with its character references.
    Text(&'a str),
    Start(Tag<'a>),
    /// The name of an element that ends, in lower case.
    End(String),
}

pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: String,
    /// What stands between the name and the end of the tag.
    attributes: &'a str,
}

/// Comments, declarations and what is cut off at the end are no tokens.
pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(html: &'a str) -> Self {
        Self { rest: html }
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = self.rest;
            let Some(markup) = rest.strip_prefix('<') else {
                let end = rest.find('<').unwrap_or(rest.len());
                return (end > 0).then(|| Token::Text(self.take(end)));
            };
            let first = markup.as_bytes().first().copied().unwrap_or_default();
            if markup.starts_with("!--") {
                // `<!-->` is a whole comment.
                self.skip_past("-->", "<!".len());
            } else if matches!(first, b'!' | b'?') {
                self.skip_past(">", 1);
            } else if first == b'/' || first.is_ascii_alphabetic() {
                if let Some(token) = self.tag() {
                    return Some(token);
                }
            } else {
                // A sign and no markup; it goes with the text behind it.
                let end = markup.find('<').unwrap_or(markup.len());
                return Some(Token::Text(self.take(1 + end)));
            }
        }
    }

    /// What stands before the end of an element that holds no markup; the end is passed, too.
    pub(super) fn raw_until(&mut self, name: &str) -> &'a str {
        let (end, behind) = end_tag(self.rest, name);
        let raw = self.take(end);
        self.rest = self.rest.get(behind - end..).unwrap_or_default();
        raw
    }

    /// Passes an element that was just begun. One of the same name inside it ends it early, as for scripts.
    pub(super) fn skip_element(&mut self, name: &str) {
        self.raw_until(name);
    }

    /// The tag that begins here; `None` for one that is empty or cut off.
    fn tag(&mut self) -> Option<Token<'a>> {
        let rest = self.rest;
        let closing = rest.starts_with("</");
        let inner = rest.get(if closing { 2 } else { 1 }..).unwrap_or_default();
        let Some(end) = tag_end(inner, closing) else {
            self.rest = "";
            return None;
        };
        self.rest = inner.get(end + 1..).unwrap_or_default();
        let inner = inner.get(..end).unwrap_or_default();
        let stop = inner.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inner.len());
        let (name, attributes) = inner.split_at(stop);
        if name.is_empty() {
            return None;
        }
        let name = name.to_ascii_lowercase();
        Some(if closing { Token::End(name) } else { Token::Start(Tag { name, attributes }) })
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_past(&mut self, end: &str, from: usize) {
        let at = self.rest.get(from..).and_then(|rest| rest.find(end)).map(|at| from + at + end.len());
        self.rest = at.and_then(|at| self.rest.get(at..)).unwrap_or_default();
    }
}

impl Tag<'_> {
    /// Whether the tag ends in `/>`.
    pub(super) fn is_self_closing(&self) -> bool {
        self.attributes.ends_with('/')
    }

    /// The value of an attribute, with its character references replaced.
    pub(super) fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            let stop = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/'));
            let (name, behind) = rest.split_at(stop.unwrap_or(rest.len()));
            let (value, behind) = value(behind);
            if name.eq_ignore_ascii_case(wanted) {
                return Some(entity::decode(value).into_owned());
            }
            if behind.len() == rest.len() || behind.is_empty() {
                return None;
            }
            rest = behind;
        }
    }
}

/// The value that stands before the rest of a tag, and that rest.
fn value(rest: &str) -> (&str, &str) {
    let Some(value) = rest.trim_start().strip_prefix('=') else { return ("", rest) };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len()))
}

/// Where the `>` of a tag is. One between quotes belongs to a value.
fn tag_end(inner: &str, closing: bool) -> Option<usize> {
    if closing {
        return inner.find('>');
    }
    let mut quote = None;
    let mut after_equals = false;
    for (at, byte) in inner.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'>') => return Some(at),
            // A quote elsewhere is a slip of the pen.
            (None, b'"' | b'\'') if after_equals => quote = Some(byte),
            (None, _) => {}
        }
        after_equals = byte == b'=' || (after_equals && byte.is_ascii_whitespace());
    }
    None
}

/// Where the end tag of `name` begins and where the text behind it does; the end of the text if there is none.
fn end_tag(text: &str, name: &str) -> (usize, usize) {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("</")).map(|at| from + at) {
        let behind = text.get(at + 2..).unwrap_or_default();
        let is_name = behind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let after = behind.get(name.len()..).unwrap_or_default();
        if is_name && after.starts_with(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')) {
            let close = after.find('>').map_or(text.len(), |end| at + 2 + name.len() + end + 1);
            return (at, close);
        }
        from = at + 2;
    }
    (text.len(), text.len())
}
