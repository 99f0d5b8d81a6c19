//! Circuit of one provider: plain state, without a clock.

use std::time::Duration;

use tokio::time::Instant;

use super::CircuitState;

/// Initially closed.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// Number of times the circuit opened or let a probe through. Outcomes of calls from an earlier epoch are ignored.
    epoch: u64,
    phase: CircuitPhase,
}

#[derive(Debug)]
enum CircuitPhase {
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

impl Default for CircuitPhase {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// Threshold and cool-down of all circuits.
#[derive(Clone, Copy, Debug)]
pub(super) struct CircuitLimits {
    pub(super) threshold: u32,
    pub(super) cool_down: Duration,
}

/// Proof that a call was let through, in this epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPermit {
    epoch: u64,
}

/// Reason for refusing a call.
#[derive(Debug)]
pub(super) enum CircuitRefusal {
    /// The circuit stays open for this time.
    Open(Duration),
    /// A probe is in flight.
    Probing,
}

/// Evidence about a provider from one call.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallVerdict {
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
            CircuitPhase::Closed { .. } => CircuitState::Closed,
            CircuitPhase::Open { until } if now < until => CircuitState::Open,
            CircuitPhase::Open { .. } | CircuitPhase::Probing { .. } => CircuitState::HalfOpen,
        }
    }

    pub(super) fn admit(
        &mut self,
        limits: CircuitLimits,
        now: Instant,
    ) -> Result<CallPermit, CircuitRefusal> {
        match self.phase {
            CircuitPhase::Closed { .. } => {}
            CircuitPhase::Open { until } if now < until => {
                return Err(CircuitRefusal::Open(until.duration_since(now)));
            }
            CircuitPhase::Probing { until } if now < until => return Err(CircuitRefusal::Probing),
            CircuitPhase::Open { .. } | CircuitPhase::Probing { .. } => {
                self.phase = CircuitPhase::Probing { until: now + limits.cool_down };
                self.epoch += 1;
            }
        }
        Ok(CallPermit { epoch: self.epoch })
    }

    /// Records the evidence from a call. Returns `true` if it opens the circuit.
    pub(super) fn report(
        &mut self,
        call: CallPermit,
        verdict: CallVerdict,
        limits: CircuitLimits,
        now: Instant,
    ) -> bool {
        if call.epoch != self.epoch {
            return false;
        }
        let failures = match (&self.phase, verdict) {
            (CircuitPhase::Closed { .. } | CircuitPhase::Probing { .. }, CallVerdict::Completed) => 0,
            (CircuitPhase::Closed { failures }, CallVerdict::Failed) => failures.saturating_add(1),
            (CircuitPhase::Closed { .. }, CallVerdict::Responded | CallVerdict::Unknown)
            | (CircuitPhase::Open { .. }, _) => {
                return false;
            }
            // Closed on probation: the next failure opens it again.
            (CircuitPhase::Probing { .. }, CallVerdict::Responded) => limits.threshold - 1,
            (CircuitPhase::Probing { .. }, CallVerdict::Failed) => limits.threshold,
            (CircuitPhase::Probing { .. }, CallVerdict::Unknown) => {
                // The probe was inconclusive: the next call is the probe.
                self.phase = CircuitPhase::Open { until: now };
                return false;
            }
        };
        let opens = failures >= limits.threshold;
        self.phase = if opens {
            CircuitPhase::Open { until: now + limits.cool_down }
        } else {
            CircuitPhase::Closed { failures }
        };
        self.epoch += u64::from(opens);
        opens
    }
}
