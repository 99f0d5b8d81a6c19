//! The clock of leases.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Counts on while the machine is suspended, as the clock of the database does.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// Counts suspension on other systems, or is the nearest that they have.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// Returns the time since some moment before the process began. Without a clock it is the end of time: every lease has
/// run out.
pub(crate) fn now() -> Duration {
    clock_gettime(CLOCK).map_or(Duration::MAX, Duration::from)
}
