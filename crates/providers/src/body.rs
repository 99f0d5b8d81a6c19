//! The JSON of a request: a provider's options merged in, the conversation last.
//!
//! What was serialised before is written as it is, and not copied where it is large: a history of many megabytes goes
//! out with each request of a session.

mod fields;
mod pieces;

pub(crate) use self::fields::{Fields, joined, merge_options};
pub(crate) use self::pieces::Body;

use std::io::{self, Write};

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Serialises one fragment of a request.
///
/// A long one is measured first, since a buffer that grows has half as much again of it in memory for a moment.
pub(crate) fn fragment(value: &impl Serialize) -> Bytes {
    let mut start = Start::default();
    // A value always serialises; `null` is what is left to say otherwise.
    if serde_json::to_writer(&mut start, value).is_err() {
        return Bytes::from_static(b"null");
    }
    if start.bytes.len() == start.length {
        return start.bytes.into_boxed_slice().into();
    }
    let mut whole = Vec::with_capacity(start.length);
    drop(start);
    match serde_json::to_writer(&mut whole, value) {
        Ok(()) => whole.into_boxed_slice().into(),
        Err(_) => Bytes::from_static(b"null"),
    }
}

/// The arguments of a call for an API that takes objects only: what is none, such as free text or arguments that were cut
/// off, becomes the argument `input`.
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

/// The length of what is written, with all of it if that is not long.
#[derive(Default)]
struct Start {
    bytes: Vec<u8>,
    length: usize,
}

impl Start {
    /// The most that is kept, in bytes.
    const MOST: usize = 64 << 10;
}

impl Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        if self.length <= Self::MOST {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
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
        for length in [0, 1, Start::MOST - 3, Start::MOST - 2, Start::MOST - 1, 3 * Start::MOST] {
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
