//! Assembly of content blocks into a conversation.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{ContentPart, Error, HistoryItem, Request};

use super::block::{Block, EncodedTurn, Kind, Turn, WireRole, encoded};
use super::{NAME, cache_points};
use crate::body::Body;
use crate::media::unsupported;

/// Number of newest messages that may still change: the last two user messages have cache points, a truncated response
/// loses its end, and calls of server tools wait for their results.
const UNSTABLE: usize = 4;

/// A conversation in the form of the API: roles alternate, results come first, nothing is empty.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Target of the encodings.
    target: String,
    stable: StablePrefix,
    /// Turns after the stable prefix.
    turns: Vec<Arc<EncodedTurn>>,
}

/// Encoded start of a conversation that later messages do not change. It is memoised with the request's messages for the
/// next request.
#[derive(Clone, Debug, Default)]
struct StablePrefix {
    /// Number of history items it covers.
    items: usize,
    /// Blocks of the system prompt.
    system: Vec<Bytes>,
    /// See [`cacheable_parts`].
    cacheable_parts: Option<usize>,
    /// Whether it contains a system message.
    has_system: bool,
    messages: Body,
    end: PrefixEnd,
}

/// State at the end of a prefix that the next message depends on.
#[derive(Clone, Debug, Default)]
struct PrefixEnd {
    /// Ids of the calls in the last message.
    calls: Vec<String>,
    /// Whether the first response of the open turn begins with thinking; `None` without a response.
    begins_with_thinking: Option<bool>,
}

/// One message of the request, merged from adjacent turns of one role.
#[derive(Debug)]
pub(super) struct MergedMessage<'a> {
    role: WireRole,
    blocks: Vec<&'a Block>,
    /// Index of its first turn.
    first: usize,
}

/// Messages that became stable with this request.
#[derive(Debug)]
pub(super) struct NewlyStable {
    turns: usize,
    messages: Vec<Body>,
    end: PrefixEnd,
}

impl Conversation {
    /// Encodes the conversation of a request. Each item is encoded at most once per model, and the stable prefix is taken
    /// from the message list, where [`Conversation::memoise`] stored it. With `unsigned_thinking`, thinking without a
    /// signature is sent back.
    pub(super) fn new(request: &Request, unsigned_thinking: bool) -> Result<Self, Error> {
        let unsigned = if unsigned_thinking { " unsigned" } else { "" };
        let target = format!("{}{unsigned}", request.model);
        let known = request.messages.take_cached_prefix(NAME, &target);
        let (known, stable): (usize, StablePrefix) = known.unwrap_or_default();
        let new = request.messages.get(known..).unwrap_or_default();
        let encoded = |item| encoded(item, &target, &request.model, unsigned_thinking);
        let turns = new.iter().map(encoded).collect::<Result<_, Error>>()?;
        Ok(Self { target, stable, turns })
    }

    /// Returns the blocks of the system prompt.
    pub(super) fn system(&self) -> impl Iterator<Item = &Bytes> {
        let prompts = self.turns().filter(|turn| turn.role == WireRole::System);
        self.stable.system.iter().chain(prompts.flat_map(|turn| &turn.blocks).map(|block| &block.json))
    }

    /// Returns the number of blocks before the last one in a first system message of several parts. The caller splits it
    /// where a cache point belongs.
    pub(super) fn cacheable_parts(&self, request: &Request) -> Option<usize> {
        if self.stable.has_system {
            return self.stable.cacheable_parts;
        }
        let new = request.messages.get(self.stable.items..).unwrap_or_default();
        new.iter().find(|item| is_system(item)).and_then(cacheable_parts)
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> + Clone {
        self.turns.iter().filter_map(|turn| turn.as_ref().as_ref().ok())
    }

    /// Returns the messages after the stable prefix, merged and in legal order.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::InvalidRequest`] for a conversation that the API always rejects: without a message, or with
    /// a result without its call.
    pub(super) fn newest(&self) -> Result<Vec<MergedMessage<'_>>, Error> {
        let mut messages: Vec<MergedMessage<'_>> = Vec::new();
        let turns = self.turns().enumerate().filter(|(_, turn)| turn.role != WireRole::System);
        let blocks = turns.clone().flat_map(|(_, turn)| &turn.blocks);
        let answered: HashSet<&str> = blocks.filter_map(server_result).collect();
        for (first, turn) in turns.filter(|(_, turn)| !turn.blocks.is_empty()) {
            if messages.last().is_some_and(|last| last.role != turn.role) {
                drop_unanswered(&mut messages, &answered);
                drop_trailing_thinking(&mut messages);
            }
            match messages.last_mut().filter(|last| last.role == turn.role) {
                Some(last) => last.blocks.extend(&turn.blocks),
                None => {
                    let blocks = turn.blocks.iter().collect();
                    messages.push(MergedMessage { role: turn.role, blocks, first });
                }
            }
        }
        drop_trailing_thinking(&mut messages);
        for message in messages.iter_mut().filter(|message| message.role == WireRole::User) {
            // The sort is stable, so results and other blocks keep their order.
            message.blocks.sort_by_key(|block| !matches!(block.kind, Kind::Result(_)));
        }
        if messages.is_empty() && self.stable.messages.is_empty() {
            return Err(unsupported(
                NAME,
                "the conversation is empty: expected at least one message with content",
            ));
        }
        self.check_results(&messages)?;
        Ok(messages)
    }

    fn check_results(&self, messages: &[MergedMessage<'_>]) -> Result<(), Error> {
        let mut calls: Vec<&str> = self.stable.end.calls.iter().map(String::as_str).collect();
        for message in messages {
            // Results are usually in the order of their calls.
            let mut next = calls.iter();
            let unknown = message
                .results()
                .find(|id| next.next().is_none_or(|call| call != id) && !calls.iter().any(|call| call == id));
            if let Some(id) = unknown {
                return Err(unsupported(
                    NAME,
                    format!("the result of call `{id}` has no call in the message before it"),
                ));
            }
            calls = message.calls().collect();
        }
        Ok(())
    }

    /// Returns whether the conversation ends inside a tool turn that started without thinking. Only the first response of
    /// the turn counts: without interleaved thinking, a model thinks there only.
    pub(super) fn is_open_without_thinking(&self, newest: &[MergedMessage<'_>]) -> bool {
        let begins_with_thinking =
            newest.iter().fold(self.stable.end.begins_with_thinking, |before, message| {
                message.begins_with_thinking(before)
            });
        newest.last().is_some_and(MergedMessage::has_results) && begins_with_thinking == Some(false)
    }

    /// Writes the messages as the elements of a JSON list. With `cache`, the last two user messages get cache points.
    pub(super) fn write(&self, newest: &[MergedMessage<'_>], cache: bool, out: &mut Body) {
        out.append(&self.stable.messages);
        let users = newest.iter().enumerate().rev().filter(|(_, message)| message.role == WireRole::User);
        let cached: Vec<usize> = users.map(|(index, _)| index).take(if cache { 2 } else { 0 }).collect();
        for (index, message) in newest.iter().enumerate() {
            if index > 0 || !self.stable.messages.is_empty() {
                out.write(b",");
            }
            message.write(cached.contains(&index), out);
        }
    }

    /// Returns the messages that became stable with this request.
    pub(super) fn newly_stable(&self, newest: &[MergedMessage<'_>]) -> NewlyStable {
        let (stable, open) = newest.split_at(newest.len().saturating_sub(UNSTABLE));
        let written = stable.iter().map(|message| {
            let mut body = Body::default();
            message.write(false, &mut body);
            body
        });
        let begins_with_thinking =
            stable.iter().fold(self.stable.end.begins_with_thinking, |before, message| {
                message.begins_with_thinking(before)
            });
        let calls = stable.last().map(|last| last.calls().map(str::to_owned).collect());
        NewlyStable {
            turns: open.first().filter(|_| !stable.is_empty()).map_or(0, |first| first.first),
            messages: written.collect(),
            end: PrefixEnd {
                calls: calls.unwrap_or_else(|| self.stable.end.calls.clone()),
                begins_with_thinking,
            },
        }
    }

    /// Memoises the stable prefix with the messages of the request, for the next request.
    pub(super) fn memoise(mut self, request: &Request, more: NewlyStable) {
        let NewlyStable { turns, messages, end } = more;
        let stable = &mut self.stable;
        let items = request.messages.get(stable.items..).unwrap_or_default().iter().take(turns);
        for (item, turn) in items.zip(&self.turns) {
            let Some(turn) = turn.as_ref().as_ref().ok().filter(|turn| turn.role == WireRole::System) else {
                continue;
            };
            if !stable.has_system {
                stable.cacheable_parts = cacheable_parts(item);
                stable.has_system = true;
            }
            stable.system.extend(turn.blocks.iter().map(|block| block.json.clone()));
        }
        stable.items += turns;
        messages.iter().for_each(|message| stable.messages.element(message));
        stable.end = end;
        request.messages.cache_prefix(NAME, &self.target, self.stable.items, self.stable);
    }
}

fn is_system(item: &HistoryItem) -> bool {
    matches!(item.role, pintle_llm::Role::System | pintle_llm::Role::Developer)
}

/// Returns the number of blocks before the last one in a system message of several parts.
fn cacheable_parts(item: &HistoryItem) -> Option<usize> {
    let texts = item.content.iter().filter_map(ContentPart::as_text).filter(|text| !text.trim().is_empty());
    texts.count().checked_sub(1).filter(|count| *count > 0)
}

impl MergedMessage<'_> {
    fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Call(id) => Some(id.as_str()),
            Kind::Result(_) | Kind::Thinking | Kind::ServerCall(_) | Kind::ServerResult(_) | Kind::Other => {
                None
            }
        })
    }

    fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Result(id) => Some(id.as_str()),
            Kind::Call(_) | Kind::Thinking | Kind::ServerCall(_) | Kind::ServerResult(_) | Kind::Other => {
                None
            }
        })
    }

    fn has_results(&self) -> bool {
        self.results().next().is_some()
    }

    /// Returns whether the first response of the turn begins with thinking, where `before` is the value for the preceding
    /// messages; `None` without a response.
    fn begins_with_thinking(&self, before: Option<bool>) -> Option<bool> {
        if self.role == WireRole::User && !self.has_results() {
            return None;
        }
        before.or_else(|| self.blocks.first().map(|block| block.kind == Kind::Thinking))
    }

    fn write(&self, cache: bool, out: &mut Body) {
        let role = if self.role == WireRole::Assistant { "assistant" } else { "user" };
        out.write(format!(r#"{{"role":"{role}","content":["#).as_bytes());
        let marked = self.blocks.last().filter(|last| cache && !last.cache_point);
        let plain = self.blocks.len() - usize::from(marked.is_some());
        out.share_all(self.blocks.iter().take(plain).map(|block| &block.json));
        if let Some(block) = marked {
            if plain > 0 {
                out.write(b",");
            }
            // Inserted before the closing brace, which is the last byte of the block.
            out.share(&block.json.slice(..block.json.len().saturating_sub(1)));
            out.write(cache_points::LAST_FIELD.as_bytes());
            out.write(b"}");
        }
        out.write(b"]}");
    }
}

/// Returns the call id of a server tool result.
fn server_result(block: &Block) -> Option<&str> {
    match &block.kind {
        Kind::ServerResult(id) => Some(id),
        Kind::Thinking | Kind::Call(_) | Kind::Result(_) | Kind::ServerCall(_) | Kind::Other => None,
    }
}

/// Drops calls of server tools without a result, as in a truncated response: the API rejects them once the conversation
/// has continued. In a message with client calls, they may wait for their result until the next assistant message.
fn drop_unanswered(messages: &mut [MergedMessage<'_>], answered: &HashSet<&str>) {
    let is_call = |block: &&Block| matches!(block.kind, Kind::Call(_));
    let is_assistant = |message: &&mut MergedMessage<'_>| message.role == WireRole::Assistant;
    let waits = messages.last().is_some_and(|last| last.blocks.iter().any(is_call));
    let Some(message) = messages.iter_mut().rev().take(2).find(is_assistant).filter(|_| !waits) else {
        return;
    };
    let is_answered =
        |block: &&Block| !matches!(&block.kind, Kind::ServerCall(id) if !answered.contains(id.as_str()));
    message.blocks.retain(is_answered);
}

/// Drops thinking at the end of an assistant message, where the API rejects it: a response truncated there has no content.
fn drop_trailing_thinking(messages: &mut Vec<MergedMessage<'_>>) {
    let Some(last) = messages.last_mut().filter(|last| last.role == WireRole::Assistant) else { return };
    while last.blocks.last().is_some_and(|block| block.kind == Kind::Thinking) {
        last.blocks.pop();
    }
    // Also empty if all its blocks were dropped before.
    if last.blocks.is_empty() {
        messages.pop();
    }
}
