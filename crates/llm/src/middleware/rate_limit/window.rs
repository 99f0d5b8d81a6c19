//! What was sent within the last while.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// The calls of the last `length`, oldest first. The time is given.
#[derive(Debug)]
pub(super) struct Window {
    requests: Option<u32>,
    tokens: Option<u64>,
    length: Duration,
    entries: VecDeque<Entry>,
    /// The tokens of all entries.
    used: u128,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    at: Instant,
    tokens: u64,
}

impl Window {
    pub(super) fn new(requests: Option<u32>, tokens: Option<u64>, length: Duration) -> Self {
        Self { requests, tokens, length, entries: VecDeque::new(), used: 0, next: 0 }
    }

    /// Enters a call and returns its number.
    ///
    /// # Errors
    ///
    /// The time at which there is a place for it, if nothing changes until then.
    pub(super) fn enter(&mut self, tokens: u64, now: Instant) -> Result<u64, Instant> {
        while let Some(oldest) = self.entries.front().filter(|entry| entry.at + self.length <= now) {
            self.used -= u128::from(oldest.tokens);
            self.entries.pop_front();
        }
        if let Some(free_at) = self.place_for_request().max(self.place_for_tokens(tokens)) {
            return Err(free_at);
        }
        let number = self.next;
        self.next += 1;
        self.entries.push_back(Entry { number, at: now, tokens });
        self.used += u128::from(tokens);
        Ok(number)
    }

    /// Says how many tokens a call really had. One that has left the window is past caring.
    pub(super) fn correct(&mut self, number: u64, tokens: u64) {
        let place = self.entries.partition_point(|entry| entry.number < number);
        if let Some(entry) = self.entries.get_mut(place).filter(|entry| entry.number == number) {
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

    /// When the number of requests allows another; `None` if it does now.
    fn place_for_request(&self) -> Option<Instant> {
        let limit = usize::try_from(self.requests?).unwrap_or(usize::MAX);
        let must_leave = self.entries.len().checked_sub(limit)?;
        self.entries.get(must_leave).map(|entry| entry.at + self.length)
    }

    /// When the tokens allow so many more; `None` if they do now. More than the limit has a place if it is alone.
    fn place_for_tokens(&self, wanted: u64) -> Option<Instant> {
        let limit = self.tokens?;
        let room = u128::from(limit - wanted.min(limit));
        let mut used = self.used;
        let mut free_at = None;
        for entry in &self.entries {
            if used <= room {
                break;
            }
            used -= u128::from(entry.tokens);
            free_at = Some(entry.at + self.length);
        }
        free_at
    }
}
