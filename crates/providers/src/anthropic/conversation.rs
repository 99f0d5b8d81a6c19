//! Content blocks as a conversation.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{ContentPart, Error, HistoryItem, Request};

use super::NAME;
use super::block::{Block, Encoded, Kind, Speaker, Turn, encoded};
use crate::body::Body;
use crate::media::refuse;

const CACHE_POINT: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// How many of the newest messages may still change: cache points stand on the last two of the user, an answer that was
/// cut off loses its end, and calls on the provider's side wait for their results.
const UNSETTLED: usize = 4;

/// A conversation as the API wants it: roles alternate, results stand first, nothing is empty.
#[derive(Debug)]
pub(super) struct Conversation {
    settled: Settled,
    /// What follows.
    turns: Vec<Arc<Encoded>>,
}

/// The beginning of a conversation, which stays as it is whatever follows. It is kept with the request's messages, for
/// the next request.
#[derive(Clone, Debug, Default)]
struct Settled {
    /// How many items of the history it is of.
    items: usize,
    /// The blocks of the system prompt.
    system: Vec<Bytes>,
    /// See [`stable_parts`].
    stable: Option<usize>,
    /// Whether a system message was there.
    instructed: bool,
    messages: Body,
    end: End,
}

/// What must be known of the messages before others.
#[derive(Clone, Debug, Default)]
struct End {
    /// The calls of the last one.
    calls: Vec<String>,
    /// Whether the first answer since the user has asked begins with thinking.
    thought: Option<bool>,
}

/// One message of the request: neighbours of one role have been merged.
#[derive(Debug)]
pub(super) struct Merged<'a> {
    speaker: Speaker,
    blocks: Vec<&'a Block>,
    /// The place of its first turn.
    first: usize,
}

/// Messages that have settled since an earlier request.
#[derive(Debug)]
pub(super) struct Settling {
    turns: usize,
    messages: Vec<Body>,
    end: End,
}

impl Conversation {
    /// The conversation of a request: each item is encoded at most once for a model, and what is settled is taken from
    /// the list of messages, where [`Conversation::keep`] has left it.
    pub(super) fn new(request: &Request) -> Result<Self, Error> {
        let known = request.messages.take_cached_prefix(NAME, &request.model);
        let (known, settled): (usize, Settled) = known.unwrap_or_default();
        let new = request.messages.get(known..).unwrap_or_default();
        let turns = new.iter().map(|item| encoded(item, &request.model)).collect::<Result<_, Error>>()?;
        Ok(Self { settled, turns })
    }

    /// The blocks of the system prompt.
    pub(super) fn system(&self) -> impl Iterator<Item = &Bytes> {
        let prompts = self.turns().filter(|turn| turn.speaker == Speaker::System);
        self.settled.system.iter().chain(prompts.flat_map(|turn| &turn.blocks).map(|block| &block.json))
    }

    /// How many blocks of a first system message of several parts stand before its last: who splits it says where a
    /// cache may end.
    pub(super) fn stable_parts(&self, request: &Request) -> Option<usize> {
        if self.settled.instructed {
            return self.settled.stable;
        }
        let new = request.messages.get(self.settled.items..).unwrap_or_default();
        new.iter().find(|item| is_system(item)).and_then(stable_parts)
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> + Clone {
        self.turns.iter().filter_map(|turn| turn.as_ref().as_ref().ok())
    }

    /// The messages that are not settled, merged and in legal order.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::InvalidRequest`] for a conversation that the API refuses for certain: no message at all,
    /// or a result without its call.
    pub(super) fn newest(&self) -> Result<Vec<Merged<'_>>, Error> {
        let mut messages: Vec<Merged<'_>> = Vec::new();
        let turns = self.turns().enumerate().filter(|(_, turn)| turn.speaker != Speaker::System);
        let blocks = turns.clone().flat_map(|(_, turn)| &turn.blocks);
        let answered: HashSet<&str> = blocks.filter_map(server_result).collect();
        for (first, turn) in turns.filter(|(_, turn)| !turn.blocks.is_empty()) {
            if messages.last().is_some_and(|last| last.speaker != turn.speaker) {
                drop_unanswered(&mut messages, &answered);
                drop_trailing_thinking(&mut messages);
            }
            match messages.last_mut().filter(|last| last.speaker == turn.speaker) {
                Some(last) => last.blocks.extend(&turn.blocks),
                None => {
                    let blocks = turn.blocks.iter().collect();
                    messages.push(Merged { speaker: turn.speaker, blocks, first });
                }
            }
        }
        drop_trailing_thinking(&mut messages);
        for message in messages.iter_mut().filter(|message| message.speaker == Speaker::User) {
            // Stable, so that results and everything else keep their order.
            message.blocks.sort_by_key(|block| !matches!(block.kind, Kind::Result(_)));
        }
        if messages.is_empty() && self.settled.messages.is_empty() {
            return Err(refuse(
                NAME,
                "the conversation is empty: expected at least one message with content",
            ));
        }
        self.check_results(&messages)?;
        Ok(messages)
    }

    fn check_results(&self, messages: &[Merged<'_>]) -> Result<(), Error> {
        let mut calls: Vec<&str> = self.settled.end.calls.iter().map(String::as_str).collect();
        for message in messages {
            // Results mostly come in the order of their calls.
            let mut next = calls.iter();
            let unknown = message
                .results()
                .find(|id| next.next().is_none_or(|call| call != id) && !calls.iter().any(|call| call == id));
            if let Some(id) = unknown {
                return Err(refuse(
                    NAME,
                    format!("the result of call `{id}` answers no call of the message before it"),
                ));
            }
            calls = message.calls().collect();
        }
        Ok(())
    }

    /// Whether the conversation ends inside a tool turn that was begun without thinking. Only the turn's first answer
    /// counts: without interleaved thinking, a model thinks there and nowhere else.
    pub(super) fn is_open_unthought(&self, newest: &[Merged<'_>]) -> bool {
        let thought =
            newest.iter().fold(self.settled.end.thought, |thought, message| message.begins(thought));
        newest.last().is_some_and(Merged::has_results) && thought == Some(false)
    }

    /// Writes the messages as the elements of a JSON list, with cache points at the ends of the last two of the user
    /// if `cache` is set.
    pub(super) fn write(&self, newest: &[Merged<'_>], cache: bool, out: &mut Body) {
        out.append(&self.settled.messages);
        let users = newest.iter().enumerate().rev().filter(|(_, message)| message.speaker == Speaker::User);
        let cached: Vec<usize> = users.map(|(index, _)| index).take(if cache { 2 } else { 0 }).collect();
        for (index, message) in newest.iter().enumerate() {
            if index > 0 || !self.settled.messages.is_empty() {
                out.write(b",");
            }
            message.write(cached.contains(&index), out);
        }
    }

    /// The messages that no longer change.
    pub(super) fn settling(&self, newest: &[Merged<'_>]) -> Settling {
        let (settled, open) = newest.split_at(newest.len().saturating_sub(UNSETTLED));
        let written = settled.iter().map(|message| {
            let mut body = Body::default();
            message.write(false, &mut body);
            body
        });
        let thought =
            settled.iter().fold(self.settled.end.thought, |thought, message| message.begins(thought));
        let calls = settled.last().map(|last| last.calls().map(str::to_owned).collect());
        Settling {
            turns: open.first().filter(|_| !settled.is_empty()).map_or(0, |first| first.first),
            messages: written.collect(),
            end: End { calls: calls.unwrap_or_else(|| self.settled.end.calls.clone()), thought },
        }
    }

    /// Leaves what is settled with the messages of its request, for the next one.
    pub(super) fn keep(mut self, request: &Request, more: Settling) {
        let Settling { turns, messages, end } = more;
        let settled = &mut self.settled;
        let items = request.messages.get(settled.items..).unwrap_or_default().iter().take(turns);
        for (item, turn) in items.zip(&self.turns) {
            let Some(turn) = turn.as_ref().as_ref().ok().filter(|turn| turn.speaker == Speaker::System)
            else {
                continue;
            };
            if !settled.instructed {
                settled.stable = stable_parts(item);
                settled.instructed = true;
            }
            settled.system.extend(turn.blocks.iter().map(|block| block.json.clone()));
        }
        settled.items += turns;
        messages.iter().for_each(|message| settled.messages.element(message));
        settled.end = end;
        request.messages.cache_prefix(NAME, &request.model, self.settled.items, self.settled);
    }
}

fn is_system(item: &HistoryItem) -> bool {
    matches!(item.role, pintle_llm::Role::System | pintle_llm::Role::Developer)
}

/// How many blocks of a system message of several parts stand before its last.
fn stable_parts(item: &HistoryItem) -> Option<usize> {
    let said = item.content.iter().filter_map(ContentPart::as_text).filter(|text| !text.trim().is_empty());
    said.count().checked_sub(1).filter(|stable| *stable > 0)
}

impl Merged<'_> {
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

    /// Whether the first answer since the user has asked begins with thinking, where it was so for the messages before
    /// this one; `None` as long as there is no answer.
    fn begins(&self, before: Option<bool>) -> Option<bool> {
        if self.speaker == Speaker::User && !self.has_results() {
            return None;
        }
        before.or_else(|| self.blocks.first().map(|block| block.kind == Kind::Thinking))
    }

    fn write(&self, cache: bool, out: &mut Body) {
        let role = if self.speaker == Speaker::Assistant { "assistant" } else { "user" };
        out.write(format!(r#"{{"role":"{role}","content":["#).as_bytes());
        let marked = self.blocks.last().filter(|last| cache && !last.cache_point);
        let plain = self.blocks.len() - usize::from(marked.is_some());
        out.share_all(self.blocks.iter().take(plain).map(|block| &block.json));
        if let Some(block) = marked {
            if plain > 0 {
                out.write(b",");
            }
            // Into the block: it is an object with fields, so its last byte is the closing brace.
            out.share(&block.json.slice(..block.json.len().saturating_sub(1)));
            out.write(CACHE_POINT.as_bytes());
            out.write(b"}");
        }
        out.write(b"]}");
    }
}

/// The call that a block answers on the provider's side.
fn server_result(block: &Block) -> Option<&str> {
    match &block.kind {
        Kind::ServerResult(id) => Some(id),
        Kind::Thinking | Kind::Call(_) | Kind::Result(_) | Kind::ServerCall(_) | Kind::Other => None,
    }
}

/// Drops calls of the provider's own tools whose results never came, as in an answer that was cut off: the API refuses
/// them once the conversation has gone on. Beside a call of the client's they wait until the assistant speaks again.
fn drop_unanswered(messages: &mut [Merged<'_>], answered: &HashSet<&str>) {
    let is_call = |block: &&Block| matches!(block.kind, Kind::Call(_));
    let of_assistant = |message: &&mut Merged<'_>| message.speaker == Speaker::Assistant;
    let waits = messages.last().is_some_and(|last| last.blocks.iter().any(is_call));
    let Some(message) = messages.iter_mut().rev().take(2).find(of_assistant).filter(|_| !waits) else {
        return;
    };
    let is_answered =
        |block: &&Block| !matches!(&block.kind, Kind::ServerCall(id) if !answered.contains(id.as_str()));
    message.blocks.retain(is_answered);
}

/// An assistant's message must not end with thinking: an answer that was cut off there has said nothing.
fn drop_trailing_thinking(messages: &mut Vec<Merged<'_>>) {
    let Some(last) = messages.last_mut().filter(|last| last.speaker == Speaker::Assistant) else { return };
    while last.blocks.last().is_some_and(|block| block.kind == Kind::Thinking) {
        last.blocks.pop();
    }
    // Empty also if all that it had was dropped before.
    if last.blocks.is_empty() {
        messages.pop();
    }
}
