//! The JSON of a request: a provider's options merged in, the conversation last.
//!
//! What was serialised before is written as it is, and not copied where it is large: a history of many megabytes goes
//! out with each request of a session.

mod fields;
mod pieces;

pub(crate) use self::fields::{Fields, joined, merge_options};
pub(crate) use self::pieces::Body;

use bytes::Bytes;
use serde::Serialize;

/// Serialises one fragment of a request.
pub(crate) fn fragment(value: &impl Serialize) -> Bytes {
    // A value always serialises; `null` is what is left to say otherwise.
    serde_json::to_vec(value).map_or(Bytes::from_static(b"null"), |json| json.into_boxed_slice().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_longer_conversation_begins_with_the_bytes_of_a_shorter_one() {
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
