//! Messages and stream deltas: content and reasoning in the shapes of many servers.

use std::borrow::Cow;

use pintle_llm::{Finish, FinishReason, Usage};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use crate::input_tokens;
use crate::lenient::{AnyCount, AnyText, FirstEntry, FromAnyJson, List, Object, deserialize_any_json};

/// One chunk of a stream. Fields of an unexpected type count as absent.
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
    pub(super) choices: FirstEntry<Choice<'a>>,
    usage: Option<Value>,
    x_groq: Object<GroqExtension>,
}

/// Groq's extension object.
#[derive(Debug, serde::Deserialize)]
struct GroqExtension {
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) delta: Object<Delta<'a>>,
    /// Boxed because chunks rarely have one and are moved while they are read.
    #[serde(borrow)]
    pub(super) message: Object<Box<Delta<'a>>>,
    #[serde(borrow)]
    pub(super) finish_reason: AnyText<'a>,
    usage: Option<Value>,
}

/// A delta, or a complete message, which has the same fields.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    /// Reasoning of DeepSeek and others, which they expect to be returned.
    #[serde(borrow)]
    reasoning_content: AnyText<'a>,
    #[serde(borrow)]
    reasoning: AnyText<'a>,
    pub(super) reasoning_details: List<Value>,
    #[serde(borrow)]
    refusal: AnyText<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: List<Object<CallDelta<'a>>>,
}

#[derive(Debug, Default)]
enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

/// A delta of a tool call.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct CallDelta<'a> {
    pub(super) index: AnyCount,
    #[serde(borrow)]
    pub(super) id: AnyText<'a>,
    #[serde(borrow)]
    pub(super) function: Object<Function<'a>>,
    /// Data that Gemini's endpoint expects to be returned with the call.
    pub(super) extra_content: Object<Map<String, Value>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: AnyText<'a>,
    #[serde(borrow)]
    pub(super) arguments: Arguments<'a>,
}

/// Arguments of a call: a string, or a value of another kind, as some servers send it.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a>(pub(super) Cow<'a, str>);

/// A piece of visible text or reasoning.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Reasoning(&'a str),
    Text(&'a str),
}

/// Field in which DeepSeek and others send reasoning and expect it to be returned.
pub(super) const REASONING_CONTENT: &str = "reasoning_content";

/// Field in which `OpenRouter` sends reasoning and expects it to be returned.
pub(super) const REASONING_DETAILS: &str = "reasoning_details";

/// Key under which a reasoning part stores the name of the field it was received in.
pub(super) const FIELD: &str = "field";

impl Chunk<'_> {
    /// Returns whether the chunk is an error object.
    pub(super) fn is_error(&self) -> bool {
        self.error.is_some() || self.object.0.as_deref() == Some("error")
    }

    /// Takes the usage, from the top level or from where Groq and Moonshot put it.
    pub(super) fn take_usage(&mut self) -> Option<Usage> {
        let groq = self.x_groq.0.as_mut().map(|groq| &mut groq.usage);
        let choice = self.choices.0.as_mut().map(|choice| &mut choice.usage);
        let candidates = [Some(&mut self.usage), groq, choice];
        let mut found = candidates.into_iter().flatten().filter_map(Option::take);
        found.find(Value::is_object).map(usage)
    }
}

impl Delta<'_> {
    /// Returns whether it has reasoning in the field whose content must be returned.
    pub(super) fn has_reasoning_content(&self) -> bool {
        self.reasoning_content.non_empty().is_some()
    }

    /// Returns text and reasoning in order. Reasoning is in `reasoning_content`, in `reasoning`, or in the content if that
    /// is a list.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let reasoning = self.reasoning_content.non_empty().or_else(|| self.reasoning.non_empty());
        let (text, parts) = match &self.content {
            Content::Nothing => (None, &[][..]),
            Content::Text(text) => (Some(text.as_ref()).filter(|text| !text.is_empty()), &[][..]),
            Content::Parts(parts) => (None, parts.as_slice()),
        };
        let pieces = reasoning.map(Piece::Reasoning).into_iter().chain(text.map(Piece::Text));
        pieces.chain(parts.iter().flat_map(pieces_of_part))
    }

    /// Returns the refusal, if any.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.non_empty()
    }
}

impl<'de> FromAnyJson<'de> for Content<'de> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        List::from_list(list).map(|List(parts)| Self::Parts(parts))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_any_json::<Content<'de>, D>(deserializer)
    }
}

impl<'de> FromAnyJson<'de> for Arguments<'de> {
    fn from_text(text: Cow<'de, str>) -> Self {
        Self(text)
    }

    fn from_scalar(value: Value) -> Self {
        Self(value.to_string().into())
    }

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        List::from_list(list).map(|List(entries)| Self::from_scalar(Value::Array(entries)))
    }

    fn from_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let object = Object::from_object(object)?;
        Ok(object.0.map(|fields| Self::from_scalar(Value::Object(fields))).unwrap_or_default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_any_json::<Arguments<'de>, D>(deserializer)
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

/// Merges the `reasoning_details` of a delta: strings of the same entry are appended, other fields are replaced.
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

/// Returns the unified finish reason, in any case of letters. Some servers send `stop` although the model calls a tool or
/// refuses.
pub(super) fn finish_reason(raw: Option<&str>, called: bool, refused: bool) -> FinishReason {
    let lower = raw.map(str::to_ascii_lowercase);
    let reason = match lower.as_deref() {
        Some("stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence") | None if called => {
            Finish::ToolCalls
        }
        Some("stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence") if refused => Finish::ContentFilter,
        Some("stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence") => Finish::Stop,
        // `model_length` is of the Mistral API reference, and `model_context_window_exceeded` of the Z.ai API reference.
        Some(
            "length" | "max_tokens" | "max_output_tokens" | "model_length" | "model_context_window_exceeded",
        ) => Finish::Length,
        Some("tool_calls" | "function_call" | "tool_use") => Finish::ToolCalls,
        // `sensitive` is of the Z.ai API reference. Gateways pass on the reasons of Anthropic and Gemini.
        Some("content_filter" | "sensitive" | "refusal" | "safety") => Finish::ContentFilter,
        // `insufficient_system_resource` is of the DeepSeek API documentation, `network_error` of the Z.ai API reference, and
        // `abort` of vLLM. Gateways pass on the reasons of Gemini.
        Some(
            "error"
            | "insufficient_system_resource"
            | "network_error"
            | "abort"
            | "malformed_function_call"
            | "unexpected_tool_call",
        ) => Finish::Error,
        Some(_) | None => Finish::Other,
    };
    FinishReason { reason, raw: raw.map(str::to_owned) }
}

/// Returns the token counts of a `usage` object. DeepSeek has its own field for cache hits.
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
    usage.raw = Some(raw.into());
    usage
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chunks_of_many_servers_are_parsed() {
        use Piece::{Reasoning, Text};
        let cases = [
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
        for (message, expected) in cases {
            let text = message.to_string();
            let delta: Delta<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!(delta.pieces().collect::<Vec<_>>(), expected, "{message}");
            // Complete responses are read from a `Value`.
            let delta = Delta::deserialize(&message).unwrap();
            assert_eq!(delta.pieces().collect::<Vec<_>>(), expected, "{message}");
        }
    }

    #[test]
    fn arguments_of_many_servers_are_parsed() {
        let cases = [
            (r#"{"arguments": "{\"a\": 1}"}"#, r#"{"a": 1}"#),
            (r#"{"arguments": {"a": [1, null]}}"#, r#"{"a":[1,null]}"#),
            (r#"{"arguments": [1]}"#, "[1]"),
            (r#"{"arguments": true}"#, "true"),
            (r#"{"arguments": null}"#, ""),
            ("{}", ""),
        ];
        for (text, expected) in cases {
            let function: Function<'_> = serde_json::from_str(text).unwrap();
            assert_eq!(function.arguments.0, expected, "{text}");
        }
    }

    #[test]
    fn finish_reasons() {
        use Finish as F;
        let cases = [
            (Some("stop"), false, false, F::Stop),
            (Some("stop"), true, false, F::ToolCalls),
            (Some("stop"), false, true, F::ContentFilter),
            (Some("length"), true, false, F::Length),
            (Some("length"), false, true, F::Length),
            (Some("tool_calls"), true, false, F::ToolCalls),
            (Some("function_call"), true, false, F::ToolCalls),
            (Some("content_filter"), false, false, F::ContentFilter),
            (Some("model_length"), false, false, F::Length),
            (Some("max_output_tokens"), false, false, F::Length),
            (Some("model_context_window_exceeded"), false, false, F::Length),
            (Some("sensitive"), false, false, F::ContentFilter),
            (Some("refusal"), false, false, F::ContentFilter),
            (Some("SAFETY"), false, false, F::ContentFilter),
            (Some("error"), false, false, F::Error),
            (Some("insufficient_system_resource"), false, false, F::Error),
            (Some("network_error"), false, false, F::Error),
            (Some("abort"), false, false, F::Error),
            (Some("abort"), true, false, F::Error),
            (Some("MALFORMED_FUNCTION_CALL"), false, false, F::Error),
            (Some("unexpected_tool_call"), true, false, F::Error),
            (Some("STOP"), false, false, F::Stop),
            (Some("STOP"), true, false, F::ToolCalls),
            (Some("MAX_TOKENS"), false, false, F::Length),
            (Some("Tool_Calls"), true, false, F::ToolCalls),
            (Some("something"), false, false, F::Other),
            (None, false, false, F::Other),
            (None, true, false, F::ToolCalls),
        ];
        for (raw, called, refused, reason) in cases {
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
