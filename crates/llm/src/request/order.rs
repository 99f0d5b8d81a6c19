//! The order of calls and results in a conversation.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Request;
use crate::error::{Error, ErrorKind};
use crate::history::HistoryItem;
use crate::message::Role;

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
        let mut ordered: Vec<&HistoryItem> = Vec::with_capacity(self.messages.len());
        let mut calls = Calls::default();
        let mut moved = false;
        for item in &self.messages {
            calls.read(item)?;
            let place = place_of(item, &ordered);
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

    fn finish(self) -> Result<(), Error> {
        let waiting = self.order.iter().find_map(|id| Some((id, (*self.made.get(id)?)?)));
        match waiting {
            Some((id, tool)) => Err(refused(format!("the call `{id}` of the tool `{tool}` has no result"))),
            None => Ok(()),
        }
    }
}

/// Where an item belongs among those before it: at the end, but for results, which stand behind the last message that
/// made one of their calls and the results that are there already.
fn place_of(item: &HistoryItem, before: &[&HistoryItem]) -> usize {
    let ids: Vec<&str> = answered(item).collect();
    let made = |candidate: &&HistoryItem| {
        candidate.role == Role::Assistant
            && candidate.tool_calls().any(|call| ids.contains(&call.id.as_str()))
    };
    match before.iter().rposition(made) {
        Some(caller) if !ids.is_empty() => {
            let behind = before.iter().skip(caller + 1);
            caller + 1 + behind.take_while(|item| answered(item).next().is_some()).count()
        }
        Some(_) | None => before.len(),
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
}
