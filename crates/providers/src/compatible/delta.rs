//! What messages and deltas have in common: content and reasoning in the shapes of many servers.

use pintle_llm::{Finish, FinishReason, Usage};
use serde_json::{Map, Value};

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

/// Whether a message or a delta has reasoning in the field that wants it back.
pub(super) fn has_reasoning_content(message: &Value) -> bool {
    message.get(REASONING_CONTENT).and_then(text).is_some()
}

/// The pieces of a message or a delta, in order. Reasoning stands under `reasoning_content` or `reasoning`, or in
/// the content itself where that is a list.
pub(super) fn pieces(message: &Value) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let reasoning = [REASONING_CONTENT, "reasoning"].iter().find_map(|name| text(message.get(*name)?));
    found.extend(reasoning.map(Piece::Reasoning));
    match message.get("content") {
        Some(Value::Array(parts)) => parts.iter().for_each(|part| push_part(part, &mut found)),
        Some(content) => found.extend(text(content).map(Piece::Text)),
        None => {}
    }
    found
}

/// The refusal of a message or a delta.
pub(super) fn refusal(message: &Value) -> Option<&str> {
    text(message.get("refusal")?)
}

fn push_part<'a>(part: &'a Value, found: &mut Vec<Piece<'a>>) {
    match part.get("thinking") {
        Some(Value::Array(parts)) => {
            found.extend(parts.iter().filter_map(|part| text(part.get("text")?)).map(Piece::Reasoning));
        }
        Some(thinking) => found.extend(text(thinking).map(Piece::Reasoning)),
        None => found.extend(part.get("text").and_then(text).map(Piece::Text)),
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// Adds a delta's `reasoning_details` to those before: texts of the same entry grow, other fields replace.
pub(super) fn merge_details(held: &mut Vec<Value>, delta: &Value) {
    let Some(entries) = delta.get("reasoning_details").and_then(Value::as_array) else { return };
    for entry in entries {
        let same =
            |other: &Value| ["type", "index", "id"].iter().all(|key| other.get(*key) == entry.get(*key));
        match (held.last_mut().filter(|last| same(last)), entry) {
            (Some(Value::Object(last)), Value::Object(fields)) => merge_entry(last, fields),
            _ => held.push(entry.clone()),
        }
    }
}

fn merge_entry(last: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (key, value) in fields {
        let grows = matches!(key.as_str(), "text" | "summary" | "data");
        match (last.get_mut(key), value) {
            (Some(Value::String(before)), Value::String(more)) if grows => before.push_str(more),
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(key.clone(), value.clone());
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
pub(super) fn usage(raw: &Value) -> Usage {
    let number = |pointer: &str| raw.pointer(pointer).and_then(Value::as_u64);
    let mut usage = Usage::new(
        number("/prompt_tokens").unwrap_or_default(),
        number("/completion_tokens").unwrap_or_default(),
    );
    if let Some(total) = number("/total_tokens") {
        usage.total_tokens = total;
    }
    usage.reasoning_tokens = number("/completion_tokens_details/reasoning_tokens");
    let cached = number("/prompt_tokens_details/cached_tokens");
    usage.cache_read_tokens = cached.or_else(|| number("/prompt_cache_hit_tokens"));
    let written = number("/prompt_tokens_details/cache_write_tokens");
    usage.cache_write_tokens = written.filter(|written| *written > 0);
    usage.raw = Some(raw.clone());
    usage
}

/// The usage of an answer or a chunk, where there is one: at its top, or where Groq and Moonshot put it.
pub(super) fn usage_of(chunk: &Value) -> Option<Usage> {
    let places = ["/usage", "/x_groq/usage", "/choices/0/usage"];
    places.iter().filter_map(|place| chunk.pointer(place)).find(|raw| raw.is_object()).map(usage)
}

/// The arguments of a call: a text, or an object where a server did not write it as one.
pub(super) fn arguments(function: &Value) -> String {
    match function.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_of_many_servers() {
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
            assert_eq!(pieces(&message), expected, "{message}");
        }
    }

    #[test]
    fn reasons() {
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
    fn details_grow_entry_by_entry() {
        let mut held = Vec::new();
        for delta in [
            json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]}),
            json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b"}]}),
            json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s", "text": null}]}),
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "x"}]}),
            json!({}),
        ] {
            merge_details(&mut held, &delta);
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
        let found = usage(&json!({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 12,
            "completion_tokens_details": {"reasoning_tokens": 1}, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}));
        assert_eq!((found.input_tokens, found.output_tokens, found.total_tokens), (9, 2, 12));
        assert_eq!((found.reasoning_tokens, found.cache_read_tokens), (Some(1), Some(4)));
        assert_eq!(found.cache_write_tokens, Some(3));
        let found = usage(&json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8}));
        assert_eq!((found.total_tokens, found.cache_read_tokens), (11, Some(8)));
        assert_eq!(
            usage_of(&json!({"usage": null, "x_groq": {"usage": {"prompt_tokens": 3}}}))
                .unwrap()
                .input_tokens,
            3
        );
        assert!(usage_of(&json!({"usage": null})).is_none());
    }
}
