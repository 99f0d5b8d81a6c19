//! The circuit of one provider: plain state, the time is given.

use std::time::Duration;

use tokio::time::Instant;

use crate::middleware::CircuitState;

/// Closed at first.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// How often it has opened or let a probe through: what was sent before belongs to the past.
    era: u64,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
    },
    /// A probe is on its way. If it has no end by then, the next call is one.
    Probing {
        until: Instant,
    },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// When a circuit opens, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) threshold: u32,
    pub(super) cool_down: Duration,
}

/// A call that was let through, in this era.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    era: u64,
}

/// Why a call is not let through.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The cool-down lasts for so long yet.
    Open(Duration),
    /// A probe is on its way.
    Probing,
}

/// What a call shows of its provider.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// It answered to the end.
    Well,
    /// It answered something.
    Alive,
    /// It failed in a way that may pass.
    Failed,
    /// Nothing.
    Unknown,
}

impl Circuit {
    pub(super) fn state(&self, now: Instant) -> CircuitState {
        match self.phase {
            Phase::Closed { .. } => CircuitState::Closed,
            Phase::Open { until } if now < until => CircuitState::Open,
            Phase::Open { .. } | Phase::Probing { .. } => CircuitState::HalfOpen,
        }
    }

    pub(super) fn admit(&mut self, limits: Limits, now: Instant) -> Result<Admitted, Refusal> {
        match self.phase {
            Phase::Closed { .. } => {}
            Phase::Open { until } if now < until => return Err(Refusal::Open(until.duration_since(now))),
            Phase::Probing { until } if now < until => return Err(Refusal::Probing),
            Phase::Open { .. } | Phase::Probing { .. } => {
                self.phase = Phase::Probing { until: now + limits.cool_down };
                self.era += 1;
            }
        }
        Ok(Admitted { era: self.era })
    }

    /// Takes what a call shows, and says whether the circuit opens by it.
    pub(super) fn tell(&mut self, call: Admitted, verdict: Verdict, limits: Limits, now: Instant) -> bool {
        if call.era != self.era {
            return false;
        }
        let failures = match (&self.phase, verdict) {
            (Phase::Closed { .. } | Phase::Probing { .. }, Verdict::Well) => 0,
            (Phase::Closed { failures }, Verdict::Failed) => failures.saturating_add(1),
            (Phase::Closed { .. }, Verdict::Alive | Verdict::Unknown) | (Phase::Open { .. }, _) => {
                return false;
            }
            // It works, but it has to prove itself: the next failure opens again.
            (Phase::Probing { .. }, Verdict::Alive) => limits.threshold - 1,
            (Phase::Probing { .. }, Verdict::Failed) => limits.threshold,
            (Phase::Probing { .. }, Verdict::Unknown) => {
                // Nobody knows yet: the next call is the probe.
                self.phase = Phase::Open { until: now };
                return false;
            }
        };
        let opens = failures >= limits.threshold;
        self.phase =
            if opens { Phase::Open { until: now + limits.cool_down } } else { Phase::Closed { failures } };
        self.era += u64::from(opens);
        opens
    }
}
