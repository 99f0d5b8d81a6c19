//! History items: immutable messages with cached encodings.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cache::EncodingCache;
use crate::fingerprint::Fingerprint;
use crate::message::Message;

/// Message in a history: immutable, shared and encoded once.
///
/// A conversation is sent in full with every request. An item therefore caches its encoding
/// ([`HistoryItem::encoding`]), so the next request reuses the same bytes.
#[derive(Clone)]
pub struct HistoryItem {
    inner: Arc<Inner>,
}

struct Inner {
    message: Message,
    fingerprint: OnceLock<Fingerprint>,
    encodings: EncodingCache,
}

impl HistoryItem {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.inner.message
    }

    /// Returns the encoding for `dialect` and `target`, and calls `encode` on a miss.
    ///
    /// `target` names everything outside the message that the encoding depends on (the model, whether foreign
    /// reasoning is dropped). The cache holds the first encoding ever requested and the latest one per dialect, so a
    /// change of target costs one encoding.
    pub fn encoding<T: Any + Send + Sync>(
        &self,
        dialect: &'static str,
        target: &str,
        encode: impl FnOnce(&Message) -> T,
    ) -> Arc<T> {
        self.inner.encodings.get_or_insert_with(dialect, target, || encode(&self.inner.message))
    }

    /// Returns a hash over the whole message, computed once.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        *self.inner.fingerprint.get_or_init(|| Fingerprint::from_json(&self.inner.message))
    }
}

impl From<Message> for HistoryItem {
    fn from(message: Message) -> Self {
        let inner = Inner { message, fingerprint: OnceLock::new(), encodings: EncodingCache::default() };
        Self { inner: Arc::new(inner) }
    }
}

impl Deref for HistoryItem {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.inner.message
    }
}

impl PartialEq for HistoryItem {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.message == other.inner.message
    }
}

impl fmt::Debug for HistoryItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.message.fmt(f)
    }
}

impl Serialize for HistoryItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.inner.message.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HistoryItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Message::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_item_is_encoded_once_per_dialect_and_target() {
        let item = HistoryItem::from(Message::user("hello"));
        let runs = Cell::new(0);
        let encode = |dialect, target: &str| {
            let text = item.encoding(dialect, target, |message| {
                runs.set(runs.get() + 1);
                message.text()
            });
            assert_eq!(*text, "hello");
        };
        encode("a", "m1");
        encode("a", "m1");
        item.clone().encoding("a", "m1", |_| -> String { unreachable!("clones share the cache") });
        assert_eq!(runs.get(), 1);
        encode("b", "m1");
        encode("a", "m1");
        assert_eq!(runs.get(), 2, "dialects do not displace each other");
        encode("a", "m2");
        encode("a", "m2");
        encode("a", "m1");
        assert_eq!(runs.get(), 3, "another target has another encoding, and the first one stays");
        encode("a", "m3");
        encode("a", "m2");
        assert_eq!(runs.get(), 5, "besides the first, one per dialect");
        encode("b", "m1");
        assert_eq!(runs.get(), 5, "other dialects are not affected");
    }

    #[test]
    fn fingerprints_are_stable_and_distinct() {
        let item = HistoryItem::from(Message::user("hello"));
        assert_eq!(item.fingerprint(), HistoryItem::from(Message::user("hello")).fingerprint());
        assert_ne!(item.fingerprint(), HistoryItem::from(Message::assistant("hello")).fingerprint());
        let bytes = serde_json::to_vec(item.message()).unwrap();
        assert_eq!(item.fingerprint(), Fingerprint::from_bytes(&bytes), "in one write or in several");
        assert_eq!(Fingerprint::from_bytes(b"pintle").to_string(), "a505aa499cc797bab23565b437400511");
    }
}
