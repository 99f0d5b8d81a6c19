//! Parsing of a complete block of calls.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::OfferedTools;

/// A call parsed from text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParsedCall {
    pub(super) name: String,
    /// JSON of an object.
    pub(super) arguments: String,
}

/// Parses the JSON of a call, or of a list of calls.
pub(super) fn json(text: &str) -> Option<Vec<ParsedCall>> {
    if text.trim_start().starts_with('[') {
        let calls: Vec<CallRecord<'_>> = serde_json::from_str(text).ok()?;
        return calls.into_iter().map(CallRecord::into_call).collect();
    }
    let call: CallRecord<'_> = serde_json::from_str(text).ok()?;
    Some(vec![call.into_call()?])
}

/// Parses a call whose name is outside of the JSON of its arguments.
pub(super) fn call_with_name(name: &str, arguments: &str) -> Option<ParsedCall> {
    let arguments: &RawValue = serde_json::from_str(arguments.trim()).ok()?;
    Some(ParsedCall { name: name.trim().to_owned(), arguments: object(arguments)? })
}

/// Parses `<function=NAME>`, arguments as JSON or as `<parameter=…>` elements, and `</function>`.
pub(super) fn function(text: &str, tools: &OfferedTools) -> Option<ParsedCall> {
    let (name, body) = text.trim().strip_prefix("<function=")?.split_once('>')?;
    let body = body.trim();
    let ended = body.strip_suffix("</function>");
    if body.starts_with('{') {
        return call_with_name(name, ended.unwrap_or(body));
    }
    let arguments = parameters(ended?, |parameter| tools.takes_text(name, parameter))?;
    Some(ParsedCall { name: name.to_owned(), arguments: Value::Object(arguments).to_string() })
}

/// Parses DeepSeek's calls: `TYPE⟨sep⟩NAME` before fenced arguments, or `NAME⟨sep⟩` before bare ones.
pub(super) fn deep_seek(text: &str) -> Option<Vec<ParsedCall>> {
    let mut calls = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (call, after) = rest.strip_prefix("<｜tool▁call▁begin｜>")?.split_once("<｜tool▁call▁end｜>")?;
        let (before, body) = call.split_once("<｜tool▁sep｜>")?;
        calls.push(match body.trim().strip_suffix("```").and_then(|body| body.split_once("```json")) {
            Some((name, arguments)) => call_with_name(name, arguments)?,
            None => call_with_name(before, body)?,
        });
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}

/// JSON of a call. With any other key it is not a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallRecord<'t> {
    name: Option<String>,
    #[serde(borrow, alias = "parameters")]
    arguments: Option<&'t RawValue>,
    /// The call in the format of Chat Completions.
    #[serde(borrow)]
    function: Option<Box<CallRecord<'t>>>,
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
    #[serde(rename = "type")]
    _kind: Option<IgnoredAny>,
}

impl CallRecord<'_> {
    fn into_call(self) -> Option<ParsedCall> {
        match (self.name, self.arguments, self.function) {
            (Some(name), Some(arguments), None) => Some(ParsedCall { name, arguments: object(arguments)? }),
            (None, None, Some(call)) if call.function.is_none() => call.into_call(),
            _ => None,
        }
    }
}

/// Returns the JSON of an object, which may be encoded as a string.
fn object(value: &RawValue) -> Option<String> {
    let text = value.get();
    let text = if text.starts_with('"') { serde_json::from_str(text).ok()? } else { text.to_owned() };
    serde_json::from_str::<Map<String, Value>>(&text).ok().map(|_| text)
}

const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";

/// Parses `<parameter=…>` elements.
fn parameters(body: &str, takes_text: impl Fn(&str) -> bool) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    let mut rest = body.trim();
    while !rest.is_empty() {
        let (name, after) = rest.strip_prefix(PARAMETER)?.split_once('>')?;
        let end = value_end(after)?;
        let (value, after) = after.split_at_checked(end)?;
        let value = trim_line_breaks(value);
        let typed = (!takes_text(name)).then(|| serde_json::from_str(value.trim()).ok()).flatten();
        arguments.insert(name.trim().to_owned(), typed.unwrap_or_else(|| value.into()));
        rest = after.strip_prefix(PARAMETER_END)?.trim_start();
    }
    Some(arguments)
}

/// Returns the end of a value: the first end marker followed by another parameter or by nothing, since the value may
/// itself contain such markers.
fn value_end(text: &str) -> Option<usize> {
    text.match_indices(PARAMETER_END).map(|(offset, _)| offset).find(|offset| {
        let after = text.get(offset + PARAMETER_END.len()..).unwrap_or_default().trim_start();
        after.is_empty() || after.starts_with(PARAMETER)
    })
}

/// Removes the line breaks between a value and its markers.
fn trim_line_breaks(value: &str) -> &str {
    let value = value.strip_prefix('\n').unwrap_or(value);
    value.strip_suffix('\n').unwrap_or(value)
}
