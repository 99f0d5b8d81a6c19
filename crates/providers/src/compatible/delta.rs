//! What messages and deltas have in common: content and reasoning in the shapes of many servers.

use std::borrow::Cow;

use pintle_llm::{Finish, FinishReason, Usage};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use crate::input_tokens;
use crate::lenient::{AnyCount, AnyText, First, Lenient, List, Object, lenient};

/// One chunk of a stream. What has another type than it should counts as not there.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) id: AnyText<'a>,
    #[serde(borrow)]
    pub(super) model: AnyText<'a>,
    #[serde(borrow)]
    object: AnyText<'a>,
    error: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) choices: First<Choice<'a>>,
    usage: Option<Value>,
    x_groq: Object<OfGroq>,
}

/// What Groq puts into a place of its own.
#[derive(Debug, serde::Deserialize)]
struct OfGroq {
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) delta: Object<Delta<'a>>,
    /// Boxed, since chunks hardly ever have one, and are moved as they are read.
    #[serde(borrow)]
    pub(super) message: Object<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: AnyText<'a>,
    usage: Option<Value>,
}

/// A delta, or a message, which is a delta that says all.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    /// DeepSeek and others give reasoning here, and want it back.
    #[serde(borrow)]
    reasoning_content: AnyText<'a>,
    #[serde(borrow)]
    reasoning: AnyText<'a>,
    pub(super) reasoning_details: List<Value>,
    #[serde(borrow)]
    refusal: AnyText<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: List<Object<CallPiece<'a>>>,
}

#[derive(Debug, Default)]
enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

/// A piece of a call.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct CallPiece<'a> {
    pub(super) index: AnyCount,
    #[serde(borrow)]
    pub(super) id: AnyText<'a>,
    #[serde(borrow)]
    pub(super) function: Object<Function<'a>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: AnyText<'a>,
    #[serde(borrow)]
    pub(super) arguments: Arguments<'a>,
}

/// The arguments of a call: a text, or a value where a server did not write it as one.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a>(pub(super) Cow<'a, str>);

/// A piece of what a model says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Reasoning(&'a str),
    Text(&'a str),
}

/// The field in which DeepSeek and others give reasoning, and want it back.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// The key under which a piece of reasoning keeps the field that it came in.
pub(super) const FIELD: &str = "field";

impl Chunk<'_> {
    /// Whether it is a complaint.
    pub(super) fn is_error(&self) -> bool {
        self.error.is_some() || self.object.0.as_deref() == Some("error")
    }

    /// The usage, where there is one: at the top, or where Groq and Moonshot put it.
    pub(super) fn take_usage(&mut self) -> Option<Usage> {
        let of_groq = self.x_groq.0.as_mut().map(|groq| &mut groq.usage);
        let of_choice = self.choices.0.as_mut().map(|choice| &mut choice.usage);
        let places = [Some(&mut self.usage), of_groq, of_choice];
        let mut found = places.into_iter().flatten().filter_map(Option::take);
        found.find(Value::is_object).map(usage)
    }
}

impl Delta<'_> {
    /// Whether it has reasoning in the field that wants it back.
    pub(super) fn has_reasoning_content(&self) -> bool {
        self.reasoning_content.filled().is_some()
    }

    /// What it says, in order. Reasoning stands under `reasoning_content` or `reasoning`, or in the content itself where
    /// that is a list.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let reasoning = self.reasoning_content.filled().or_else(|| self.reasoning.filled());
        let (text, parts) = match &self.content {
            Content::Nothing => (None, &[][..]),
            Content::Text(text) => (Some(text.as_ref()).filter(|text| !text.is_empty()), &[][..]),
            Content::Parts(parts) => (None, parts.as_slice()),
        };
        let said = reasoning.map(Piece::Reasoning).into_iter().chain(text.map(Piece::Text));
        said.chain(parts.iter().flat_map(pieces_of_part))
    }

    /// The refusal, where it is one.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.filled()
    }
}

impl<'de> Lenient<'de> for Content<'de> {
    fn of_text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }

    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        List::of_list(list).map(|List(parts)| Self::Parts(parts))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::<Content<'de>, D>(deserializer)
    }
}

impl<'de> Lenient<'de> for Arguments<'de> {
    fn of_text(text: Cow<'de, str>) -> Self {
        Self(text)
    }

    fn of_scalar(value: Value) -> Self {
        Self(value.to_string().into())
    }

    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        List::of_list(list).map(|List(entries)| Self::of_scalar(Value::Array(entries)))
    }

    fn of_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let object = Object::of_object(object)?;
        Ok(object.0.map(|fields| Self::of_scalar(Value::Object(fields))).unwrap_or_default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::<Arguments<'de>, D>(deserializer)
    }
}

fn pieces_of_part(part: &Value) -> Vec<Piece<'_>> {
    match part.get("thinking") {
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| text(part.get("text")?)).map(Piece::Reasoning).collect()
        }
        Some(thinking) => text(thinking).map(Piece::Reasoning).into_iter().collect(),
        None => part.get("text").and_then(text).map(Piece::Text).into_iter().collect(),
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// Adds a delta's `reasoning_details` to those before: texts of the same entry grow, other fields replace.
pub(super) fn merge_details(held: &mut Vec<Value>, entries: Vec<Value>) {
    for entry in entries {
        let same =
            |other: &Value| ["type", "index", "id"].iter().all(|key| other.get(*key) == entry.get(*key));
        match (held.last_mut().filter(|last| same(last)), entry) {
            (Some(Value::Object(last)), Value::Object(fields)) => merge_entry(last, fields),
            (_, entry) => held.push(entry),
        }
    }
}

fn merge_entry(last: &mut Map<String, Value>, fields: Map<String, Value>) {
    for (key, value) in fields {
        let grows = matches!(key.as_str(), "text" | "summary" | "data");
        match (last.get_mut(&key), value) {
            (Some(Value::String(before)), Value::String(more)) if grows => before.push_str(&more),
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(key, value);
            }
        }
    }
}

/// The unified reason. Some servers say `stop` although the model calls or refuses.
pub(super) fn finish_reason(raw: Option<&str>, called: bool, refused: bool) -> FinishReason {
    let reason = match raw {
        Some("stop" | "eos" | "eos_token" | "end_turn") | None if called => Finish::ToolCalls,
        Some("stop" | "eos" | "eos_token" | "end_turn") if refused => Finish::ContentFilter,
        Some("stop" | "eos" | "eos_token" | "end_turn") => Finish::Stop,
        Some("length" | "max_tokens" | "model_length") => Finish::Length,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("content_filter") => Finish::ContentFilter,
        Some("error") => Finish::Error,
        Some(_) | None => Finish::Other,
    };
    FinishReason { reason, raw: raw.map(str::to_owned) }
}

/// Token counts from the `usage` object. DeepSeek counts cache hits under a name of its own.
pub(super) fn usage(raw: Value) -> Usage {
    let count = |of: &Value, name: &str| of.get(name).and_then(Value::as_u64);
    let detail = |of: &str, name: &str| count(raw.get(of)?, name);
    let mut usage = Usage::new(
        count(&raw, "prompt_tokens").unwrap_or_default(),
        count(&raw, "completion_tokens").unwrap_or_default(),
    );
    if let Some(total) = count(&raw, "total_tokens") {
        usage.total_tokens = total;
    }
    usage.reasoning_tokens = detail("completion_tokens_details", "reasoning_tokens");
    let cached = detail("prompt_tokens_details", "cached_tokens");
    usage.cache_read_tokens = cached.or_else(|| count(&raw, "prompt_cache_hit_tokens"));
    let written = detail("prompt_tokens_details", "cache_write_tokens");
    usage.cache_write_tokens = written.filter(|written| *written > 0);
    input_tokens::include_cached_if_separate(&mut usage);
    usage.raw = Some(raw);
    usage
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chunks_of_many_servers_are_parsed() {
        use Piece::{Reasoning, Text};
        let rows = [
            (json!({"content": "a"}), vec![Text("a")]),
            (json!({"content": null, "reasoning_content": "r"}), vec![Reasoning("r")]),
            (json!({"content": "", "reasoning": "r"}), vec![Reasoning("r")]),
            (json!({"reasoning": "same", "reasoning_content": "same"}), vec![Reasoning("same")]),
            (
                json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "a"}]}),
                vec![Reasoning("r"), Text("a")],
            ),
            (json!({"content": [{"type": "thinking", "thinking": "r"}]}), vec![Reasoning("r")]),
            (json!({"content": []}), vec![]),
            (json!({}), vec![]),
        ];
        for (message, expected) in rows {
            let text = message.to_string();
            let delta: Delta<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!(delta.pieces().collect::<Vec<_>>(), expected, "{message}");
            // A whole answer's message is read from a value.
            let delta = Delta::deserialize(&message).unwrap();
            assert_eq!(delta.pieces().collect::<Vec<_>>(), expected, "{message}");
        }
    }

    #[test]
    fn arguments_of_many_servers_are_parsed() {
        let rows = [
            (r#"{"arguments": "{\"a\": 1}"}"#, r#"{"a": 1}"#),
            (r#"{"arguments": {"a": [1, null]}}"#, r#"{"a":[1,null]}"#),
            (r#"{"arguments": [1]}"#, "[1]"),
            (r#"{"arguments": true}"#, "true"),
            (r#"{"arguments": null}"#, ""),
            ("{}", ""),
        ];
        for (text, expected) in rows {
            let function: Function<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(function.arguments.0, expected, "{text}");
        }
    }

    #[test]
    fn finish_reasons() {
        use Finish as F;
        let rows = [
            (Some("stop"), false, false, F::Stop),
            (Some("stop"), true, false, F::ToolCalls),
            (Some("stop"), false, true, F::ContentFilter),
            (Some("length"), true, false, F::Length),
            (Some("length"), false, true, F::Length),
            (Some("tool_calls"), true, false, F::ToolCalls),
            (Some("function_call"), true, false, F::ToolCalls),
            (Some("content_filter"), false, false, F::ContentFilter),
            (Some("model_length"), false, false, F::Length),
            (Some("error"), false, false, F::Error),
            (Some("something"), false, false, F::Other),
            (None, false, false, F::Other),
            (None, true, false, F::ToolCalls),
        ];
        for (raw, called, refused, reason) in rows {
            let found = finish_reason(raw, called, refused);
            assert_eq!((found.reason, found.raw.as_deref()), (reason, raw));
        }
    }

    #[test]
    fn reasoning_details_grow_entry_by_entry() {
        let mut held = Vec::new();
        for delta in [
            json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]}),
            json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b"}]}),
            json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s", "text": null}]}),
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "x"}]}),
            json!({}),
        ] {
            let delta: Delta<'_> = Delta::deserialize(&delta).unwrap();
            merge_details(&mut held, delta.reasoning_details.0);
        }
        assert_eq!(
            held,
            [
                json!({"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}),
                json!({"type": "reasoning.encrypted", "index": 1, "data": "x"}),
            ]
        );
    }

    #[test]
    fn token_counts() {
        let found = usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 12,
            "completion_tokens_details": {"reasoning_tokens": 1}, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}));
        assert_eq!((found.input_tokens, found.output_tokens, found.total_tokens), (9, 2, 12));
        assert_eq!((found.reasoning_tokens, found.cache_read_tokens), (Some(1), Some(4)));
        assert_eq!(found.cache_write_tokens, Some(3));
        let found = usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8}));
        assert_eq!((found.total_tokens, found.cache_read_tokens), (11, Some(8)));
        let found = usage(json!({"prompt_tokens": 7, "completion_tokens": 8, "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 161}}));
        assert_eq!((found.input_tokens, found.total_tokens), (168, 176), "counted separately");
        let chunk = |text: &'static str| serde_json::from_str::<Chunk<'_>>(text).unwrap().take_usage();
        for (text, expected) in [
            (r#"{"usage": {"prompt_tokens": 3}}"#, Some(3)),
            (r#"{"usage": null, "x_groq": {"usage": {"prompt_tokens": 3}}}"#, Some(3)),
            (r#"{"usage": 5, "choices": [{"usage": {"prompt_tokens": 3}}]}"#, Some(3)),
            (r#"{"usage": null}"#, None),
            (r#"{"x_groq": "id"}"#, None),
        ] {
            assert_eq!(chunk(text).map(|usage| usage.input_tokens), expected, "{text}");
        }
    }
}
