//! Bounded store of responses, without a clock.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pintle_llm::{Fingerprint, Response, estimate};
use tokio::sync::watch;
use tokio::time::Instant;

use super::CacheStats;

/// Responses by key.
pub(super) struct ResponseStore {
    max_entries: usize,
    max_bytes: usize,
    max_age: Option<Duration>,
    entries: HashMap<Fingerprint, CacheEntry>,
    /// Keys in the order of last use.
    uses: BTreeMap<u64, Fingerprint>,
    next_use: u64,
    bytes: usize,
    hits: u64,
    pub(super) misses: u64,
    /// Calls that others may wait for; an entry is removed when its call ends.
    pub(super) in_flight: HashMap<Fingerprint, watch::Receiver<()>>,
}

struct CacheEntry {
    response: Arc<Response>,
    bytes: usize,
    last_use: u64,
    stored_at: Instant,
}

impl ResponseStore {
    pub(super) fn new(max_entries: usize, max_bytes: usize, max_age: Option<Duration>) -> Self {
        Self {
            max_entries,
            max_bytes,
            max_age,
            entries: HashMap::new(),
            uses: BTreeMap::new(),
            next_use: 0,
            bytes: 0,
            hits: 0,
            misses: 0,
            in_flight: HashMap::new(),
        }
    }

    pub(super) fn get(&mut self, key: Fingerprint, now: Instant) -> Option<Arc<Response>> {
        let entry = self.entries.get_mut(&key)?;
        if self.max_age.is_some_and(|age| now.duration_since(entry.stored_at) >= age) {
            self.remove(key);
            return None;
        }
        self.uses.remove(&entry.last_use);
        entry.last_use = self.next_use;
        self.uses.insert(self.next_use, key);
        self.next_use += 1;
        self.hits += 1;
        Some(Arc::clone(&entry.response))
    }

    pub(super) fn put(&mut self, key: Fingerprint, response: Response, now: Instant) {
        let bytes = estimate::json_bytes(&response);
        self.remove(key);
        if bytes > self.max_bytes {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes > self.max_bytes - bytes {
            let Some((_, oldest)) = self.uses.pop_first() else { break };
            self.remove(oldest);
        }
        self.uses.insert(self.next_use, key);
        let entry =
            CacheEntry { response: Arc::new(response), bytes, last_use: self.next_use, stored_at: now };
        self.entries.insert(key, entry);
        self.next_use += 1;
        self.bytes += bytes;
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.uses.clear();
        self.bytes = 0;
    }

    pub(super) fn stats(&self) -> CacheStats {
        CacheStats { hits: self.hits, misses: self.misses, entries: self.entries.len(), bytes: self.bytes }
    }

    fn remove(&mut self, key: Fingerprint) {
        if let Some(entry) = self.entries.remove(&key) {
            self.uses.remove(&entry.last_use);
            self.bytes -= entry.bytes;
        }
    }
}

impl fmt::Debug for ResponseStore {
    /// Statistics only: responses are confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseStore").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
