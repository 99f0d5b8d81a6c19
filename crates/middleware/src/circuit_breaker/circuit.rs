//! Circuit of one provider: plain state, without a clock.

use std::time::Duration;

use tokio::time::Instant;

use super::CircuitState;

/// Initially closed.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// Number of times the circuit opened or let a probe through. Outcomes of calls from an earlier epoch are ignored.
    epoch: u64,
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
    /// A probe is in flight. If it has no outcome by `until`, the next call is a probe.
    Probing {
        until: Instant,
    },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// Threshold and cool-down of all circuits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) threshold: u32,
    pub(super) cool_down: Duration,
}

/// Proof that a call was let through, in this epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permit {
    epoch: u64,
}

/// Reason for refusing a call.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The circuit stays open for this time.
    Open(Duration),
    /// A probe is in flight.
    Probing,
}

/// Evidence about a provider from one call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// The call completed.
    Completed,
    /// The provider responded, but the call has not completed.
    Responded,
    /// The call failed in a transient way.
    Failed,
    /// The call says nothing about the provider.
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

    pub(super) fn admit(&mut self, limits: Limits, now: Instant) -> Result<Permit, Refusal> {
        match self.phase {
            Phase::Closed { .. } => {}
            Phase::Open { until } if now < until => return Err(Refusal::Open(until.duration_since(now))),
            Phase::Probing { until } if now < until => return Err(Refusal::Probing),
            Phase::Open { .. } | Phase::Probing { .. } => {
                self.phase = Phase::Probing { until: now + limits.cool_down };
                self.epoch += 1;
            }
        }
        Ok(Permit { epoch: self.epoch })
    }

    /// Records the evidence from a call. Returns `true` if it opens the circuit.
    pub(super) fn report(&mut self, call: Permit, verdict: Verdict, limits: Limits, now: Instant) -> bool {
        if call.epoch != self.epoch {
            return false;
        }
        let failures = match (&self.phase, verdict) {
            (Phase::Closed { .. } | Phase::Probing { .. }, Verdict::Completed) => 0,
            (Phase::Closed { failures }, Verdict::Failed) => failures.saturating_add(1),
            (Phase::Closed { .. }, Verdict::Responded | Verdict::Unknown) | (Phase::Open { .. }, _) => {
                return false;
            }
            // Closed on probation: the next failure opens it again.
            (Phase::Probing { .. }, Verdict::Responded) => limits.threshold - 1,
            (Phase::Probing { .. }, Verdict::Failed) => limits.threshold,
            (Phase::Probing { .. }, Verdict::Unknown) => {
                // The probe was inconclusive: the next call is the probe.
                self.phase = Phase::Open { until: now };
                return false;
            }
        };
        let opens = failures >= limits.threshold;
        self.phase =
            if opens { Phase::Open { until: now + limits.cool_down } } else { Phase::Closed { failures } };
        self.epoch += u64::from(opens);
        opens
    }
}
