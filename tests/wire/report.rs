//! The results as a table and a list.

use std::collections::BTreeMap;
use std::fmt;

use crate::judge::Difference;
use crate::manifest::{Entry, Kind, Transport};

/// Maximum number of failures reported per recording.
const TOLD: usize = 3;

/// Result of one recording.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Number of replays.
    pub(crate) plays: usize,
    failures: Vec<Failure>,
}

/// A replay that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    way: String,
    differences: Vec<Difference>,
}

/// Result of the corpus.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: BTreeMap<Kind, Row>,
    /// Failures of recordings that count, by name.
    failed: BTreeMap<String, Verdict>,
    /// Failures of other recordings, with the reason why they do not count.
    optional: BTreeMap<String, (String, Verdict)>,
    lost: Vec<String>,
}

#[derive(Debug, Default)]
struct Row {
    whole: usize,
    streams: usize,
    plays: usize,
    held: usize,
    optional: usize,
    failed: usize,
}

impl Failure {
    pub(crate) fn new(way: &str, differences: Vec<Difference>) -> Self {
        Self { way: way.to_owned(), differences }
    }
}

impl Verdict {
    /// Records a failure, unless there are no differences.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if !failure.differences.is_empty() {
            self.failures.push(failure);
        }
    }
}

impl Report {
    pub(crate) fn add(&mut self, entry: &Entry, verdict: Verdict) {
        let row = self.rows.entry(entry.kind).or_default();
        match entry.transport {
            Transport::Json => row.whole += 1,
            Transport::Sse => row.streams += 1,
        }
        row.plays += verdict.plays;
        match (&entry.optional, verdict.failures.is_empty()) {
            (_, true) => row.held += 1,
            (Some(why), false) => {
                row.optional += 1;
                self.optional.insert(entry.file.clone(), (why.clone(), verdict));
            }
            (None, false) => {
                row.failed += 1;
                self.failed.insert(entry.file.clone(), verdict);
            }
        }
    }

    /// Records a recording whose task failed.
    pub(crate) fn lost(&mut self, message: &str) {
        self.lost.push(message.to_owned());
    }

    pub(crate) fn passed(&self) -> bool {
        self.failed.is_empty() && self.lost.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (file, verdict) in &self.failed {
            writeln!(f, "FAILED {file}")?;
            verdict.tell(f)?;
        }
        for (file, (why, verdict)) in &self.optional {
            writeln!(f, "optional, does not count: {file} ({why})")?;
            verdict.tell(f)?;
        }
        for message in &self.lost {
            writeln!(f, "FAILED: a recording ended the program's task: {message}")?;
        }
        writeln!(
            f,
            "{:<18}{:>7}{:>9}{:>8}{:>7}{:>10}{:>8}",
            "", "whole", "streams", "plays", "held", "optional", "failed"
        )?;
        for kind in Kind::ALL {
            let Some(row) = self.rows.get(&kind) else { continue };
            writeln!(
                f,
                "{:<18}{:>7}{:>9}{:>8}{:>7}{:>10}{:>8}",
                kind.name(),
                row.whole,
                row.streams,
                row.plays,
                row.held,
                row.optional,
                row.failed
            )?;
        }
        let sum = |count: fn(&Row) -> usize| self.rows.values().map(count).sum::<usize>();
        writeln!(
            f,
            "{}: {} of {} recordings hold in {} plays; {} that do not count do not",
            if self.passed() { "ok" } else { "FAILED" },
            sum(|row| row.held),
            sum(|row| row.whole + row.streams) + self.lost.len(),
            sum(|row| row.plays),
            sum(|row| row.optional),
        )
    }
}

impl Verdict {
    fn tell(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in self.failures.iter().take(TOLD) {
            for difference in &failure.differences {
                writeln!(f, "  {}: {difference}", failure.way)?;
            }
        }
        match self.failures.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more ways"),
        }
    }
}
