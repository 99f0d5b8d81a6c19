//! The messages of a request: shared, copied on write, with cached prefixes.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cache::{CachedPrefix, PrefixCache};
use crate::history::HistoryItem;

/// Conversation of a request, in order. Cheap to clone: clones share one list until one of them changes.
///
/// A session sends the same list repeatedly, each time with a few more messages at the end. The list therefore caches
/// what adapters and checks computed from its first messages ([`MessageList::cache_prefix`]).
/// [`push`](MessageList::push) and [`extend`](MessageList::extend) keep the cache. Every other change goes through
/// [`Vec`] and clears it.
#[derive(Clone, Default)]
pub struct MessageList {
    inner: Arc<List>,
}

#[derive(Clone, Default)]
struct List {
    items: Vec<HistoryItem>,
    prefixes: PrefixCache,
}

impl MessageList {
    /// Appends a message.
    pub fn push(&mut self, item: HistoryItem) {
        self.items_to_append().push(item);
    }

    /// Appends messages.
    pub fn extend(&mut self, items: impl IntoIterator<Item = HistoryItem>) {
        self.items_to_append().extend(items);
    }

    /// Takes the cached value for `kind` and `target` out of the list, with the number of messages that it covers (at
    /// most the length of the list). The caller extends the value and caches it again.
    ///
    /// Clones that share the list share its cache. Of two concurrent callers, one gets `None` and starts over.
    #[must_use]
    pub fn take_cached_prefix<T: Any + Clone + Send + Sync>(
        &self,
        kind: &'static str,
        target: &str,
    ) -> Option<(usize, T)> {
        let cached = self.inner.prefixes.take(kind, target)?;
        let value: Arc<T> = cached.value.downcast().ok()?;
        Some((cached.messages, Arc::unwrap_or_clone(value)))
    }

    /// Returns a copy of the cached value for `kind` and `target`, with the number of messages that it covers.
    pub(crate) fn cached_prefix<T: Any + Copy>(&self, kind: &str, target: &str) -> Option<(usize, T)> {
        self.inner.prefixes.get(kind, target)
    }

    /// Caches a value computed from the first `messages` messages, for as long as the list is only appended to.
    /// `target` names everything else that the value depends on. There is one slot per `kind`, for instance an adapter's
    /// name, so a change of target costs a pass over the whole list.
    pub fn cache_prefix<T: Any + Clone + Send + Sync>(
        &self,
        kind: &'static str,
        target: &str,
        messages: usize,
        value: T,
    ) {
        let messages = messages.min(self.len());
        let value = Arc::new(value);
        self.inner.prefixes.put(CachedPrefix { kind, target: target.into(), messages, value });
    }

    /// Mutable access that keeps the cache.
    fn items_to_append(&mut self) -> &mut Vec<HistoryItem> {
        &mut Arc::make_mut(&mut self.inner).items
    }
}

impl Deref for MessageList {
    type Target = Vec<HistoryItem>;

    fn deref(&self) -> &Vec<HistoryItem> {
        &self.inner.items
    }
}

/// Mutable access for any change; clears the cache.
impl DerefMut for MessageList {
    fn deref_mut(&mut self) -> &mut Vec<HistoryItem> {
        // `make_mut` alone would clone the cache before it is cleared.
        if Arc::get_mut(&mut self.inner).is_none() {
            self.inner = Arc::new(List { items: self.inner.items.clone(), prefixes: PrefixCache::default() });
        }
        let list = Arc::make_mut(&mut self.inner);
        list.prefixes = PrefixCache::default();
        &mut list.items
    }
}

impl From<Vec<HistoryItem>> for MessageList {
    fn from(items: Vec<HistoryItem>) -> Self {
        Self { inner: Arc::new(List { items, prefixes: PrefixCache::default() }) }
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
    fn clones_share_one_list_until_one_changes() {
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
    fn appending_to_an_unshared_list_does_not_copy() {
        let mut list = list(&["a"]);
        list.items_to_append().reserve(8);
        let buffer = list.as_ptr();
        list.extend([Message::user("b").into(), Message::user("c").into()]);
        drop(list.clone());
        list.push(Message::user("d").into());
        assert_eq!((texts(&list).concat().as_str(), list.as_ptr()), ("abcd", buffer));
    }

    #[test]
    fn appending_keeps_the_cached_prefix() {
        let mut list = list(&["a"]);
        list.cache_prefix("kind", "target", 1, "value".to_owned());
        let shared = list.clone();
        list.push(Message::user("b").into());
        list.extend([Message::user("c").into()]);
        let cached = Some((1, "value".to_owned()));
        assert_eq!(list.take_cached_prefix::<String>("kind", "target"), cached);
        assert_eq!(list.take_cached_prefix::<String>("kind", "target"), None, "it was taken");
        assert_eq!(shared.take_cached_prefix::<String>("kind", "target"), cached, "the copy has its own");
        list.cache_prefix("kind", "target", 9, "more".to_owned());
        assert_eq!(list.take_cached_prefix::<String>("kind", "target"), Some((3, "more".to_owned())));
    }

    #[test]
    fn a_cached_prefix_is_found_by_kind_target_and_type() {
        let list = list(&["a"]);
        list.cache_prefix("kind", "one", 1, 1_u8);
        list.cache_prefix("other", "one", 1, 2_u8);
        assert_eq!(list.take_cached_prefix::<u8>("kind", "two"), None);
        assert_eq!(list.take_cached_prefix::<u8>("none", "one"), None);
        assert_eq!(list.clone().take_cached_prefix::<u8>("kind", "one"), Some((1, 1)), "clones share it");
        list.cache_prefix("kind", "one", 1, 3_u8);
        list.cache_prefix("kind", "two", 1, 4_u8);
        assert_eq!(list.take_cached_prefix::<u8>("kind", "one"), None, "one slot per kind");
        assert_eq!(list.cached_prefix::<u8>("other", "one"), Some((1, 2)));
        assert_eq!(list.cached_prefix::<u8>("other", "two"), None);
        assert_eq!(list.cached_prefix::<u16>("other", "one"), None);
        assert_eq!(list.take_cached_prefix::<u16>("kind", "two"), None);
        assert_eq!(list.take_cached_prefix::<u8>("other", "one"), Some((1, 2)));
    }

    #[test]
    fn every_other_change_clears_the_cache() {
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
                list.cache_prefix("kind", "", 2, ());
                let other = shared.then(|| list.clone());
                change(&mut list);
                assert_eq!(list.take_cached_prefix::<()>("kind", ""), None, "change {index}");
                if let Some(other) = other {
                    assert_eq!(other.take_cached_prefix::<()>("kind", ""), Some((2, ())), "change {index}");
                    assert_eq!(texts(&other), ["a", "b"]);
                }
            }
        }
    }

    #[test]
    fn it_is_serialised_as_a_list() {
        let list = list(&["a", "b"]);
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(text, serde_json::to_string(&list.to_vec()).unwrap());
        assert_eq!(serde_json::from_str::<MessageList>(&text).unwrap(), list);
        assert_eq!(format!("{list:?}"), format!("{:?}", list.to_vec()));
        assert_eq!(Vec::from(list.clone()).len() + list.into_iter().count(), 4);
    }
}
