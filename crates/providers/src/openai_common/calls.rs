//! Tool calls on the wire: legal names, legal ids, and a call for each result.

use pintle_llm::{Error, Fingerprint, HistoryItem, Message, Role, ToolCall};

use crate::media::unsupported;

/// Returns a name in characters that the API accepts: models also call tools that do not exist.
pub(crate) fn wire_name(name: &str, max_length: usize) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(max_length).map(legal).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// Returns a call id of a length that the API accepts. Ids of a call and of its result map alike.
pub(crate) fn wire_id(id: &str, max_length: usize) -> String {
    if !id.is_empty() && id.chars().count() <= max_length {
        return id.to_owned();
    }
    let hash = Fingerprint::from_bytes(id.as_bytes()).to_string();
    format!("call_{hash}").chars().take(max_length).collect()
}

/// Returns a call id of nine letters and digits. Ids of a call and of its result map alike.
pub(crate) fn nine_alphanumeric(id: &str) -> String {
    const LENGTH: usize = 9;
    if id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    let hash = Fingerprint::from_bytes(id.as_bytes()).to_string();
    let mut rest = hash.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default();
    let mut digits = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        digits.extend(u32::try_from(rest % 36).ok().and_then(|digit| char::from_digit(digit, 36)));
        rest /= 36;
    }
    digits
}

/// Returns the ids of the calls that a message answers. A tool message may be a result written as plain text.
pub(crate) fn answered(message: &Message) -> impl Iterator<Item = &str> {
    let plain = message.role == Role::Tool && message.results().next().is_none();
    let plain = message.tool_call_id.as_deref().filter(|_| plain);
    message.results().map(|result| result.tool_call_id.as_str()).chain(plain)
}

/// Index of the calls in the part of a conversation that has been read.
#[derive(Debug, Default)]
pub(crate) struct CallIndex<'a> {
    /// Items read for an earlier request.
    before: &'a [HistoryItem],
    /// Later messages with calls. They are searched from the newest, because a result usually follows its call.
    callers: Vec<&'a Message>,
}

impl<'a> CallIndex<'a> {
    /// Creates an index of a conversation that starts with these items.
    pub(crate) fn after(before: &'a [HistoryItem]) -> Self {
        Self { before, callers: Vec::new() }
    }

    /// Checks that the results of a message have their calls, and adds its own calls.
    ///
    /// # Errors
    ///
    /// [`pintle_llm::ErrorKind::InvalidRequest`] naming a result without a preceding call.
    pub(crate) fn read(&mut self, message: &'a Message, provider: &str) -> Result<(), Error> {
        if let Some(id) = answered(message).find(|id| self.find(id).is_none()) {
            return Err(unsupported(provider, format!("the result of call `{id}` has no call before it")));
        }
        self.add(message);
        Ok(())
    }

    /// Adds the calls of a message without checking its results.
    pub(crate) fn add(&mut self, message: &'a Message) {
        if message.tool_calls().next().is_some() {
            self.callers.push(message);
        }
    }

    /// Returns the newest call with this id.
    pub(crate) fn find(&self, id: &str) -> Option<&'a ToolCall> {
        let callers = self.callers.iter().copied();
        let mut all = self.before.iter().map(HistoryItem::message).chain(callers).rev();
        all.find_map(|message| message.tool_calls().find(|call| call.id == id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitized_names_and_ids_stay_unique() {
        assert_eq!(wire_name("read_file-2", 64), "read_file-2");
        assert_eq!(wire_name("my tool! é", 64), "my_tool___");
        assert_eq!((wire_name("", 64).as_str(), wire_name(&"x".repeat(99), 64).len()), ("unnamed", 64));
        assert_eq!(wire_id("call_1", 40), "call_1");
        let (long, other) = ("a".repeat(99), "a".repeat(98));
        assert!(wire_id(&long, 40).len() <= 40 && wire_id(&long, 40) == wire_id(&long, 40));
        assert_ne!(wire_id(&long, 40), wire_id(&other, 40));
        assert!(!wire_id("", 40).is_empty());
    }

    #[test]
    fn nine_alphanumeric_ids_are_legal_and_distinct() {
        assert_eq!(nine_alphanumeric("aB3dE6gH9"), "aB3dE6gH9");
        let given: Vec<String> =
            ["", "call_1", "call_2", "call-1234", "1234567890", "éééé1"].map(str::to_owned).to_vec();
        let mut found: Vec<String> = given.iter().map(|id| nine_alphanumeric(id)).collect();
        for id in &found {
            assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
        assert_eq!(found, given.iter().map(|id| nine_alphanumeric(id)).collect::<Vec<_>>());
        found.sort();
        found.dedup();
        assert_eq!(found.len(), given.len());
    }
}
