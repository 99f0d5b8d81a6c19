//! Assembly of parts into a conversation.

use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{Error, HistoryItem, Request};

use super::NAME;
use super::part::{EncodedTurn, Part, Turn, WireRole, encoded};
use crate::body::Body;
use crate::media::unsupported;

/// Number of newest contents that may still change: the last one may get more parts, and results refer to calls in the
/// content before them.
const UNSTABLE: usize = 3;

/// A conversation in the form of the API: the results of one round are in one content and name their functions.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    request: &'a Request,
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
    /// Parts of the system prompt.
    system: Vec<Bytes>,
    contents: Body,
}

/// One content of the request, merged from adjacent turns.
#[derive(Debug)]
struct MergedContent<'a> {
    role: WireRole,
    parts: Vec<&'a Part>,
    /// Index of its first turn.
    first: usize,
}

impl<'a> Conversation<'a> {
    /// Encodes the conversation of a request. Each item is encoded at most once per model, and the stable prefix is taken
    /// from the message list, where [`Conversation::write`] stored it.
    pub(super) fn new(request: &'a Request) -> Result<Self, Error> {
        let known = request.messages.take_cached_prefix(NAME, &request.model);
        let (known, stable): (usize, StablePrefix) = known.unwrap_or_default();
        let new = request.messages.get(known..).unwrap_or_default();
        let turns = new.iter().map(|item| encoded(item, &request.model)).collect::<Result<_, Error>>()?;
        Ok(Self { request, stable, turns })
    }

    /// Returns the parts of the system prompt.
    pub(super) fn system(&self) -> impl Iterator<Item = &Bytes> {
        self.stable.system.iter().chain(self.turns().flat_map(system_parts))
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter_map(|turn| turn.as_ref().as_ref().ok())
    }

    /// Writes the contents as the elements of a JSON list, and memoises the stable prefix with the messages of the request,
    /// for the next request.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::InvalidRequest`] for a conversation that the API always rejects: without content, or with a
    /// result without its call.
    pub(super) fn write(mut self, out: &mut Body) -> Result<(), Error> {
        let newest = self.encode_newest()?;
        if newest.is_empty() && self.stable.contents.is_empty() {
            return Err(unsupported(
                NAME,
                "the conversation is empty: expected at least one message with content",
            ));
        }
        let (stable, open) = newest.split_at(newest.len().saturating_sub(UNSTABLE));
        if let Some((first, _)) = open.first().filter(|_| !stable.is_empty()) {
            self.extend_stable(*first, stable.iter().map(|(_, content)| content));
        }
        out.append(&self.stable.contents);
        for (index, (_, content)) in open.iter().enumerate() {
            if index > 0 || !self.stable.contents.is_empty() {
                out.write(b",");
            }
            out.append(content);
        }
        let Self { request, stable, .. } = self;
        request.messages.cache_prefix(NAME, &request.model, stable.items, stable);
        Ok(())
    }

    /// Extends the stable prefix by these turns, which are encoded as these contents.
    fn extend_stable<'b>(&mut self, turns: usize, contents: impl Iterator<Item = &'b Body>) {
        let stable = self.turns.iter().take(turns).filter_map(|turn| turn.as_ref().as_ref().ok());
        self.stable.system.extend(stable.flat_map(system_parts).cloned());
        self.stable.items += turns;
        contents.for_each(|content| self.stable.contents.element(content));
    }

    /// Encodes the contents after the stable prefix, each with the index of its first turn.
    fn encode_newest(&self) -> Result<Vec<(usize, Body)>, Error> {
        let (contents, mut calls) = (self.newest(), Vec::new());
        let written = contents.iter().map(|content| {
            let mut body = Body::default();
            content.write(&mut calls, &|id| self.stable_call(id), &mut body)?;
            Ok((content.first, body))
        });
        written.collect()
    }

    /// Returns the contents after the stable prefix.
    fn newest(&self) -> Vec<MergedContent<'_>> {
        let mut contents: Vec<MergedContent<'_>> = Vec::new();
        let turns = self
            .turns()
            .enumerate()
            .filter(|(_, turn)| turn.role != WireRole::System && !turn.parts.is_empty());
        for (first, turn) in turns {
            let joins = |last: &&mut MergedContent<'_>| last.role == turn.role && turn.role != WireRole::User;
            match contents.last_mut().filter(joins) {
                Some(last) => last.parts.extend(&turn.parts),
                None => {
                    let parts = turn.parts.iter().collect();
                    contents.push(MergedContent { role: turn.role, parts, first });
                }
            }
        }
        for content in contents.iter_mut().filter(|content| content.role == WireRole::Results) {
            // The sort is stable, so results and other parts keep their order.
            content.parts.sort_by_key(|part| !matches!(part, Part::Result { .. }));
        }
        contents
    }

    /// Returns the function of the newest call with this id in the stable prefix.
    fn stable_call(&self, id: &str) -> Option<String> {
        let items: &[HistoryItem] = self.request.messages.get(..self.stable.items).unwrap_or_default();
        items.iter().rev().find_map(|item| {
            // The encoding is memoised.
            let turn = encoded(item, &self.request.model).ok()?;
            let parts = turn.as_ref().as_ref().map_or(&[][..], |turn| turn.parts.as_slice());
            parts.iter().rev().find_map(|part| match part {
                Part::Call { id: called, name, .. } => (called == id).then(|| name.clone()),
                Part::Plain(_) | Part::Result { .. } => None,
            })
        })
    }
}

fn system_parts(turn: &Turn) -> impl Iterator<Item = &Bytes> {
    let parts = if turn.role == WireRole::System { turn.parts.as_slice() } else { &[] };
    parts.iter().filter_map(|part| match part {
        Part::Plain(json) => Some(json),
        Part::Call { .. } | Part::Result { .. } => None,
    })
}

impl<'a> MergedContent<'a> {
    /// Writes the content as JSON. `calls` are the ids and functions of all calls in preceding contents. The call of a result
    /// is searched from the newest on, and then with `stable`, which looks it up in the stable prefix.
    fn write(
        &self,
        calls: &mut Vec<(&'a str, &'a str)>,
        stable: &dyn Fn(&str) -> Option<String>,
        out: &mut Body,
    ) -> Result<(), Error> {
        let role = if self.role == WireRole::Model { "model" } else { "user" };
        out.write(format!(r#"{{"role":"{role}","parts":["#).as_bytes());
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                out.write(b",");
            }
            match part {
                Part::Plain(json) => out.share(json),
                Part::Call { id, name, json } => {
                    calls.push((id, name));
                    out.share(json);
                }
                Part::Result { id, rest } => {
                    let found = calls.iter().rev().find(|(called, _)| called == id);
                    let name = found.map(|(_, name)| (*name).to_owned()).or_else(|| stable(id));
                    let name = name.ok_or_else(|| {
                        unsupported(NAME, format!("the result of call `{id}` has no call before it"))
                    })?;
                    // Names contain no character that JSON escapes.
                    out.write(format!(r#"{{"functionResponse":{{"name":"{name}","#).as_bytes());
                    out.share(rest);
                }
            }
        }
        out.write(b"]}");
        Ok(())
    }
}
