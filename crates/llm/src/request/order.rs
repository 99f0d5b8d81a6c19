//! Order of tool calls and results in a conversation.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Request;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::message::Role;

/// Kind of the cached prefix for which [`is_ordered`] holds.
const ORDERED: &str = "ordered";

impl Request {
    /// Returns the request with each result directly after the message with its call, as every provider requires.
    /// Messages in between, such as a user's steering, follow the results. Borrowed if nothing moves.
    ///
    /// A result whose call is not in the conversation stays in place: some providers store the call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] for a call without a result, and for a second result of a call, which every
    /// provider refuses.
    pub fn in_order(&self) -> Result<Cow<'_, Self>, Error> {
        // A cached prefix ends with a completed round, so the check can resume after it.
        let known = self.messages.take_cached_prefix::<()>(ORDERED, "").map_or(0, |(messages, ())| messages);
        if is_ordered(self.messages.get(known..).unwrap_or(&[])) {
            self.messages.cache_prefix(ORDERED, "", self.messages.len(), ());
            Ok(Cow::Borrowed(self))
        } else {
            self.reorder()
        }
    }

    /// Does the work of [`Request::in_order`] without the shortcut for ordered conversations.
    fn reorder(&self) -> Result<Cow<'_, Self>, Error> {
        let mut ordered: Vec<&HistoryItem> = Vec::with_capacity(self.messages.len());
        let mut calls = CallTable::default();
        let mut moved = false;
        for item in &self.messages {
            calls.record(item)?;
            let index = calls.position_of(item, &ordered);
            moved |= index < ordered.len();
            ordered.insert(index, item);
        }
        calls.finish()?;
        if !moved {
            return Ok(Cow::Borrowed(self));
        }
        let messages = ordered.into_iter().cloned().collect();
        Ok(Cow::Owned(Self { messages, ..self.clone() }))
    }
}

/// Returns `true` if each message with calls is directly followed by the results of exactly its calls, as in every
/// agent loop: nothing has to move and nothing is refused. One pass, without a table of all ids.
fn is_ordered(messages: &[HistoryItem]) -> bool {
    let mut round = OpenRound::default();
    messages.iter().all(|item| round.accept(item)) && round.pending.is_empty()
}

/// Calls of the latest message with calls that have no result yet, in reverse order.
#[derive(Default)]
struct OpenRound<'a> {
    pending: Vec<&'a str>,
}

impl<'a> OpenRound<'a> {
    /// Advances by one item. Returns `false` if the item is out of order.
    fn accept(&mut self, item: &'a HistoryItem) -> bool {
        let calls = item.role == Role::Assistant && item.tool_calls().next().is_some();
        let mut results = result_ids(item).peekable();
        match (calls, results.peek().is_some()) {
            (false, true) => results.all(|id| self.resolve(id)),
            (true, false) => self.pending.is_empty() && self.open(item),
            (false, false) => self.pending.is_empty(),
            // A message with calls and results takes the slow path.
            (true, true) => false,
        }
    }

    fn open(&mut self, item: &'a HistoryItem) -> bool {
        self.pending.extend(item.tool_calls().map(|call| call.id.as_str()));
        self.pending.reverse();
        self.pending.len() == 1 || are_distinct(self.pending.clone())
    }

    fn resolve(&mut self, id: &str) -> bool {
        // Results are usually in the order of their calls, so the search starts at the end.
        let found = self.pending.iter().rposition(|pending| *pending == id);
        found.map(|index| self.pending.remove(index)).is_some()
    }
}

fn are_distinct(mut ids: Vec<&str>) -> bool {
    ids.sort_unstable();
    ids.is_sorted_by(|one, next| one < next)
}

/// All calls so far.
#[derive(Default)]
struct CallTable<'a> {
    /// By id: the tool of a call without a result, `None` after its result.
    pending: HashMap<&'a str, Option<&'a str>>,
    order: Vec<&'a str>,
}

impl<'a> CallTable<'a> {
    fn record(&mut self, item: &'a HistoryItem) -> Result<(), Error> {
        for id in result_ids(item) {
            match self.pending.get_mut(id) {
                Some(tool @ Some(_)) => *tool = None,
                Some(None) => return Err(refused(format!("the call `{id}` has a second result"))),
                None => {}
            }
        }
        for call in item.tool_calls().filter(|_| item.role == Role::Assistant) {
            if let Some(Some(_)) = self.pending.insert(&call.id, Some(&call.name)) {
                return Err(refused(format!("two calls without a result have the id `{}`", call.id)));
            }
            self.order.push(&call.id);
        }
        Ok(())
    }

    /// Index at which to insert an item: the end, except for results, which go after the last message with one of their
    /// calls and the results that already follow it.
    fn position_of(&self, item: &HistoryItem, before: &[&HistoryItem]) -> usize {
        let ids: Vec<&str> = result_ids(item).filter(|id| self.pending.contains_key(id)).collect();
        if ids.is_empty() {
            return before.len();
        }
        let is_caller = |candidate: &&HistoryItem| {
            candidate.role == Role::Assistant
                && candidate.tool_calls().any(|call| ids.contains(&call.id.as_str()))
        };
        before.iter().rposition(is_caller).map_or(before.len(), |caller| {
            let after = before.iter().skip(caller + 1);
            caller + 1 + after.take_while(|item| result_ids(item).next().is_some()).count()
        })
    }

    fn finish(self) -> Result<(), Error> {
        let pending = self.order.iter().find_map(|id| Some((id, (*self.pending.get(id)?)?)));
        match pending {
            Some((id, tool)) => Err(refused(format!("the call `{id}` of the tool `{tool}` has no result"))),
            None => Ok(()),
        }
    }
}

/// Ids of the calls whose results an item holds, including a result given as plain text.
fn result_ids(item: &HistoryItem) -> impl Iterator<Item = &str> {
    let plain = (item.role == Role::Tool && item.results().next().is_none())
        .then_some(item.tool_call_id.as_deref())
        .flatten();
    item.results().map(|result| result.tool_call_id.as_str()).chain(plain)
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::content::{ToolCall, ToolResult};
    use crate::message::Message;

    /// One word per message: `u1` from the user, `a` from the model, `a:xy` with calls `x` and `y`, `r:x` a result.
    fn conversation(words: &str) -> Request {
        let message = |word: &str| match word.split_once(':') {
            Some(("r", ids)) => {
                Message::tool_results(ids.chars().map(|id| ToolResult::new(id, "done", false)).collect())
                    .with_name(word)
            }
            Some((_, ids)) => {
                let calls = ids.chars().map(|id| ToolCall::from_raw(id, "tool", "{}").into());
                Message::new(Role::Assistant, calls.collect()).with_name(word)
            }
            None if word.starts_with('u') => Message::user(word).with_name(word),
            None => Message::assistant(word).with_name(word),
        };
        Request::new("m", words.split(' ').map(message))
    }

    fn words(request: &Request) -> String {
        let names: Vec<&str> = request.messages.iter().filter_map(|item| item.name.as_deref()).collect();
        names.join(" ")
    }

    #[test]
    fn results_follow_their_calls() {
        let cases = [
            ("u1 a:xy u2 r:xy a", "u1 a:xy r:xy u2 a"),
            ("u1 a:xy r:x u2 r:y a", "u1 a:xy r:x r:y u2 a"),
            ("u1 a:xy u2 r:x u3 r:y", "u1 a:xy r:x r:y u2 u3"),
            ("u1 a:x a r:x", "u1 a:x r:x a"),
            ("u1 a:x u2 r:x a:x u3 r:x", "u1 a:x r:x u2 a:x r:x u3"),
        ];
        for (given, expected) in cases {
            let request = conversation(given);
            let ordered = request.in_order().unwrap();
            assert_eq!(words(&ordered), expected, "{given}");
            assert!(matches!(ordered, Cow::Owned(_)));
        }
        for given in
            ["u1", "u1 a u2", "u1 a:xy r:xy", "u1 a:xy r:x r:y u2 a:z r:z", "u1 a:x a:y r:xy", "r:q u1"]
        {
            let request = conversation(given);
            assert!(matches!(request.in_order().unwrap(), Cow::Borrowed(_)), "{given}");
        }
    }

    #[test]
    fn a_moved_item_keeps_its_encoding() {
        let request = conversation("u1 a:x u2 r:x");
        request.messages[2].encoding("d", "m", |_| 1);
        let ordered = request.in_order().unwrap();
        assert_eq!(*ordered.messages[3].encoding("d", "m", |_| 2), 1);
    }

    #[test]
    fn a_plain_text_tool_message_is_a_result() {
        let mut plain = Message::new(Role::Tool, vec![crate::content::ContentPart::text("done")]);
        plain.tool_call_id = Some("x".into());
        let mut request = conversation("u1 a:x u2");
        request.messages.push(plain.into());
        assert_eq!(request.in_order().unwrap().messages[2].role, Role::Tool);
    }

    #[test]
    fn missing_and_duplicate_results_are_refused_by_id() {
        let cases = [
            ("u1 a:xy", "the call `x` of the tool `tool` has no result"),
            ("u1 a:xy r:x u2", "the call `y` of the tool `tool` has no result"),
            ("u1 a:x r:x r:x", "the call `x` has a second result"),
            ("u1 a:x r:xx", "the call `x` has a second result"),
            ("u1 a:xx r:x", "two calls without a result have the id `x`"),
        ];
        for (given, message) in cases {
            let error = conversation(given).in_order().unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, message), "{given}");
        }
    }

    /// A round of an agent loop: a message with calls, and their results in any order, in one message or several.
    fn round() -> impl Strategy<Value = Vec<String>> {
        let ids = proptest::sample::subsequence(vec!['x', 'y', 'z'], 1..=3);
        let shuffled = ids.clone().prop_flat_map(|ids| (Just(ids.clone()), Just(ids).prop_shuffle()));
        (shuffled, any::<bool>()).prop_map(|((calls, results), together)| {
            let word = |kind: &str, ids: &[char]| format!("{kind}:{}", ids.iter().collect::<String>());
            let mut words = vec![word("a", &calls)];
            if together {
                words.push(word("r", &results));
            } else {
                words.extend(results.iter().map(|id| word("r", &[*id])));
            }
            words
        })
    }

    /// A conversation of rounds and other messages, and `false` if it was changed: a word removed or added, or all words
    /// rotated.
    fn conversations() -> impl Strategy<Value = (Vec<String>, bool)> {
        let other = proptest::sample::select(vec!["u1", "a", "u2"]).prop_map(|word| vec![word.to_owned()]);
        let stray = proptest::sample::select(vec!["a:x", "r:x", "a:xx", "r:xx", "r:q", "a:yx", "r:xy", "u3"]);
        let words = proptest::collection::vec(prop_oneof![3 => round(), 2 => other], 1..6);
        let change = proptest::option::of((any::<prop::sample::Index>(), 0..3, stray));
        (words, change).prop_map(|(words, change)| {
            let mut words = words.concat();
            let ordered = change.is_none();
            match change {
                Some((index, 0, _)) => drop(words.remove(index.index(words.len()))),
                Some((index, 1, stray)) => words.insert(index.index(words.len() + 1), stray.to_owned()),
                Some((index, _, _)) => {
                    let count = index.index(words.len());
                    words.rotate_left(count);
                }
                None => {}
            }
            (words, ordered)
        })
    }

    proptest! {
        #[test]
        fn the_shortcut_gives_the_same_order((given, ordered) in conversations()) {
            prop_assume!(!given.is_empty());
            let request = conversation(&given.join(" "));
            prop_assert!(!ordered || is_ordered(&request.messages), "{given:?} is ordered");
            let outcome = |ordered: Result<Cow<'_, Request>, Error>| {
                ordered.map(|found| words(&found)).map_err(|error| error.message().to_owned())
            };
            prop_assert_eq!(outcome(request.in_order()), outcome(request.reorder()));
        }

        #[test]
        fn a_growing_conversation_is_ordered_like_a_new_one((given, _) in conversations()) {
            let complete = conversation(&given.join(" "));
            let mut grown = Request::new("m", Vec::<Message>::new());
            let outcome = |request: &Request| {
                let ordered = request.in_order().map(|found| words(&found));
                ordered.map_err(|error| error.message().to_owned())
            };
            for (index, item) in complete.messages.iter().enumerate() {
                grown.messages.push(item.clone());
                let new = Request::new("m", complete.messages[..=index].to_vec());
                prop_assert_eq!(outcome(&grown), outcome(&new), "after {:?}", &given[..=index]);
            }
        }
    }
}
