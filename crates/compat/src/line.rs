//! Lines of a stream.

use std::fmt;

use serde_json::Value;

/// One line of a stream: a JSON object without line breaks.
///
/// [`Display`](fmt::Display) writes it without the final line feed. U+2028 and U+2029 are escaped, since readers such
/// as Node's `readline` split lines at them.
///
/// ```
/// use pintle_compat::Line;
/// use serde_json::json;
///
/// let line = Line::new(json!({"type": "error", "message": "a\nb\u{2028}c"}));
/// assert_eq!(line.to_string(), r#"{"message":"a\nb\u2028c","type":"error"}"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Line(Value);

impl Line {
    /// Creates a line from its object.
    #[must_use]
    pub fn new(object: Value) -> Self {
        Self(object)
    }

    /// Returns the object.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Returns the object by value.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.0
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        // Both characters can only occur inside of strings.
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['\u{2028}', '\u{2029}']) {
            let (before, from) = rest.split_at(at);
            let is_first = from.starts_with('\u{2028}');
            f.write_str(before)?;
            f.write_str(if is_first { "\\u2028" } else { "\\u2029" })?;
            rest = from.get('\u{2028}'.len_utf8()..).unwrap_or_default();
        }
        f.write_str(rest)
    }
}
