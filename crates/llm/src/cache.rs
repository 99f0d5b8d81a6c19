//! Caches that keep a request's cost proportional to its new content.
//!
//! A session sends its whole conversation with every request, each time with a few more messages at the end.
//!
//! * [`EncodingCache`]: history items, tools and tool lists are immutable, so each holds its encoding per dialect and
//!   target, and an entry never becomes stale.
//! * [`PrefixCache`]: a [`MessageList`](crate::MessageList) holds values computed from its first `n` messages, such as
//!   an adapter's assembled body or the result of a check. Appending keeps them; every other change clears them. A user
//!   takes its value out, extends it by the messages after `n`, and puts it back.
//!
//! Neither ever changes the sent bytes (invariant I-44). A miss costs one pass over the list.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The first encoding ever requested, and the latest one per dialect.
///
/// Nearly every value is encoded for a single dialect and target. That encoding is read without a lock and needs no
/// allocation for the list.
#[derive(Default)]
pub(crate) struct EncodingCache {
    first: OnceLock<CacheEntry>,
    /// One entry per dialect, replaced when the target changes.
    others: Mutex<Vec<CacheEntry>>,
}

struct CacheEntry {
    dialect: &'static str,
    target: Box<str>,
    value: Arc<dyn Any + Send + Sync>,
}

impl EncodingCache {
    /// Returns the encoding for this dialect and target, and calls `encode` on a miss.
    pub(crate) fn get_or_insert_with<T: Any + Send + Sync>(
        &self,
        dialect: &'static str,
        target: &str,
        encode: impl FnOnce() -> T,
    ) -> Arc<T> {
        if let Some(found) = self.get(dialect, target) {
            return found;
        }
        let value = Arc::new(encode());
        let entry = CacheEntry {
            dialect,
            target: target.into(),
            value: Arc::clone(&value) as Arc<dyn Any + Send + Sync>,
        };
        if let Err(entry) = self.first.set(entry) {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            others.retain(|other| other.dialect != dialect);
            others.push(entry);
        }
        value
    }

    fn get<T: Any + Send + Sync>(&self, dialect: &str, target: &str) -> Option<Arc<T>> {
        let first = self.first.get()?;
        if first.matches(dialect, target) {
            return first.value();
        }
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.iter().find(|entry| entry.matches(dialect, target))?.value()
    }
}

impl CacheEntry {
    fn matches(&self, dialect: &str, target: &str) -> bool {
        self.dialect == dialect && *self.target == *target
    }

    fn value<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.value).downcast().ok()
    }
}

/// Values computed from the first messages of a list, one per kind.
#[derive(Default)]
pub(crate) struct PrefixCache {
    /// A few entries: one dialect, and the checks common to all of them.
    entries: Mutex<Vec<CachedPrefix>>,
}

#[derive(Clone)]
pub(crate) struct CachedPrefix {
    pub(crate) kind: &'static str,
    pub(crate) target: Box<str>,
    /// Number of messages that `value` covers.
    pub(crate) messages: usize,
    pub(crate) value: Arc<dyn Any + Send + Sync>,
}

impl PrefixCache {
    pub(crate) fn take(&self, kind: &str, target: &str) -> Option<CachedPrefix> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let index = entries.iter().position(|entry| entry.kind == kind && *entry.target == *target)?;
        Some(entries.swap_remove(index))
    }

    /// Copies a value that is cheap to copy, which spares its owner from putting it back.
    pub(crate) fn get<T: Any + Copy>(&self, kind: &str, target: &str) -> Option<(usize, T)> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.iter().find(|entry| entry.kind == kind && *entry.target == *target)?;
        Some((entry.messages, *entry.value.downcast_ref::<T>()?))
    }

    /// Replaces the entry of this kind, whatever its target.
    pub(crate) fn put(&self, new: CachedPrefix) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.kind != new.kind);
        entries.push(new);
    }
}

impl Clone for PrefixCache {
    fn clone(&self) -> Self {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Self { entries: Mutex::new(entries.clone()) }
    }
}
