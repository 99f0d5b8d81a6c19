//! Pace of a streamed response.

use std::time::Duration;

/// Pace of the deltas of one response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Time between two deltas of one session.
    pub(crate) period: Duration,
    pub(crate) deltas: u32,
}

impl Pace {
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.period.as_micros(), self.deltas)
    }

    pub(crate) fn parse(words: &str) -> Self {
        let (period, deltas) = words.split_once(' ').expect("there are two numbers");
        let period = period.parse().expect("the period is a number");
        Self { period: Duration::from_micros(period), deltas: deltas.parse().expect("it is a number") }
    }

    /// Returns the time of a delta after the start of the first session. Sessions begin one after the other, so that not
    /// all of them send at the same moment.
    pub(crate) fn due(&self, delta: u32, session: usize, sessions: usize) -> Duration {
        let (session, sessions) = (u32::try_from(session).unwrap_or(0), u32::try_from(sessions).unwrap_or(1));
        self.period * delta + self.period * session / sessions.max(1)
    }
}
