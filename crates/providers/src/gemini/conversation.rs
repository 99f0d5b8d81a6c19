//! Parts as a conversation.

use std::sync::Arc;

use bytes::Bytes;
use pintle_llm::{Error, HistoryItem, Request};

use super::NAME;
use super::part::{Encoded, Part, Speaker, Turn, encoded};
use crate::body::Body;
use crate::media::refuse;

/// How many of the newest contents are looked at again: the last one may get more parts, and results look for their
/// calls in the one before them.
const UNSETTLED: usize = 3;

/// A conversation as the API wants it: the results of one round stand in one content, and name their functions.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    request: &'a Request,
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
    /// The parts of the system prompt.
    system: Vec<Bytes>,
    contents: Body,
}

/// One content of the request: neighbours that belong together have been merged.
#[derive(Debug)]
struct Merged<'a> {
    speaker: Speaker,
    parts: Vec<&'a Part>,
    /// The place of its first turn.
    first: usize,
}

impl<'a> Conversation<'a> {
    /// The conversation of a request: each item is encoded at most once for a model, and what is settled is taken from
    /// the list of messages, where [`Conversation::keep`] has left it.
    pub(super) fn new(request: &'a Request) -> Result<Self, Error> {
        let known = request.messages.take_cached_prefix(NAME, &request.model);
        let (known, settled): (usize, Settled) = known.unwrap_or_default();
        let new = request.messages.get(known..).unwrap_or_default();
        let turns = new.iter().map(|item| encoded(item, &request.model)).collect::<Result<_, Error>>()?;
        Ok(Self { request, settled, turns })
    }

    /// The parts of the system prompt.
    pub(super) fn system(&self) -> impl Iterator<Item = &Bytes> {
        self.settled.system.iter().chain(self.turns().flat_map(system_parts))
    }

    fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter_map(|turn| turn.as_ref().as_ref().ok())
    }

    /// Writes the contents as the elements of a JSON list, and leaves those that are settled with the messages of the
    /// request, for the next one.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::InvalidRequest`] for a conversation that the API refuses for certain: no content at all,
    /// or a result without its call.
    pub(super) fn write(mut self, out: &mut Body) -> Result<(), Error> {
        let newest = self.written()?;
        if newest.is_empty() && self.settled.contents.is_empty() {
            return Err(refuse(
                NAME,
                "the conversation is empty: expected at least one message with content",
            ));
        }
        let (settling, open) = newest.split_at(newest.len().saturating_sub(UNSETTLED));
        if let Some((first, _)) = open.first().filter(|_| !settling.is_empty()) {
            self.settle(*first, settling.iter().map(|(_, content)| content));
        }
        out.append(&self.settled.contents);
        for (index, (_, content)) in open.iter().enumerate() {
            if index > 0 || !self.settled.contents.is_empty() {
                out.write(b",");
            }
            out.append(content);
        }
        let Self { request, settled, .. } = self;
        request.messages.cache_prefix(NAME, &request.model, settled.items, settled);
        Ok(())
    }

    /// These turns, whose contents these are, change no more.
    fn settle<'b>(&mut self, turns: usize, contents: impl Iterator<Item = &'b Body>) {
        let settled = self.turns.iter().take(turns).filter_map(|turn| turn.as_ref().as_ref().ok());
        self.settled.system.extend(settled.flat_map(system_parts).cloned());
        self.settled.items += turns;
        contents.for_each(|content| self.settled.contents.element(content));
    }

    /// The contents that are not settled, as they are sent, each with the place of its first turn.
    fn written(&self) -> Result<Vec<(usize, Body)>, Error> {
        let (contents, mut calls) = (self.newest(), Vec::new());
        let written = contents.iter().map(|content| {
            let mut body = Body::default();
            content.write(&mut calls, &|id| self.settled_call(id), &mut body)?;
            Ok((content.first, body))
        });
        written.collect()
    }

    /// The contents that are not settled.
    fn newest(&self) -> Vec<Merged<'_>> {
        let mut contents: Vec<Merged<'_>> = Vec::new();
        let said = self
            .turns()
            .enumerate()
            .filter(|(_, turn)| turn.speaker != Speaker::System && !turn.parts.is_empty());
        for (first, turn) in said {
            let joins =
                |last: &&mut Merged<'_>| last.speaker == turn.speaker && turn.speaker != Speaker::User;
            match contents.last_mut().filter(joins) {
                Some(last) => last.parts.extend(&turn.parts),
                None => {
                    let parts = turn.parts.iter().collect();
                    contents.push(Merged { speaker: turn.speaker, parts, first });
                }
            }
        }
        for content in contents.iter_mut().filter(|content| content.speaker == Speaker::Results) {
            // Stable, so that results and everything else keep their order.
            content.parts.sort_by_key(|part| !matches!(part, Part::Result { .. }));
        }
        contents
    }

    /// The function of a call that is settled, the newest of this id.
    fn settled_call(&self, id: &str) -> Option<String> {
        let items: &[HistoryItem] = self.request.messages.get(..self.settled.items).unwrap_or_default();
        items.iter().rev().find_map(|item| {
            // Its encoding is there.
            let turn = encoded(item, &self.request.model).ok()?;
            let parts = turn.as_ref().as_ref().map_or(&[][..], |turn| turn.parts.as_slice());
            parts.iter().rev().find_map(|part| match part {
                Part::Call { id: called, name, .. } => (called == id).then(|| name.clone()),
                Part::Whole(_) | Part::Result { .. } => None,
            })
        })
    }
}

fn system_parts(turn: &Turn) -> impl Iterator<Item = &Bytes> {
    let parts = if turn.speaker == Speaker::System { turn.parts.as_slice() } else { &[] };
    parts.iter().filter_map(|part| match part {
        Part::Whole(json) => Some(json),
        Part::Call { .. } | Part::Result { .. } => None,
    })
}

impl<'a> Merged<'a> {
    /// `calls`: the id and the function of each call in the contents before. A result is looked for from the newest on,
    /// behind which it stands, and else among those that are `settled`.
    fn write(
        &self,
        calls: &mut Vec<(&'a str, &'a str)>,
        settled: &dyn Fn(&str) -> Option<String>,
        out: &mut Body,
    ) -> Result<(), Error> {
        let role = if self.speaker == Speaker::Model { "model" } else { "user" };
        out.write(format!(r#"{{"role":"{role}","parts":["#).as_bytes());
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                out.write(b",");
            }
            match part {
                Part::Whole(json) => out.share(json),
                Part::Call { id, name, json } => {
                    calls.push((id, name));
                    out.share(json);
                }
                Part::Result { id, rest } => {
                    let found = calls.iter().rev().find(|(called, _)| called == id);
                    let name = found.map(|(_, name)| (*name).to_owned()).or_else(|| settled(id));
                    let name = name.ok_or_else(|| {
                        refuse(NAME, format!("the result of call `{id}` answers no call before it"))
                    })?;
                    // Names hold no character that JSON escapes.
                    out.write(format!(r#"{{"functionResponse":{{"name":"{name}","#).as_bytes());
                    out.share(rest);
                }
            }
        }
        out.write(b"]}");
        Ok(())
    }
}
