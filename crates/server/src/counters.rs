//! Counters of a server's activity since its start.

use std::sync::atomic::{AtomicU64, Ordering};

use pintle_agent::EventKind;

/// Counters since the start of the server. All but `streams` only grow.
#[derive(Debug, Default)]
pub(crate) struct ServerCounters {
    /// Responses by the first digit of their status.
    answers: [AtomicU64; 6],
    pub(crate) events: AtomicU64,
    pub(crate) runs: AtomicU64,
    pub(crate) model_responses: AtomicU64,
    pub(crate) input_tokens: AtomicU64,
    pub(crate) output_tokens: AtomicU64,
    pub(crate) tool_calls: AtomicU64,
    /// Number of open event streams.
    pub(crate) streams: AtomicU64,
}

/// Counts an open stream until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStreamGuard(std::sync::Arc<ServerCounters>);

impl OpenStreamGuard {
    pub(crate) fn new(counters: &std::sync::Arc<ServerCounters>) -> Self {
        counters.streams.fetch_add(1, Ordering::Relaxed);
        Self(std::sync::Arc::clone(counters))
    }
}

impl Drop for OpenStreamGuard {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServerCounters {
    pub(crate) fn count_answer(&self, status: u16) {
        if let Some(count) = self.answers.get(usize::from(status / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of responses whose status starts with this digit.
    pub(crate) fn answers(&self, class: usize) -> u64 {
        self.answers.get(class).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn count_event(&self, kind: &EventKind) {
        let add = |count: &AtomicU64, by: u64| count.fetch_add(by, Ordering::Relaxed);
        add(&self.events, 1);
        if let EventKind::ModelResponse { usage, .. } = kind {
            add(&self.model_responses, 1);
            add(&self.input_tokens, usage.input_tokens);
            add(&self.output_tokens, usage.output_tokens);
        } else if let EventKind::ToolCallStart { .. } = kind {
            add(&self.tool_calls, 1);
        } else if let EventKind::ProcessingEnd { .. } = kind {
            add(&self.runs, 1);
        }
    }
}
