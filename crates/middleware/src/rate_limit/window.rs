//! Sliding window of calls: plain state, without a clock.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// Calls within the last `length`, oldest first.
#[derive(Debug)]
pub(super) struct RateWindow {
    requests: Option<u32>,
    tokens: Option<u64>,
    length: Duration,
    entries: VecDeque<WindowEntry>,
    /// Total tokens of all entries.
    used: u128,
    next: u64,
}

#[derive(Debug)]
struct WindowEntry {
    number: u64,
    at: Instant,
    tokens: u64,
}

impl RateWindow {
    pub(super) fn new(requests: Option<u32>, tokens: Option<u64>, length: Duration) -> Self {
        Self { requests, tokens, length, entries: VecDeque::new(), used: 0, next: 0 }
    }

    /// Adds a call and returns its number.
    ///
    /// # Errors
    ///
    /// The time at which the call would be allowed if nothing changes before.
    pub(super) fn enter(&mut self, tokens: u64, now: Instant) -> Result<u64, Instant> {
        while let Some(oldest) = self.entries.front().filter(|entry| entry.at + self.length <= now) {
            self.used -= u128::from(oldest.tokens);
            self.entries.pop_front();
        }
        if let Some(free_at) = self.next_request_at().max(self.tokens_free_at(tokens)) {
            return Err(free_at);
        }
        let number = self.next;
        self.next += 1;
        self.entries.push_back(WindowEntry { number, at: now, tokens });
        self.used += u128::from(tokens);
        Ok(number)
    }

    /// Replaces the tokens of a call. A call that has left the window is ignored.
    pub(super) fn set_tokens(&mut self, number: u64, tokens: u64) {
        let index = self.entries.partition_point(|entry| entry.number < number);
        if let Some(entry) = self.entries.get_mut(index).filter(|entry| entry.number == number) {
            self.used = self.used - u128::from(entry.tokens) + u128::from(tokens);
            entry.tokens = tokens;
        }
    }

    pub(super) fn limits(&self) -> impl fmt::Display {
        let requests = self.requests.map(|requests| format!("{requests} requests"));
        let tokens = self.tokens.map(|tokens| format!("{tokens} tokens"));
        let both: Vec<String> = requests.into_iter().chain(tokens).collect();
        format!("{} per {:?}", both.join(" and "), self.length)
    }

    /// Time at which the request limit allows another call; `None` for now.
    fn next_request_at(&self) -> Option<Instant> {
        let limit = usize::try_from(self.requests?).unwrap_or(usize::MAX);
        let must_leave = self.entries.len().checked_sub(limit)?;
        self.entries.get(must_leave).map(|entry| entry.at + self.length)
    }

    /// Time at which the token limit allows this many more; `None` for now. A call above the limit is allowed alone.
    fn tokens_free_at(&self, wanted: u64) -> Option<Instant> {
        let limit = self.tokens?;
        let allowed = u128::from(limit - wanted.min(limit));
        let mut used = self.used;
        let mut free_at = None;
        for entry in &self.entries {
            if used <= allowed {
                break;
            }
            used -= u128::from(entry.tokens);
            free_at = Some(entry.at + self.length);
        }
        free_at
    }
}
