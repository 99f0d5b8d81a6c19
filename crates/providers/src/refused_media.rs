//! Media that a provider names as the reason of a refusal.
//!
//! Providers name a position in the request that they received, such as `messages.3.content.1.image.source.base64.data` or
//! `input[2].content[0].image_url`. The position is looked up in the encoded request, because encoding merges and reorders
//! messages.

use pintle_llm::{ContentPart, Error, ErrorKind, Fingerprint, MediaSource, Request, Retry};
use serde_json::Value;

use crate::failure;

/// Keys of a request that hold the conversation, in all dialects.
const ROOTS: [&str; 3] = ["messages", "contents", "input"];

/// Keys of an error body that can lead to a position. Others may quote the conversation.
const KEYS: [&str; 13] = [
    "error",
    "errors",
    "message",
    "msg",
    "param",
    "field",
    "loc",
    "detail",
    "details",
    "fieldViolations",
    "description",
    "metadata",
    "raw",
];

/// Data or URL of a media block, in all dialects.
const SOURCES: [&str; 9] = [
    "/source/data",
    "/source/url",
    "/image_url/url",
    "/image_url",
    "/input_audio/data",
    "/file/file_data",
    "/file_data",
    "/inlineData/data",
    "/fileData/fileUri",
];

/// Segments of a path that name media.
const MEDIA: [&str; 14] = [
    "image",
    "image_url",
    "input_image",
    "source",
    "audio",
    "input_audio",
    "document",
    "file",
    "input_file",
    "file_data",
    "fileData",
    "inline_data",
    "inlineData",
    "media",
];

/// Returns whether the error may name media. The check is cheap; [`find`] needs the encoded request.
pub(crate) fn may_be_named(error: &Error) -> bool {
    let is_refusal = matches!(error.kind(), ErrorKind::InvalidRequest | ErrorKind::ContextLength);
    (is_refusal || is_unclassified(error)) && texts(error).iter().any(|text| !positions(text).is_empty())
}

/// Returns whether neither a status nor a known code classified the error, as for some errors in a stream.
fn is_unclassified(error: &Error) -> bool {
    error.kind() == ErrorKind::Server
        && error.status().is_none()
        && !error.error_code().is_some_and(failure::is_known)
}

/// Sets the media that the error names. An error that nothing else classified is a refusal then, and no retry helps.
pub(crate) fn set(error: Error, media: Fingerprint) -> Error {
    if !is_unclassified(&error) {
        return error.with_refused_media(media);
    }
    let mut info = error.info().clone();
    info.kind = ErrorKind::InvalidRequest;
    info.retry = Retry::Never;
    Error::from(info).with_refused_media(media)
}

/// Returns the fingerprint of the media that the error names, where `sent` is the encoded request.
pub(crate) fn find(error: &Error, sent: &[u8], request: &Request) -> Option<Fingerprint> {
    let sent: Value = serde_json::from_slice(sent).ok()?;
    let texts = texts(error);
    let paths = texts.iter().flat_map(|text| positions(text));
    paths.filter_map(|path| media_at(&sent, &path)).find_map(|media| fingerprint_of(media, request))
}

/// Returns the texts of an error that can name a position.
fn texts(error: &Error) -> Vec<String> {
    let mut texts = vec![error.message().to_owned()];
    if let Some(raw) = error.raw() {
        collect(raw, &mut texts);
    }
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => match location(items) {
            Some(path) => texts.push(path),
            None => items.iter().for_each(|item| collect(item, texts)),
        },
        Value::Object(fields) => {
            let known = fields.iter().filter(|(name, _)| KEYS.contains(&name.as_str()));
            known.for_each(|(_, value)| collect(value, texts));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a list of keys and indices, as in `loc` of `pydantic`, in the form of a path.
fn location(items: &[Value]) -> Option<String> {
    let segments: Option<Vec<String>> = items
        .iter()
        .map(|item| item.as_str().map(str::to_owned).or_else(|| item.as_u64().map(|index| index.to_string())))
        .collect();
    segments.filter(|_| items.iter().any(Value::is_u64)).map(|segments| segments.join("."))
}

/// Returns the positions that a text names, each as the segments of its path.
fn positions(text: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for root in ROOTS {
        for (at, _) in text.match_indices(root) {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let rest = text.get(at..).unwrap_or_default();
            let end = rest.find(|c: char| !is_name(c) && !is_separator(c)).unwrap_or(rest.len());
            let path = rest.get(..end).unwrap_or_default();
            let segments: Vec<&str> =
                path.split(is_separator).filter(|segment| !segment.is_empty()).collect();
            let is_indexed = segments.first() == Some(&root)
                && segments.get(1).is_some_and(|index| index.parse::<usize>().is_ok());
            let is_whole_word = before.is_none_or(|c| !is_name(c));
            if is_indexed && is_whole_word {
                found.push(segments);
            }
        }
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_separator(c: char) -> bool {
    matches!(c, '.' | '[' | ']' | '/')
}

/// Returns the data or URL of the media block on this path. If the path names media and none are there, they are the only
/// ones nearby: servers that translate requests count blocks differently.
fn media_at<'a>(sent: &'a Value, path: &[&str]) -> Option<&'a str> {
    let (mut here, mut found) = (sent, None);
    let mut passed = vec![sent];
    for segment in path {
        here = match child(here, segment) {
            Some(child) => child,
            // Some validators put the type of a block between its keys.
            None if here.get("type").and_then(Value::as_str) == Some(*segment) => here,
            None => break,
        };
        passed.push(here);
        found = source_of(here).or(found);
    }
    let names_media = path.iter().any(|segment| MEDIA.contains(segment));
    found.or_else(|| passed.iter().rev().filter(|_| names_media).find_map(|value| only_source(value)))
}

/// Returns the data or URL of the only media block inside a value.
fn only_source(value: &Value) -> Option<&str> {
    let mut sources = Vec::new();
    sources_in(value, &mut sources);
    match sources.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn sources_in<'a>(value: &'a Value, sources: &mut Vec<&'a str>) {
    if let Some(source) = source_of(value) {
        sources.push(source);
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| sources_in(item, sources)),
        Value::Object(fields) => fields.values().for_each(|field| sources_in(field, sources)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn child<'a>(value: &'a Value, segment: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        Value::Object(fields) => fields.get(segment).or_else(|| {
            let mut fields = fields.iter();
            fields.find(|(name, _)| is_same_key(name, segment)).map(|(_, value)| value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns whether two keys differ in their case style only: Gemini accepts `inlineData` and names `inline_data`.
fn is_same_key(one: &str, other: &str) -> bool {
    let letters = |text: &str| text.replace('_', "").to_ascii_lowercase();
    letters(one) == letters(other)
}

fn source_of(block: &Value) -> Option<&str> {
    SOURCES.iter().find_map(|path| block.pointer(path)?.as_str())
}

/// Returns the fingerprint of the media in the request that are sent as this data or URL.
fn fingerprint_of(sent: &str, request: &Request) -> Option<Fingerprint> {
    let data = sent.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).map(|(_, data)| data);
    let data = data.unwrap_or(sent);
    let is_sent = |source: &MediaSource| match source {
        MediaSource::Url(url) => url == sent,
        // Base64 has four characters for three bytes. The lengths are compared first, because encoding is slow.
        MediaSource::Data(bytes) => {
            bytes.as_bytes().len().div_ceil(3) * 4 == data.len() && bytes.to_base64() == data
        }
        MediaSource::Path(_) | _ => false,
    };
    let mut media = request.messages.iter().flat_map(|item| &item.content).flat_map(ContentPart::media);
    media.find(|source| is_sent(source)).map(MediaSource::fingerprint)
}

#[cfg(test)]
mod tests {
    use pintle_llm::{ImageData, Message, ToolResult};
    use serde_json::json;

    use super::*;

    fn image(byte: u8) -> ImageData {
        ImageData::data(vec![byte, 0, 255], "image/png")
    }

    fn base64(image: &ImageData) -> String {
        let MediaSource::Data(bytes) = &image.source else { panic!("{image:?} has no bytes") };
        bytes.to_base64()
    }

    /// Two images of tool results, one of the user, and one at a URL.
    fn request() -> Request {
        let results = [image(1), image(2)].map(|image| ToolResult::new("c", "seen", false).with_image(image));
        Request::new(
            "m",
            [
                Message::user("look"),
                Message::tool_results(results.into()),
                Message::user("and")
                    .with_part(image(3).into())
                    .with_part(ImageData::url("https://x/4").into()),
            ],
        )
    }

    #[test]
    fn the_named_media_are_found_in_every_dialect() {
        let uri = |byte| format!("data:image/png;base64,{}", base64(&image(byte)));
        let block = |byte| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": base64(&image(byte))}});
        let result = |byte| json!({"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "seen"}, block(byte)]});
        let anthropic = json!({"messages": [
            {"role": "user", "content": "look"},
            {"role": "user", "content": [result(1), result(2), block(3), {"type": "image", "source": {"type": "url", "url": "https://x/4"}}]},
        ]});
        let chat = json!({"messages": [
            {"role": "tool", "tool_call_id": "c", "content": "seen"},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": uri(1)}},
                {"type": "image_url", "image_url": {"url": uri(2)}},
                {"type": "image_url", "image_url": {"url": "https://x/4"}},
            ]},
        ]});
        let responses = json!({"input": [
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": uri(1)}]},
            {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": uri(3)}]},
        ]});
        let gemini = json!({"contents": [
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "parts": [{"inlineData": {"mimeType": "image/png", "data": base64(&image(2))}}]}}]},
            {"role": "user", "parts": [{"fileData": {"fileUri": "https://x/4"}}]},
        ]});
        let url = Fingerprint::from_bytes(b"https://x/4");
        let of = |byte| image(byte).source.fingerprint();
        let cases = [
            (
                &anthropic,
                "messages.1.content.0.tool_result.content.1.image.source.base64.data: too large",
                Some(of(1)),
            ),
            (&anthropic, "messages.1.content.1.tool_result.content.1.image: too large", Some(of(2))),
            (&anthropic, "messages.1.content.2.image.source.base64: image exceeds 5 MB maximum", Some(of(3))),
            // The block is the text beside the image.
            (&anthropic, "messages.1.content.0.tool_result.content.0.image: too large", Some(of(1))),
            (&anthropic, "messages.1.content.3: cannot download", Some(url)),
            (&anthropic, "messages.1.content.0.tool_result.content.0.text: must not be empty", None),
            (&anthropic, "messages.0.content: text is missing", None),
            (&anthropic, "messages.9.content.1.image: out of range", None),
            (&anthropic, "no position is named", None),
            (&chat, "Invalid 'messages[1].content[1].image_url'. Expected a URL.", Some(of(2))),
            (&chat, "$.messages.[1].content.[0].image_url.url is invalid", Some(of(1))),
            (&chat, "/messages/1/content/2/image_url", Some(url)),
            (&chat, "submessages[1].content[1]", None),
            (&responses, "Invalid 'input[0].output[0].image_url'.", Some(of(1))),
            (&responses, "Invalid 'input[1].content[0].image_url'.", Some(of(3))),
            (&responses, "input 1 is invalid", None),
            (
                &gemini,
                "Invalid value at 'contents[0].parts[0].function_response.parts[0].inline_data'",
                Some(of(2)),
            ),
            (&gemini, "contents[1].parts[0].file_data: cannot fetch", Some(url)),
        ];
        for (sent, message, expected) in cases {
            let error = Error::new(ErrorKind::InvalidRequest, message);
            let found = find(&error, sent.to_string().as_bytes(), &request());
            assert_eq!(found, expected, "{message}");
            assert!(found.is_none() || may_be_named(&error), "{message}");
        }
    }

    #[test]
    fn positions_in_the_body_of_an_error_are_read() {
        let sent =
            json!({"messages": [{"content": [{"type": "image_url", "image_url": {"url": "https://x/4"}}]}]});
        let named = "messages[0].content[0].image_url";
        let cases = [
            (json!({"error": {"message": "Invalid image", "param": named}}), true),
            (json!({"error": {"details": [{"fieldViolations": [{"field": named}]}]}}), true),
            (
                json!({"detail": [{"loc": ["body", "messages", 0, "content", 0, "image_url"], "msg": "bad"}]}),
                true,
            ),
            (json!({"error": {"metadata": {"raw": json!({"error": {"message": named}}).to_string()}}}), true),
            (json!({"detail": [{"msg": "bad", "input": named}]}), false),
            (json!({"error": {"message": "Invalid image"}}), false),
        ];
        for (raw, is_named) in cases {
            let error = Error::new(ErrorKind::InvalidRequest, "Invalid image").with_raw(raw.clone());
            assert_eq!(may_be_named(&error), is_named, "{raw}");
            let found = find(&error, sent.to_string().as_bytes(), &request());
            assert_eq!(found.is_some(), is_named, "{raw}");
        }
    }

    #[test]
    fn other_failures_name_no_media() {
        let named = |kind| Error::new(kind, "messages.1.content.0.image");
        for error in [
            named(ErrorKind::Server).with_status(500),
            named(ErrorKind::Server).with_error_code("overloaded_error"),
            named(ErrorKind::RateLimit),
            named(ErrorKind::Authentication),
            named(ErrorKind::Stream),
        ] {
            assert!(!may_be_named(&error), "{error:?}");
        }
    }

    #[test]
    fn an_error_without_status_and_known_code_that_names_media_is_a_refusal() {
        for error in [
            Error::new(ErrorKind::Server, "messages.1.content.0.image"),
            Error::new(ErrorKind::Server, "messages.1.content.0.image").with_error_code("a_new_code"),
        ] {
            assert!(may_be_named(&error), "{error:?}");
            let set = set(error, Fingerprint::from_bytes(b"x"));
            assert_eq!((set.kind(), set.retry()), (ErrorKind::InvalidRequest, Retry::Never));
            assert_eq!(set.refused_media(), Some(Fingerprint::from_bytes(b"x")));
        }
    }
}
