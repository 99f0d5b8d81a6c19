//! Request prefixes that a provider could have cached, measured by comparing requests.
//!
//! The parts of the body are compared as sent, in the order in which providers read them: tools, system, messages. A
//! member in another position and a number in another notation are changes.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::fingerprint;

/// Bytes per token, as a rule of thumb.
const BYTES_PER_TOKEN: usize = 4;

/// One part of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    hash: u64,
    bytes: usize,
    breakpoint: bool,
}

/// Parts of a request in the order in which a provider reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    segments: Vec<Segment>,
}

/// Input tokens of a request by their source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InputTokens {
    /// Tokens read from the cache.
    pub(crate) cached: usize,
    /// Tokens written to the cache, counted by Anthropic only.
    pub(crate) created: usize,
    /// All other tokens.
    pub(crate) fresh: usize,
}

impl InputTokens {
    pub(crate) fn total(self) -> usize {
        self.cached + self.created + self.fresh
    }
}

impl Prefix {
    /// Reads the parts of a body. A body that is not a JSON object has none.
    pub(crate) fn read(dialect: Dialect, body: &[u8]) -> Self {
        let mut prefix = Self::default();
        let Ok(members) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(body) else {
            return prefix;
        };
        let (system, messages) = match dialect {
            Dialect::OpenAiResponses => ("instructions", "input"),
            Dialect::AnthropicMessages => ("system", "messages"),
            Dialect::Gemini => ("systemInstruction", "contents"),
            Dialect::ChatCompletions => ("", "messages"),
        };
        for name in ["tools", system] {
            if let Some(value) = members.get(name) {
                prefix.push_each(name, value);
            }
        }
        for message in members.get(messages).map(|value| elements(value)).unwrap_or_default() {
            if dialect == Dialect::AnthropicMessages {
                prefix.push_message(message);
            } else {
                prefix.push("", message);
            }
        }
        prefix
    }

    /// Counts the tokens of this request by comparing it with the preceding one.
    ///
    /// Anthropic caches up to its breakpoints only, the others cache any common prefix.
    pub(crate) fn tokens(&self, dialect: Dialect, before: Option<&Self>) -> InputTokens {
        let total = self.bytes(self.segments.len());
        let common = before.map_or(0, |before| self.common(before));
        let (cached, created) = match dialect {
            Dialect::AnthropicMessages => {
                let written = self.last_breakpoint(self.segments.len());
                let read = before.map_or(0, |before| before.last_breakpoint(common)).min(written);
                (self.bytes(read), self.bytes(written) - self.bytes(read))
            }
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::ChatCompletions => (self.bytes(common), 0),
        };
        let tokens = |bytes: usize| bytes / BYTES_PER_TOKEN;
        let (cached, created) = (tokens(cached), tokens(created));
        InputTokens { cached, created, fresh: total.div_ceil(BYTES_PER_TOKEN) - cached - created }
    }

    /// Returns the number of equal leading parts.
    fn common(&self, other: &Self) -> usize {
        let pairs = self.segments.iter().zip(&other.segments);
        pairs.take_while(|(one, two)| (one.hash, one.bytes) == (two.hash, two.bytes)).count()
    }

    /// Returns the number of parts up to and including the last breakpoint among the first `limit`.
    fn last_breakpoint(&self, limit: usize) -> usize {
        self.segments.iter().take(limit).rposition(|segment| segment.breakpoint).map_or(0, |index| index + 1)
    }

    fn bytes(&self, segments: usize) -> usize {
        self.segments.iter().take(segments).map(|segment| segment.bytes).sum()
    }

    /// Pushes one part per list element, or one part for any other value.
    fn push_each(&mut self, owner: &str, value: &RawValue) {
        let elements = elements(value);
        if elements.is_empty() {
            self.push(owner, value);
        }
        for element in elements {
            self.push(owner, element);
        }
    }

    /// Pushes one part per content block, because breakpoints are on blocks.
    fn push_message(&mut self, message: &RawValue) {
        let members = members(message).unwrap_or_default();
        let member = |name: &str| members.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
        let role = member("role").map_or("", RawValue::get);
        match member("content") {
            Some(content) => self.push_each(role, content),
            None => self.push(role, message),
        }
    }

    fn push(&mut self, owner: &str, value: &RawValue) {
        let mut bytes = String::new();
        let breakpoint = write_without_markers(value, &mut bytes);
        let hash = fingerprint::hash(&[owner, &bytes]);
        self.segments.push(Segment { hash, bytes: bytes.len(), breakpoint });
    }
}

/// Writes a value as sent, with members in order, without white space and without cache markers.
///
/// Markers move from request to request and are not part of the cached content.
/// Returns whether the value contains one.
fn write_without_markers(value: &RawValue, out: &mut String) -> bool {
    let mut marked = false;
    let mut separator = "";
    if let Some(members) = members(value) {
        out.push('{');
        for (name, member) in members {
            if name == "cache_control" {
                marked |= member.get() != "null";
                continue;
            }
            out.push_str(separator);
            out.push_str(&format!("{name:?}:"));
            marked |= write_without_markers(member, out);
            separator = ",";
        }
        out.push('}');
    } else if value.get().starts_with('[') {
        out.push('[');
        for element in elements(value) {
            out.push_str(separator);
            marked |= write_without_markers(element, out);
            separator = ",";
        }
        out.push(']');
    } else {
        out.push_str(value.get());
    }
    marked
}

fn elements(value: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// Returns the members of an object in order; `None` for any other value.
fn members(value: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    if !value.get().starts_with('{') {
        return None;
    }
    serde_json::from_str::<Members<'_>>(value.get()).ok().map(|members| members.0)
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

/// Returns the number of tokens of an output text, 0 for an empty one.
pub(crate) fn output_tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tokens(dialect: Dialect, before: &Value, now: &Value) -> InputTokens {
        let before = Prefix::read(dialect, before.to_string().as_bytes());
        Prefix::read(dialect, now.to_string().as_bytes()).tokens(dialect, Some(&before))
    }

    #[test]
    fn longer_histories_read_the_complete_shorter_prefix() {
        let before = json!({"instructions": "be brief", "input": [{"role": "user", "content": "question"}]});
        let mut now = before.clone();
        now["input"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": "answer"}));
        let read = tokens(Dialect::OpenAiResponses, &before, &now);
        let bytes = before["instructions"].to_string().len() + before["input"][0].to_string().len();
        assert_eq!(read.cached, bytes / 4);
        assert_eq!(read.created, 0);
        assert!(read.fresh > 0);
    }

    #[test]
    fn changed_tools_invalidate_everything_after_them() {
        let before =
            json!({"tools": [{"name": "a"}, {"name": "b"}], "messages": [{"role": "user", "content": "q"}]});
        let mut now = before.clone();
        now["tools"][0]["name"] = json!("c");
        assert_eq!(tokens(Dialect::ChatCompletions, &before, &now).cached, 0);
    }

    #[test]
    fn key_order_is_significant() {
        let prefix = |body: &str| Prefix::read(Dialect::ChatCompletions, body.as_bytes());
        let before = prefix(r#"{"messages": [{"role": "user", "content": "question"}]}"#);
        let same = prefix(r#"{"model": "m", "messages": [{"role": "user", "content": "question"}]}"#);
        let moved = prefix(r#"{"messages": [{"content": "question", "role": "user"}]}"#);
        assert!(same.tokens(Dialect::ChatCompletions, Some(&before)).cached > 0);
        assert_eq!(moved.tokens(Dialect::ChatCompletions, Some(&before)).cached, 0);
    }

    /// Returns messages of ten-byte texts with cache markers on the messages in `marked`.
    fn marked(count: usize, marked: &[usize]) -> Value {
        let message = |index: usize| {
            let mut block = json!({"type": "text", "text": format!("message {index}")});
            if marked.contains(&index) {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
            json!({"role": if index.is_multiple_of(2) { "user" } else { "assistant" }, "content": [block]})
        };
        json!({"messages": (0..count).map(message).collect::<Vec<_>>()})
    }

    #[test]
    fn anthropic_reads_and_writes_up_to_breakpoints() {
        let dialect = Dialect::AnthropicMessages;
        let before = Prefix::read(dialect, marked(3, &[2]).to_string().as_bytes());
        let now = Prefix::read(dialect, marked(5, &[2, 4]).to_string().as_bytes());
        let block = now.segments[0].bytes;
        let first = before.tokens(dialect, None);
        assert_eq!((first.cached, first.created), (0, before.bytes(3) / 4));
        let second = now.tokens(dialect, Some(&before));
        assert!(block > 0);
        assert_eq!((second.cached, second.created), (before.bytes(3) / 4, (now.bytes(5) - now.bytes(3)) / 4));
        assert_eq!(second.total(), now.bytes(5).div_ceil(4));
    }

    #[test]
    fn anthropic_without_breakpoints_caches_nothing() {
        let read = tokens(Dialect::AnthropicMessages, &marked(3, &[]), &marked(5, &[]));
        assert_eq!((read.cached, read.created), (0, 0));
    }

    #[test]
    fn moving_cache_markers_keep_the_prefix() {
        let read = tokens(Dialect::AnthropicMessages, &marked(3, &[2]), &marked(5, &[4]));
        assert!(read.cached > 0);
    }
}
