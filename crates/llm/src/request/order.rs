//! The order of calls and results in a conversation.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Request;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::message::Role;

/// The beginning of a list of messages that [`is_usual`].
const USUAL: &str = "usual-order";

impl Request {
    /// The request with each result directly behind the message that made its call, as every provider wants it;
    /// what was said meanwhile, such as a user's steering, follows the results. Borrowed if it is so already.
    ///
    /// A result whose call is not in the conversation stays where it is: with some providers the call is stored on
    /// their side.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] for what every provider refuses: a call without a result, and a second result of
    /// one call.
    pub fn in_order(&self) -> Result<Cow<'_, Self>, Error> {
        // Where a round is over, nothing that follows can be of it: what was looked through is not looked through again.
        let known = self.messages.take_beginning::<()>(USUAL, "").map_or(0, |(items, ())| items);
        if is_usual(self.messages.get(known..).unwrap_or(&[])) {
            self.messages.keep_beginning(USUAL, "", self.messages.len(), ());
            Ok(Cow::Borrowed(self))
        } else {
            self.put_in_order()
        }
    }

    /// As [`Request::in_order`], whatever the shape of the conversation.
    fn put_in_order(&self) -> Result<Cow<'_, Self>, Error> {
        let mut ordered: Vec<&HistoryItem> = Vec::with_capacity(self.messages.len());
        let mut calls = Calls::default();
        let mut moved = false;
        for item in &self.messages {
            calls.read(item)?;
            let place = calls.place_of(item, &ordered);
            moved |= place < ordered.len();
            ordered.insert(place, item);
        }
        calls.finish()?;
        if !moved {
            return Ok(Cow::Borrowed(self));
        }
        let messages = ordered.into_iter().cloned().collect();
        Ok(Cow::Owned(Self { messages, ..self.clone() }))
    }
}

/// Whether each message with calls is directly followed by the results of exactly its calls, as an agent's loop makes
/// them: nothing is to be moved then, and nothing to be refused. One pass, without a table of all ids.
fn is_usual(messages: &[HistoryItem]) -> bool {
    let mut open = OpenRound::default();
    messages.iter().all(|item| open.takes(item)) && open.waiting.is_empty()
}

/// The calls of the newest message that made some, as far as they wait for their results; the first one last.
#[derive(Default)]
struct OpenRound<'a> {
    waiting: Vec<&'a str>,
}

impl<'a> OpenRound<'a> {
    /// Whether the item is one that may stand here.
    fn takes(&mut self, item: &'a HistoryItem) -> bool {
        let calls = item.role == Role::Assistant && item.tool_calls().next().is_some();
        let mut results = answered(item).peekable();
        match (calls, results.peek().is_some()) {
            (false, true) => results.all(|id| self.settles(id)),
            (true, false) => self.waiting.is_empty() && self.opens(item),
            (false, false) => self.waiting.is_empty(),
            // An answer that holds its own results: nobody's usual.
            (true, true) => false,
        }
    }

    fn opens(&mut self, item: &'a HistoryItem) -> bool {
        self.waiting.extend(item.tool_calls().map(|call| call.id.as_str()));
        self.waiting.reverse();
        self.waiting.len() == 1 || are_distinct(self.waiting.clone())
    }

    fn settles(&mut self, id: &str) -> bool {
        // Results mostly come in the order of their calls.
        let found = self.waiting.iter().rposition(|waiting| *waiting == id);
        found.map(|place| self.waiting.remove(place)).is_some()
    }
}

fn are_distinct(mut ids: Vec<&str>) -> bool {
    ids.sort_unstable();
    ids.is_sorted_by(|one, next| one < next)
}

/// The calls that were made so far, with the tool of each that waits for its result.
#[derive(Default)]
struct Calls<'a> {
    made: HashMap<&'a str, Option<&'a str>>,
    order: Vec<&'a str>,
}

impl<'a> Calls<'a> {
    fn read(&mut self, item: &'a HistoryItem) -> Result<(), Error> {
        for id in answered(item) {
            match self.made.get_mut(id) {
                Some(waiting @ Some(_)) => *waiting = None,
                Some(None) => return Err(refused(format!("the call `{id}` has a second result"))),
                None => {}
            }
        }
        for call in item.tool_calls().filter(|_| item.role == Role::Assistant) {
            if let Some(Some(_)) = self.made.insert(&call.id, Some(&call.name)) {
                return Err(refused(format!("two calls that wait for a result have the id `{}`", call.id)));
            }
            self.order.push(&call.id);
        }
        Ok(())
    }

    /// Where an item belongs among those before it: at the end, but for results, which stand behind the last message
    /// that made one of their calls and the results that are there already.
    fn place_of(&self, item: &HistoryItem, before: &[&HistoryItem]) -> usize {
        let ids: Vec<&str> = answered(item).filter(|id| self.made.contains_key(id)).collect();
        if ids.is_empty() {
            return before.len();
        }
        let made = |candidate: &&HistoryItem| {
            candidate.role == Role::Assistant
                && candidate.tool_calls().any(|call| ids.contains(&call.id.as_str()))
        };
        before.iter().rposition(made).map_or(before.len(), |caller| {
            let behind = before.iter().skip(caller + 1);
            caller + 1 + behind.take_while(|item| answered(item).next().is_some()).count()
        })
    }

    fn finish(self) -> Result<(), Error> {
        let waiting = self.order.iter().find_map(|id| Some((id, (*self.made.get(id)?)?)));
        match waiting {
            Some((id, tool)) => Err(refused(format!("the call `{id}` of the tool `{tool}` has no result"))),
            None => Ok(()),
        }
    }
}

/// The calls that an item answers, also where the result is written as plain text.
fn answered(item: &HistoryItem) -> impl Iterator<Item = &str> {
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

    /// A word per message: `u1` of the user, `a` and `b` of the model, `a:xy` calling `x` and `y`, `r:x` a result.
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
    fn results_stand_behind_their_calls() {
        let rows = [
            ("u1 a:xy u2 r:xy a", "u1 a:xy r:xy u2 a"),
            ("u1 a:xy r:x u2 r:y a", "u1 a:xy r:x r:y u2 a"),
            ("u1 a:xy u2 r:x u3 r:y", "u1 a:xy r:x r:y u2 u3"),
            ("u1 a:x a r:x", "u1 a:x r:x a"),
            ("u1 a:x u2 r:x a:x u3 r:x", "u1 a:x r:x u2 a:x r:x u3"),
        ];
        for (told, expected) in rows {
            let request = conversation(told);
            let ordered = request.in_order().unwrap();
            assert_eq!(words(&ordered), expected, "{told}");
            assert!(matches!(ordered, Cow::Owned(_)));
        }
        for told in
            ["u1", "u1 a u2", "u1 a:xy r:xy", "u1 a:xy r:x r:y u2 a:z r:z", "u1 a:x a:y r:xy", "r:q u1"]
        {
            let request = conversation(told);
            assert!(matches!(request.in_order().unwrap(), Cow::Borrowed(_)), "{told}");
        }
    }

    #[test]
    fn a_moved_item_is_the_same_item() {
        let request = conversation("u1 a:x u2 r:x");
        request.messages[2].encoding("d", "m", |_| 1);
        let ordered = request.in_order().unwrap();
        assert_eq!(*ordered.messages[3].encoding("d", "m", |_| 2), 1, "its encoding comes with it");
    }

    #[test]
    fn a_result_written_as_plain_text_is_one() {
        let mut plain = Message::new(Role::Tool, vec![crate::content::ContentPart::text("done")]);
        plain.tool_call_id = Some("x".into());
        let mut request = conversation("u1 a:x u2");
        request.messages.push(plain.into());
        assert_eq!(request.in_order().unwrap().messages[2].role, Role::Tool);
    }

    #[test]
    fn what_every_provider_refuses_is_refused_by_name() {
        let rows = [
            ("u1 a:xy", "the call `x` of the tool `tool` has no result"),
            ("u1 a:xy r:x u2", "the call `y` of the tool `tool` has no result"),
            ("u1 a:x r:x r:x", "the call `x` has a second result"),
            ("u1 a:x r:xx", "the call `x` has a second result"),
            ("u1 a:xx r:x", "two calls that wait for a result have the id `x`"),
        ];
        for (told, message) in rows {
            let error = conversation(told).in_order().unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, message), "{told}");
        }
    }
    /// Rounds as a loop makes them: a message with calls, and its results in one message or in one each, in any order.
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

    /// A conversation of such rounds with other messages between them, and perhaps one word too few, too many, or at
    /// another place.
    fn told() -> impl Strategy<Value = (Vec<String>, bool)> {
        let other = proptest::sample::select(vec!["u1", "a", "u2"]).prop_map(|word| vec![word.to_owned()]);
        let stray = proptest::sample::select(vec!["a:x", "r:x", "a:xx", "r:xx", "r:q", "a:yx", "r:xy", "u3"]);
        let words = proptest::collection::vec(prop_oneof![3 => round(), 2 => other], 1..6);
        let change = proptest::option::of((any::<prop::sample::Index>(), 0..3, stray));
        (words, change).prop_map(|(words, change)| {
            let mut words = words.concat();
            let usual = change.is_none();
            match change {
                Some((place, 0, _)) => drop(words.remove(place.index(words.len()))),
                Some((place, 1, stray)) => words.insert(place.index(words.len() + 1), stray.to_owned()),
                Some((place, _, _)) => {
                    let place = place.index(words.len());
                    words.rotate_left(place);
                }
                None => {}
            }
            (words, usual)
        })
    }

    proptest! {
        #[test]
        fn the_short_way_is_taken_for_what_is_usual_and_finds_what_the_long_one_finds((told, usual) in told()) {
            prop_assume!(!told.is_empty());
            let request = conversation(&told.join(" "));
            prop_assert!(!usual || is_usual(&request.messages), "{told:?} is usual");
            let seen = |ordered: Result<Cow<'_, Request>, Error>| {
                ordered.map(|found| words(&found)).map_err(|error| error.message().to_owned())
            };
            prop_assert_eq!(seen(request.in_order()), seen(request.put_in_order()));
        }

        #[test]
        fn a_conversation_that_grows_is_judged_as_one_that_is_told_at_once((told, _) in told()) {
            let whole = conversation(&told.join(" "));
            let mut grown = Request::new("m", Vec::<Message>::new());
            let seen = |request: &Request| {
                let ordered = request.in_order().map(|found| words(&found));
                ordered.map_err(|error| error.message().to_owned())
            };
            for (place, item) in whole.messages.iter().enumerate() {
                grown.messages.push(item.clone());
                let anew = Request::new("m", whole.messages[..=place].to_vec());
                prop_assert_eq!(seen(&grown), seen(&anew), "after {:?}", &told[..=place]);
            }
        }
    }
}
