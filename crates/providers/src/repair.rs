//! Repair of invalid Unicode in the JSON of a response: bytes that are not UTF-8, and escaped lone surrogates.
//!
//! One such character must not discard a complete response, so it is replaced by U+FFFD and counted. Arguments of tool
//! calls are exempt: a changed argument would be written to a file or executed.

use std::borrow::Cow;
use std::str;
use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;
use pintle_llm::{Error, ErrorKind, Warning};
use serde::Deserialize;

use crate::dialect::SseEvent;
use crate::lenient::AnyText;

/// Keys of call arguments in all dialects, complete or partial.
const ARGUMENTS: [&str; 5] = ["arguments", "args", "partialArgs", "partial_json", "input"];

/// Escape that marks an invalid byte sequence for [`repair`]: a lone surrogate.
const MARK: &[u8] = br"\udfff";

/// Replacement of a lone surrogate, of the same length.
const REPLACEMENT: &str = r"\ufffd";

/// Finder of escapes such as `\ud83d`.
static UNIT_ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br"\u"));

/// Length in bytes of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// JSON whose strings are valid Unicode.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepairedJson<'a> {
    pub(crate) json: Cow<'a, str>,
    /// Number of replaced characters.
    pub(crate) replaced: u64,
}

/// Replaces invalid UTF-8 by an escape that [`repair`] replaces.
pub(crate) fn mark_invalid_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = Vec::with_capacity(bytes.len() + MARK.len());
    for chunk in bytes.utf8_chunks() {
        text.extend_from_slice(chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            text.extend_from_slice(MARK);
        }
    }
    Cow::Owned(String::from_utf8(text).unwrap_or_default())
}

/// Replaces escaped lone surrogates in the data of an event. JSON without any is returned unchanged.
///
/// # Errors
///
/// [`ErrorKind::Stream`] if there is one in the arguments of a call.
pub(crate) fn repair(event: SseEvent<'_>) -> Result<RepairedJson<'_>, Error> {
    let json = event.data;
    if next_lone_surrogate(json.as_bytes(), 0).is_none() {
        return Ok(RepairedJson { json: Cow::Borrowed(json), replaced: 0 });
    }
    let (mut repaired, mut replaced, mut copied) = (String::with_capacity(json.len()), 0, 0);
    let mut in_arguments = false;
    for string in Strings::new(json) {
        // Limited to this string, so that each byte is scanned once.
        let upto = json.as_bytes().get(..string.end).unwrap_or_default();
        let mut from = string.start;
        while let Some(at) = next_lone_surrogate(upto, from) {
            in_arguments |= string.in_arguments;
            repaired.push_str(json.get(copied..at).unwrap_or_default());
            repaired.push_str(REPLACEMENT);
            (from, copied) = (at + ESCAPE, at + ESCAPE);
            replaced += 1;
        }
    }
    repaired.push_str(json.get(copied..).unwrap_or_default());
    if in_arguments || is_arguments_event(SseEvent { data: &repaired, ..event }) {
        let message = "the arguments of a tool call contain an invalid Unicode character";
        return Err(Error::new(ErrorKind::Stream, message));
    }
    Ok(RepairedJson { json: Cow::Owned(repaired), replaced })
}

/// Detector of anything in a stream that [`repair`] may have to replace. While a stream is ASCII without escaped code
/// units, its events need no repair.
#[derive(Debug, Default)]
pub(crate) struct RepairDetector {
    found: bool,
    /// Whether the previous read ended in a backslash.
    after_backslash: bool,
}

impl RepairDetector {
    /// Scans the next bytes; returns whether these or earlier bytes may need a repair.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> bool {
        if !self.found {
            let is_split = self.after_backslash && bytes.first() == Some(&b'u');
            self.after_backslash = bytes.last().map_or(self.after_backslash, |last| *last == b'\\');
            self.found = is_split || !bytes.is_ascii() || UNIT_ESCAPE.find(bytes).is_some();
        }
        self.found
    }
}

/// Returns the warning for replaced characters.
pub(crate) fn warning(replaced: u64) -> Warning {
    let (noun, were) = if replaced == 1 { ("character", "was") } else { ("characters", "were") };
    let message = format!("{replaced} invalid Unicode {noun} of the response {were} replaced by U+FFFD");
    tracing::warn!(replaced, "replaced invalid Unicode characters of a response");
    Warning { message, code: Some(Warning::REPLACED_CHARACTERS.to_owned()) }
}

/// Type field of an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyText<'a>,
}

/// Returns whether this is an event of the Responses API whose `delta` or `text` is an argument.
fn is_arguments_event(event: SseEvent<'_>) -> bool {
    let kind = serde_json::from_str::<Kind<'_>>(event.data).unwrap_or_default().kind;
    let kind = kind.non_empty().unwrap_or(event.name);
    ["_call_arguments.", "_call_input."].iter().any(|part| kind.contains(part))
}

/// Returns the position of the next escaped lone surrogate. `from` must not be inside an escape.
fn next_lone_surrogate(json: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let start = at + memchr(b'\\', json.get(at..)?)?;
        at = match escaped_unit(json, start) {
            // Another escape.
            None => start + 2,
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(json, start + ESCAPE), Some(0xDC00..=0xDFFF)) => {
                start + 2 * ESCAPE
            }
            Some(0xD800..=0xDFFF) => return Some(start),
            Some(_) => start + ESCAPE,
        }
    }
}

/// Returns the UTF-16 code unit that is escaped at `at`.
fn escaped_unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(br"\u")?;
    let digits = str::from_utf8(digits).ok()?;
    // `from_str_radix` accepts a sign.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Range of a JSON string, without its quotation marks.
struct JsonString {
    start: usize,
    end: usize,
    in_arguments: bool,
}

/// Iterator over all strings of a JSON text, including keys. Malformed JSON yields arbitrary strings.
struct Strings<'a> {
    json: &'a [u8],
    at: usize,
    /// For each open object and list, whether it is within arguments.
    open: Vec<bool>,
    /// Whether the next value is the value of an arguments key.
    after_arguments_key: bool,
}

impl<'a> Strings<'a> {
    fn new(json: &'a str) -> Self {
        Self { json: json.as_bytes(), at: 0, open: Vec::new(), after_arguments_key: false }
    }

    /// Returns the end of the string that starts at `start`.
    fn end(&self, start: usize) -> usize {
        let mut at = start;
        loop {
            match self.json.get(at) {
                Some(b'\\') => at += 2,
                Some(b'"') | None => return at.min(self.json.len()),
                Some(_) => at += 1,
            }
        }
    }

    fn is_inside_arguments(&self) -> bool {
        self.open.last().copied().unwrap_or_default()
    }

    fn is_followed_by_colon(&self, end: usize) -> bool {
        let behind = self.json.get(end + 1..).unwrap_or_default();
        behind.trim_ascii_start().first() == Some(&b':')
    }
}

impl Iterator for Strings<'_> {
    type Item = JsonString;

    fn next(&mut self) -> Option<JsonString> {
        loop {
            let byte = *self.json.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => {
                    let (start, end) = (self.at, self.end(self.at));
                    self.at = end + 1;
                    let in_arguments = self.is_inside_arguments() || self.after_arguments_key;
                    let text = self.json.get(start..end).unwrap_or_default();
                    self.after_arguments_key = self.is_followed_by_colon(end)
                        && ARGUMENTS.iter().any(|name| name.as_bytes() == text);
                    return Some(JsonString { start, end, in_arguments });
                }
                b'{' | b'[' => {
                    self.open.push(self.is_inside_arguments() || self.after_arguments_key);
                    self.after_arguments_key = false;
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.after_arguments_key = false;
                }
                b',' => self.after_arguments_key = false,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn repair(json: &str) -> Result<RepairedJson<'_>, Error> {
        super::repair(SseEvent { name: "", data: json })
    }

    #[test]
    fn detector_finds_the_first_escaped_code_unit() {
        for (reads, expected) in [
            (&["plain \\n text", "more"][..], [false, false]),
            (&["a \\u00e9", "more"], [true, true]),
            (&["cut \\", "u00e9"], [false, true]),
            (&["cut \\", "n"], [false, false]),
            (&["plain", "é"], [false, true]),
        ] {
            let mut detector = RepairDetector::default();
            let found: Vec<bool> = reads.iter().map(|read| detector.scan(read.as_bytes())).collect();
            assert_eq!(found, expected, "{reads:?}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        let cases = [
            (r#"{"text": "plain"}"#, r#"{"text": "plain"}"#, 0),
            (r#"{"text": "\ud83d\ude00 \u00e9 \\ud83d"}"#, r#"{"text": "\ud83d\ude00 \u00e9 \\ud83d"}"#, 0),
            (r#"{"text": "a\ud83d"}"#, r#"{"text": "a\ufffd"}"#, 1),
            (r#"{"text": "\uDE00\\\uD83D\n"}"#, r#"{"text": "\ufffd\\\ufffd\n"}"#, 2),
            (r#"{"text": "\ud83d\ud83d\ude00"}"#, r#"{"text": "\ufffd\ud83d\ude00"}"#, 1),
            (r#"{"\ud800": ["\udc00", {"b": "\ud800x"}]}"#, r#"{"\ufffd": ["\ufffd", {"b": "\ufffdx"}]}"#, 3),
            (r#"{"args": {}, "text": "\ud800"}"#, r#"{"args": {}, "text": "\ufffd"}"#, 1),
            (r#"{"a": [{"input": "x"}], "b": "\ud800"}"#, r#"{"a": [{"input": "x"}], "b": "\ufffd"}"#, 1),
            (
                r#"{"type": "x", "text": "\"response.function_call_arguments.delta\" \ud800"}"#,
                r#"{"type": "x", "text": "\"response.function_call_arguments.delta\" \ufffd"}"#,
                1,
            ),
            (r#"{"a": "input", "b": "\ud800"}"#, r#"{"a": "input", "b": "\ufffd"}"#, 1),
        ];
        for (json, expected, replaced) in cases {
            let found = repair(json).unwrap();
            assert_eq!((found.json.as_ref(), found.replaced), (expected, replaced), "{json}");
            assert!(serde_json::from_str::<Value>(&found.json).is_ok(), "{json}");
        }
    }

    /// A quadratic search needs minutes for this.
    #[test]
    fn repair_is_linear_in_the_number_of_strings() {
        let json = format!(r#"[{}"\ud800"]"#, r#""x","#.repeat(1_000_000));
        assert_eq!(repair(&json).unwrap().replaced, 1);
    }

    #[test]
    fn lone_surrogates_in_arguments_are_errors() {
        let event =
            SseEvent { name: "response.function_call_arguments.delta", data: r#"{"delta": "\ud800"}"# };
        assert!(super::repair(event).is_err());
        for json in [
            r#"{"function": {"arguments": "{\"a\": \"\ud800\"}"}}"#,
            r#"{"functionCall": {"args": {"list": [{"text": "\ud800"}]}}}"#,
            r#"{"args": {"\ud800": 1}}"#,
            r#"{"partialArgs": [{"stringValue": "\ud800"}]}"#,
            r#"{"delta": {"partial_json": "\ud800"}}"#,
            r#"{"type": "tool_use", "input" : {"a": "\ud800"}}"#,
            r#"{"type": "response.function_call_arguments.delta", "delta": "\ud800"}"#,
            r#"{"delta": "\ud800", "type": "response.custom_tool_call_input.delta"}"#,
        ] {
            let error = repair(json).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Stream, "{json}");
            assert!(error.message().contains("arguments of a tool call"), "{json}");
        }
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let cases: [(&[u8], &str, u64); 4] = [
            ("{\"text\": \"é\"}".as_bytes(), "{\"text\": \"é\"}", 0),
            (b"{\"text\": \"a\xffb\"}", r#"{"text": "a\ufffdb"}"#, 1),
            (b"{\"text\": \"\xf0\x9f\x98\"}", r#"{"text": "\ufffd"}"#, 1),
            (b"{\"text\": \"\xc3(\xff\xff\"}", r#"{"text": "\ufffd(\ufffd\ufffd"}"#, 3),
        ];
        for (bytes, expected, replaced) in cases {
            let marked = mark_invalid_bytes(bytes);
            let found = repair(&marked).unwrap();
            assert_eq!((found.json.as_ref(), found.replaced), (expected, replaced));
        }
        assert!(repair(&mark_invalid_bytes(b"{\"arguments\": \"\xff\"}")).is_err());
    }

    proptest! {
        #[test]
        fn repaired_json_parses(parts in prop::collection::vec(prop_oneof![
            Just(r"\ud83d"), Just(r"\ude00"), Just(r"\\"), Just(r#"\""#), Just("u"), Just("d83d"), Just(r"\u00e9"), Just("é"),
        ], 0..12)) {
            let json = format!(r#"{{"text": "{}"}}"#, parts.concat());
            let found = repair(&json).unwrap();
            let read: Value = serde_json::from_str(&found.json).unwrap();
            let replaced = read["text"].as_str().unwrap().matches('\u{fffd}').count();
            prop_assert_eq!(replaced as u64, found.replaced);
            prop_assert_eq!(found.replaced == 0, serde_json::from_str::<Value>(&json).is_ok());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(prop_oneof![
            Just(b'\\'), Just(b'u'), Just(b'd'), Just(b'8'), Just(b'"'), Just(b'{'), Just(b'}'), Just(b'['), Just(b':'), Just(0xff), Just(b'+'), any::<u8>(),
        ], 0..60)) {
            let _ = repair(&mark_invalid_bytes(&bytes));
        }
    }
}
