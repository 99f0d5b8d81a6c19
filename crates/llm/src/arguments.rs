//! Shared arguments of tool calls.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Strings of at least this many bytes are parsed without an intermediate copy.
const LONG: usize = 64 << 10;

/// Parsed arguments of a tool call.
///
/// Dereferences to a [`Value`]. Clones share the value: history, events and tools of a session all hold the arguments,
/// which may contain a file of several megabytes.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallArguments(Arc<Value>);

impl CallArguments {
    /// Returns mutable access, copying a shared value.
    pub fn to_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.0)
    }

    /// Returns the value, copying a shared one.
    #[must_use]
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for CallArguments {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Default for CallArguments {
    fn default() -> Self {
        Value::Object(Map::new()).into()
    }
}

impl From<Value> for CallArguments {
    fn from(value: Value) -> Self {
        Self(Arc::new(value))
    }
}

impl PartialEq<Value> for CallArguments {
    fn eq(&self, other: &Value) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<CallArguments> for Value {
    fn eq(&self, other: &CallArguments) -> bool {
        other == self
    }
}

/// Parses a JSON object, with the same result as `serde_json`.
///
/// `serde_json` collects a string with escapes in a growing buffer and then copies it. Long strings at the top level of the
/// object, which may be files of several megabytes, are unescaped here in one pass.
pub(crate) fn object_of(json: &str) -> Option<Map<String, Value>> {
    if json.len() < LONG {
        return serde_json::from_str(json).ok();
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    fields.into_iter().map(|(name, value)| Some((name, parse_value(value.get())?))).collect()
}

fn parse_value(json: &str) -> Option<Value> {
    let text = json.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match text.filter(|text| text.len() >= LONG) {
        Some(text) => unescape(text).map(Value::String),
        None => serde_json::from_str(json).ok(),
    }
}

/// Resolves the escapes within a JSON string; `None` for half of a surrogate pair.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let escape = after.chars().next()?;
        rest = after.get(escape.len_utf8()..)?;
        plain.push(match escape {
            '"' | '\\' | '/' => escape,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => unicode_escape(&mut rest)?,
            _ => return None,
        });
    }
    plain.push_str(rest);
    plain.shrink_to_fit();
    Some(plain)
}

/// Parses the digits of a `\u` escape, and a second escape for a surrogate pair.
fn unicode_escape(rest: &mut &str) -> Option<char> {
    let first = code_unit(rest)?;
    if let Some(Ok(char)) = char::decode_utf16([first]).next() {
        return Some(char);
    }
    *rest = rest.strip_prefix("\\u")?;
    char::decode_utf16([first, code_unit(rest)?]).next()?.ok()
}

fn code_unit(rest: &mut &str) -> Option<u16> {
    let (digits, after) = rest.split_at_checked(4)?;
    *rest = after;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn clones_share_the_value_until_one_changes() {
        let arguments = CallArguments::from(json!({"path": "a"}));
        let mut changed = arguments.clone();
        assert!(std::ptr::eq(&*arguments, &*changed));
        if let Some(fields) = changed.to_mut().as_object_mut() {
            fields.insert("path".to_owned(), json!("b"));
        }
        assert_eq!((&arguments["path"], &changed["path"]), (&json!("a"), &json!("b")));
        assert_eq!(arguments.clone().into_value(), json!({"path": "a"}));
        assert_eq!(serde_json::to_string(&arguments).unwrap(), r#"{"path":"a"}"#);
    }

    proptest! {
        #[test]
        fn long_strings_parse_like_short_ones(
            texts in prop::collection::vec(
                r#"([a-zé😀]|\\["\\/bfnrtux]|\\u00e[0-9]|\\ud83d\\ude00|\\ud83d|\\ude00){0,8}"#, 1..4
            ),
            end in r#"[\]} ,]?"#,
        ) {
            let fields: Vec<String> = (0..).zip(&texts).map(|(name, text)| format!(r#""{name}": "{text}""#)).collect();
            let filler = format!(r#""long": "{}""#, "x".repeat(LONG));
            let short = format!("{{{}}}{end}", fields.join(", "));
            let long = format!("{{{}, {filler}}}{end}", fields.join(", "));
            let expected = serde_json::from_str::<Map<String, Value>>(&short).ok().map(|mut map| {
                map.insert("long".to_owned(), "x".repeat(LONG).into());
                map
            });
            prop_assert_eq!(object_of(&long), expected);
            let body = texts.concat();
            let expected = serde_json::from_str::<String>(&format!("\"{body}\"")).ok();
            prop_assert_eq!(unescape(&body).filter(|_| expected.is_some()), expected.clone());
            if body.contains(r"\ud83d") || body.contains(r"\ude00") {
                prop_assert_eq!(unescape(&body), expected);
            }
        }
    }
}
