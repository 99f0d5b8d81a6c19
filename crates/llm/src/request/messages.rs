//! The messages of a request: shared, copied on write, with what was made of their beginning.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::history::HistoryItem;

/// The conversation of a request, in order. Cheap to clone: clones share one list until one of them is changed.
///
/// A session sends the same list again and again, each time with a few more messages at its end. What was found out
/// about the messages before them, and what an adapter made of them, is therefore kept with the list
/// ([`MessageList::keep_beginning`]), so that a request costs what is new in it.
/// [`push`](MessageList::push) and [`extend`](MessageList::extend) leave that as it is. Every other change, for which
/// the list is a [`Vec`], forgets it.
#[derive(Clone, Default)]
pub struct MessageList {
    inner: Arc<List>,
}

#[derive(Clone, Default)]
struct List {
    items: Vec<HistoryItem>,
    beginnings: Beginnings,
}

impl MessageList {
    /// Appends a message.
    pub fn push(&mut self, item: HistoryItem) {
        self.growing().push(item);
    }

    /// Appends messages.
    pub fn extend(&mut self, items: impl IntoIterator<Item = HistoryItem>) {
        self.growing().extend(items);
    }

    /// Takes out what was kept of the beginning of this list for `kind` and `target`, and of how many messages it is:
    /// never of more than there are. Whoever takes it keeps it again, of more messages perhaps.
    ///
    /// Clones that share the list share this too; of two that ask at once, one makes it anew.
    #[must_use]
    pub fn take_beginning<T: Any + Clone + Send + Sync>(
        &self,
        kind: &'static str,
        target: &str,
    ) -> Option<(usize, T)> {
        let kept = self.inner.beginnings.take(kind, target)?;
        let made: Arc<T> = kept.made.downcast().ok()?;
        Some((kept.items, Arc::unwrap_or_clone(made)))
    }

    /// Keeps what was made of the first `items` messages, for as long as the list only grows. `target` names what it
    /// depends on besides the messages. There is one place for each `kind`, an adapter's name for instance, so that a
    /// switch of target costs another look at the whole list.
    pub fn keep_beginning<T: Any + Clone + Send + Sync>(
        &self,
        kind: &'static str,
        target: &str,
        items: usize,
        made: T,
    ) {
        let items = items.min(self.len());
        self.inner.beginnings.keep(Kept { kind, target: target.into(), items, made: Arc::new(made) });
    }

    /// The messages, to append some.
    fn growing(&mut self) -> &mut Vec<HistoryItem> {
        &mut Arc::make_mut(&mut self.inner).items
    }
}

/// What was made of the beginning of a list, by kind.
#[derive(Default)]
struct Beginnings {
    // A few kinds only: one dialect, and what is checked for all of them.
    kept: Mutex<Vec<Kept>>,
}

#[derive(Clone)]
struct Kept {
    kind: &'static str,
    target: Box<str>,
    items: usize,
    made: Arc<dyn Any + Send + Sync>,
}

impl Beginnings {
    fn take(&self, kind: &str, target: &str) -> Option<Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|known| known.kind == kind && *known.target == *target)?;
        Some(kept.swap_remove(place))
    }

    fn keep(&self, new: Kept) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|known| known.kind != new.kind);
        kept.push(new);
    }
}

impl Clone for Beginnings {
    fn clone(&self) -> Self {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Self { kept: Mutex::new(kept.clone()) }
    }
}

impl Deref for MessageList {
    type Target = Vec<HistoryItem>;

    fn deref(&self) -> &Vec<HistoryItem> {
        &self.inner.items
    }
}

/// For any change. What was kept of the list's beginning is forgotten.
impl DerefMut for MessageList {
    fn deref_mut(&mut self) -> &mut Vec<HistoryItem> {
        // Not through `make_mut`, which would clone what is forgotten.
        if Arc::get_mut(&mut self.inner).is_none() {
            self.inner =
                Arc::new(List { items: self.inner.items.clone(), beginnings: Beginnings::default() });
        }
        let list = Arc::make_mut(&mut self.inner);
        list.beginnings = Beginnings::default();
        &mut list.items
    }
}

impl From<Vec<HistoryItem>> for MessageList {
    fn from(items: Vec<HistoryItem>) -> Self {
        Self { inner: Arc::new(List { items, beginnings: Beginnings::default() }) }
    }
}

impl From<MessageList> for Vec<HistoryItem> {
    fn from(list: MessageList) -> Self {
        Arc::unwrap_or_clone(list.inner).items
    }
}

impl FromIterator<HistoryItem> for MessageList {
    fn from_iter<I: IntoIterator<Item = HistoryItem>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl IntoIterator for MessageList {
    type Item = HistoryItem;
    type IntoIter = std::vec::IntoIter<HistoryItem>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a MessageList {
    type Item = &'a HistoryItem;
    type IntoIter = std::slice::Iter<'a, HistoryItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut MessageList {
    type Item = &'a mut HistoryItem;
    type IntoIter = std::slice::IterMut<'a, HistoryItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl PartialEq for MessageList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.items == other.inner.items
    }
}

impl fmt::Debug for MessageList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.items.fmt(f)
    }
}

impl Serialize for MessageList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.inner.items.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MessageList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    fn list(texts: &[&str]) -> MessageList {
        texts.iter().map(|text| Message::user(*text).into()).collect()
    }

    fn texts(list: &MessageList) -> Vec<String> {
        list.iter().map(|item| item.text()).collect()
    }

    #[test]
    fn clones_share_one_list_until_one_is_changed() {
        let first = list(&["a", "b"]);
        let mut second = first.clone();
        assert_eq!(first.as_ptr(), second.as_ptr());
        second.push(Message::user("c").into());
        assert_eq!((texts(&first).concat(), texts(&second).concat()), ("ab".to_owned(), "abc".to_owned()));
        let mut third = second.clone();
        third.remove(0);
        assert_eq!((texts(&second).concat(), texts(&third).concat()), ("abc".to_owned(), "bc".to_owned()));
        assert_eq!(third, list(&["b", "c"]));
        assert_ne!(third, second);
    }

    #[test]
    fn a_list_that_grows_alone_is_not_copied() {
        let mut list = list(&["a"]);
        list.growing().reserve(8);
        let place = list.as_ptr();
        list.extend([Message::user("b").into(), Message::user("c").into()]);
        drop(list.clone());
        list.push(Message::user("d").into());
        assert_eq!((texts(&list).concat().as_str(), list.as_ptr()), ("abcd", place));
    }

    #[test]
    fn what_was_made_of_the_beginning_stays_while_the_list_grows() {
        let mut list = list(&["a"]);
        list.keep_beginning("kind", "target", 1, "made".to_owned());
        let shared = list.clone();
        list.push(Message::user("b").into());
        list.extend([Message::user("c").into()]);
        let made = Some((1, "made".to_owned()));
        assert_eq!(list.take_beginning::<String>("kind", "target"), made);
        assert_eq!(list.take_beginning::<String>("kind", "target"), None, "it was taken");
        assert_eq!(shared.take_beginning::<String>("kind", "target"), made, "the copy had one of its own");
        list.keep_beginning("kind", "target", 9, "more".to_owned());
        assert_eq!(list.take_beginning::<String>("kind", "target"), Some((3, "more".to_owned())));
    }

    #[test]
    fn it_is_given_for_its_kind_its_target_and_its_type_only() {
        let list = list(&["a"]);
        list.keep_beginning("kind", "one", 1, 1_u8);
        list.keep_beginning("other", "one", 1, 2_u8);
        assert_eq!(list.take_beginning::<u8>("kind", "two"), None);
        assert_eq!(list.take_beginning::<u8>("none", "one"), None);
        assert_eq!(list.clone().take_beginning::<u8>("kind", "one"), Some((1, 1)), "clones share it");
        list.keep_beginning("kind", "one", 1, 3_u8);
        list.keep_beginning("kind", "two", 1, 4_u8);
        assert_eq!(list.take_beginning::<u8>("kind", "one"), None, "one place for each kind");
        assert_eq!(list.take_beginning::<u16>("kind", "two"), None);
        assert_eq!(list.take_beginning::<u8>("other", "one"), Some((1, 2)));
    }

    #[test]
    fn every_other_change_forgets_it() {
        type Change = fn(&mut MessageList);
        let changes: [Change; 6] = [
            |list| list.truncate(1),
            |list| list.insert(0, Message::user("x").into()),
            |list| list[0] = Message::user("x").into(),
            |list| list.iter_mut().for_each(|item| *item = Message::user("x").into()),
            |list| list.clear(),
            |list| *list = list.iter().rev().cloned().collect(),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            for shared in [false, true] {
                let mut list = list(&["a", "b"]);
                list.keep_beginning("kind", "", 2, ());
                let other = shared.then(|| list.clone());
                change(&mut list);
                assert_eq!(list.take_beginning::<()>("kind", ""), None, "change {index}");
                if let Some(other) = other {
                    assert_eq!(other.take_beginning::<()>("kind", ""), Some((2, ())), "change {index}");
                    assert_eq!(texts(&other), ["a", "b"]);
                }
            }
        }
    }

    #[test]
    fn it_is_written_and_read_as_a_list() {
        let list = list(&["a", "b"]);
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(text, serde_json::to_string(&list.to_vec()).unwrap());
        assert_eq!(serde_json::from_str::<MessageList>(&text).unwrap(), list);
        assert_eq!(format!("{list:?}"), format!("{:?}", list.to_vec()));
        assert_eq!(Vec::from(list.clone()).len() + list.into_iter().count(), 4);
    }
}
