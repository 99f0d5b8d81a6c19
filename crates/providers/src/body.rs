//! JSON bodies of requests, with the provider's options merged in and the conversation last.
//!
//! Serialised fragments are reused, and large ones are not copied: a session sends a history of many megabytes with each
//! request.

mod chunks;
mod fields;

pub(crate) use self::chunks::Body;
pub(crate) use self::fields::{Fields, joined, merge_options};

use std::io::{self, Write};

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Serialises one fragment of a request.
///
/// A long fragment is measured first, because a growing buffer would briefly hold up to half as much again.
pub(crate) fn fragment(value: &impl Serialize) -> Bytes {
    let mut prefix = Prefix::default();
    // Serialising never fails for the values used here; `null` is the fallback.
    if serde_json::to_writer(&mut prefix, value).is_err() {
        return Bytes::from_static(b"null");
    }
    if prefix.bytes.len() == prefix.length {
        return prefix.bytes.into_boxed_slice().into();
    }
    let mut bytes = Vec::with_capacity(prefix.length);
    drop(prefix);
    match serde_json::to_writer(&mut bytes, value) {
        Ok(()) => bytes.into_boxed_slice().into(),
        Err(_) => Bytes::from_static(b"null"),
    }
}

/// Arguments of a call for an API that accepts objects only. Anything else, such as free text or truncated arguments,
/// becomes the argument `input`.
pub(crate) struct ObjectArguments<'a>(pub(crate) &'a Value);

impl Serialize for ObjectArguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_object() {
            self.0.serialize(serializer)
        } else {
            serializer.collect_map([("input", self.0)])
        }
    }
}

/// Writer that counts all bytes and keeps them up to [`Prefix::MAX`].
#[derive(Default)]
struct Prefix {
    bytes: Vec<u8>,
    length: usize,
}

impl Prefix {
    /// Maximum number of bytes kept.
    const MAX: usize = 64 << 10;
}

impl Write for Prefix {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// A serialiser writes many short pieces, for which the loop of the default implementation is most of the work.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len();
        if self.length <= Self::MAX {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fragments_of_any_length_match_serde_json() {
        for length in [0, 1, Prefix::MAX - 3, Prefix::MAX - 2, Prefix::MAX - 1, 3 * Prefix::MAX] {
            let value = json!("x".repeat(length));
            let fragment = fragment(&value);
            assert_eq!(fragment, value.to_string());
        }
    }

    #[test]
    fn longer_conversations_extend_the_bytes_of_shorter_ones() {
        let mut fields = Fields::default();
        fields.insert("model".to_owned(), "m".into());
        fields.set_serialised("tools", joined("[", [], "]"));
        let items: Vec<_> = ["a", "b"].iter().map(|text| fragment(&json!({"text": text}))).collect();
        let body = |items: &[Bytes]| {
            let mut body = fields.clone().into_body("input");
            body.share_all(items);
            body.write(b"]}");
            String::from_utf8(body.to_vec()).unwrap()
        };
        let (short, long) = (body(&items[..1]), body(&items));
        assert_eq!(long, r#"{"model":"m","tools":[],"input":[{"text":"a"},{"text":"b"}]}"#);
        assert!(long.starts_with(&short[..short.len() - 2]));
    }
}
