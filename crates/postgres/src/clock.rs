//! The clock of leases.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Advances while the machine is suspended, like the clock of the database.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
/// Includes suspension on some other systems, and is the nearest equivalent on the rest.
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// Returns the time since an arbitrary moment before the process started. If the clock cannot be read, it returns the
/// maximum, so that every lease has expired.
pub(crate) fn now() -> Duration {
    clock_gettime(CLOCK).map_or(Duration::MAX, Duration::from)
}
