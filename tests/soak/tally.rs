//! Counts of what was played.

use std::collections::BTreeMap;
use std::fmt;

use pintle_agent::Outcome;

/// Counts of a soak, or of a part of it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) inputs: usize,
    pub(crate) sessions: usize,
    events: usize,
    model_calls: u64,
    tool_calls: u64,
    /// Number of times that each action was done, and that runs ended in each way.
    counts: BTreeMap<String, usize>,
}

impl Tally {
    pub(crate) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn ended(&mut self, outcome: &Outcome) {
        self.model_calls += outcome.model_calls;
        self.tool_calls += outcome.tool_calls;
        self.count(&format!("ended {:?}", outcome.status));
    }

    pub(crate) fn session(&mut self, events: usize) {
        self.sessions += 1;
        self.events += events;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.inputs += other.inputs;
        self.sessions += other.sessions;
        self.events += other.events;
        self.model_calls += other.model_calls;
        self.tool_calls += other.tool_calls;
        for (what, count) in &other.counts {
            *self.counts.entry(what.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, sessions, events, model_calls, tool_calls, counts } = self;
        for (count, what) in [
            (*inputs as u64, "inputs"),
            (*sessions as u64, "sessions"),
            (*model_calls, "model calls"),
            (*tool_calls, "tool calls"),
            (*events as u64, "events"),
        ] {
            writeln!(f, "{count:>8} {what}")?;
        }
        for (what, count) in counts {
            writeln!(f, "{count:>8} {what}")?;
        }
        Ok(())
    }
}
