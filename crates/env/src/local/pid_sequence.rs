//! Process ids in order of allocation, to tell which processes were started after a given one.
//! Linux only: other systems do not report the last id allocated.
//!
//! The kernel allocates ids in ascending order, so a process started later has a larger id. That
//! holds within one lap through the id space: after a wraparound a later id may be smaller, and
//! after a complete lap the order is meaningless. A wraparound is detected by sampling the last id
//! so often that no complete lap fits in between.
//!
//! Reading the process table after every command instead costs a short command about a fifth of its
//! time with some hundred processes on the machine, and more with more.
#![cfg_attr(
    target_os = "linux",
    expect(clippy::disallowed_methods, reason = "files of the kernel are not files of the environment")
)]

use std::ops::RangeInclusive;
#[cfg(any(target_os = "linux", test))]
use std::time::{Duration, Instant};

/// Ids below this are not allocated again after the first lap.
#[cfg(any(target_os = "linux", test))]
const RESERVED: u64 = 300;

/// Maximum number of ids that one task can occupy: its own, its process's, its group's and its
/// session's. The latter three stay reserved after their owners exited. The kernel skips reserved
/// ids.
#[cfg(any(target_os = "linux", test))]
const MAX_IDS_PER_TASK: u64 = 4;

/// Minimum time for the kernel to allocate an id. Creating a process or thread takes some ten times
/// as long, and a lock keeps several processors from doing it at once.
#[cfg(any(target_os = "linux", test))]
const MIN_ALLOCATION_TIME: Duration = Duration::from_micros(1);

/// A position in the sequence of allocated ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Two positions with the same value are in the same lap; with different values they may be.
    lap: u64,
    /// The last id allocated.
    last: i32,
}

impl Position {
    /// Returns the current position; `None` if the kernel does not report it.
    #[cfg(target_os = "linux")]
    pub(super) fn now() -> Option<Self> {
        linux::position()
    }

    /// Not available on this system.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn now() -> Option<Self> {
        None
    }

    /// Returns the ids allocated after `id`, which was itself allocated after `start`. The range
    /// may be empty; `None` if it cannot be determined.
    ///
    /// Call it for a process that is alive or has just exited: its id cannot be reused before, so
    /// if the last id is its own there are no later ones, whatever happened in between.
    pub(super) fn allocated_after(self, id: i32, start: Option<Self>) -> Option<RangeInclusive<i32>> {
        let is_same_lap =
            start.is_some_and(|start| start.lap == self.lap && start.last < id && id <= self.last);
        (self.last == id || is_same_lap).then(|| id.saturating_add(1)..=self.last)
    }
}

/// A sample of the kernel's state.
#[cfg(any(target_os = "linux", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    /// The last id allocated.
    last: i32,
    /// Number of tasks.
    tasks: u64,
}

/// Parses the end of `/proc/loadavg`: in `1/121 7841`, one of 121 tasks is running, and 7841 is the
/// last id allocated.
#[cfg(any(target_os = "linux", test))]
fn parse_sample(line: &[u8]) -> Option<Sample> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace().skip(3);
    let (_, tasks) = fields.next()?.split_once('/')?;
    Some(Sample { tasks: tasks.parse().ok()?, last: fields.next()?.parse().ok()? })
}

/// Counts laps through the id space.
#[cfg(any(target_os = "linux", test))]
struct LapCounter {
    lap: u64,
    /// The last sample, and a moment before it was taken.
    last_sample: Option<(Instant, Sample)>,
}

#[cfg(any(target_os = "linux", test))]
impl LapCounter {
    /// Records a sample taken between two moments, with ids below `limit`.
    fn record(&mut self, sample: Sample, limit: u64, (before, after): (Instant, Instant)) -> Position {
        let is_same_lap = self.last_sample.is_some_and(|(at, seen)| {
            seen.last <= sample.last && after.saturating_duration_since(at) < min_lap_time(limit, seen.tasks)
        });
        if !is_same_lap {
            self.lap += 1;
        }
        self.last_sample = Some((before, sample));
        Position { lap: self.lap, last: sample.last }
    }
}

/// Returns the minimum time for a complete lap, starting with this many tasks. Only their ids are
/// skipped on the way, since ids of later tasks are allocated on the way.
#[cfg(any(target_os = "linux", test))]
fn min_lap_time(limit: u64, tasks: u64) -> Duration {
    let free = limit.saturating_sub(RESERVED).saturating_sub(tasks.saturating_mul(MAX_IDS_PER_TASK));
    MIN_ALLOCATION_TIME.saturating_mul(u32::try_from(free).unwrap_or(u32::MAX))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs,
        io::Read,
        os::fd::AsFd,
        sync::{Mutex, OnceLock, PoisonError},
        time::Instant,
    };

    use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};

    use super::{LapCounter, Position, Sample, parse_sample};

    const FILE: &str = "/proc/loadavg";

    static LAPS: Mutex<LapCounter> = Mutex::new(LapCounter { lap: 0, last_sample: None });

    /// Upper bound of all ids; `None` if `/proc` cannot be used.
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();

    pub(super) fn position() -> Option<Position> {
        let limit = (*LIMIT.get_or_init(limit))?;
        // Held while sampling, so that samples are recorded in the order they were taken.
        let mut laps = LAPS.lock().unwrap_or_else(PoisonError::into_inner);
        let before = Instant::now();
        let sample = read()?;
        Some(laps.record(sample, limit, (before, Instant::now())))
    }

    fn read() -> Option<Sample> {
        let mut line = [0; 128];
        let len = fs::File::open(FILE).ok()?.read(&mut line).ok()?;
        parse_sample(line.get(..len)?)
    }

    fn limit() -> Option<u64> {
        // In containers, another file system may provide this file, with made-up content.
        let file = fs::File::open(FILE).ok()?;
        let is_procfs =
            fstatfs(file.as_fd()).is_ok_and(|system| system.filesystem_type() == PROC_SUPER_MAGIC);
        // The table may belong to another namespace, with different ids.
        let is_own_namespace = fs::read_link("/proc/self")
            .is_ok_and(|own| own.as_os_str() == std::process::id().to_string().as_str());
        let limit = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse().ok();
        limit.filter(|_| is_procfs && is_own_namespace)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 32_768;

    fn at(lap: u64, last: i32) -> Position {
        Position { lap, last }
    }

    #[test]
    fn parses_load_average() {
        let sample = parse_sample(b"0.29 1.49 1.75 1/121 7841\n").unwrap();
        assert_eq!(sample, Sample { tasks: 121, last: 7841 });
        for line in [&b"0.29 1.49 1.75"[..], b"0.29 1.49 1.75 121 7841", b"0 0 0 1/121 x", b"\xff", b""] {
            assert_eq!(parse_sample(line), None, "{line:?}");
        }
    }

    #[test]
    fn later_ids_end_at_the_last_one() {
        for (start, id, now, expected) in [
            (Some(at(3, 99)), 100, at(3, 103), Some(vec![101, 102, 103])),
            (Some(at(3, 90)), 100, at(3, 101), Some(vec![101])),
            // There is no later process, whatever is known of the lap.
            (Some(at(3, 99)), 100, at(3, 100), Some(vec![])),
            (Some(at(3, 99)), 100, at(4, 100), Some(vec![])),
            (None, 100, at(4, 100), Some(vec![])),
            // The ids have wrapped around, or may have.
            (Some(at(3, 99)), 100, at(4, 103), None),
            (Some(at(3, 99)), 100, at(4, 50), None),
            (None, 100, at(3, 103), None),
            // Contradictory positions.
            (Some(at(3, 99)), 100, at(3, 50), None),
            (Some(at(3, 101)), 100, at(3, 103), None),
        ] {
            let allocated = now.allocated_after(id, start).map(Iterator::collect::<Vec<_>>);
            assert_eq!(allocated, expected, "{start:?} {id} {now:?}");
        }
    }

    #[test]
    fn a_wraparound_is_assumed_after_lower_ids_or_long_gaps() {
        let start = Instant::now();
        let moment = |micros| start + Duration::from_micros(micros);
        let mut laps = LapCounter { lap: 0, last_sample: None };
        let mut lap_at = |last, from: u64, to: u64| {
            laps.record(Sample { last, tasks: 100 }, LIMIT, (moment(from), moment(to))).lap
        };
        let first = lap_at(500, 0, 10);
        assert_eq!(lap_at(500, 20, 30), first);
        assert_eq!(lap_at(9_000, 10_000, 10_010), first);
        let second = lap_at(8_999, 10_020, 10_030);
        assert_ne!(second, first);
        // Counts from before one sample to after the next.
        assert_eq!(lap_at(9_000, 20_000, 41_000), second);
        assert_ne!(lap_at(9_001, 52_000, 52_100), second);
    }

    #[test]
    fn a_lap_takes_no_time_without_free_ids() {
        assert_eq!(min_lap_time(LIMIT, 100), Duration::from_micros(32_068));
        assert_eq!(min_lap_time(LIMIT, 8_117), Duration::ZERO);
        assert_eq!(min_lap_time(LIMIT, u64::MAX), Duration::ZERO);
        assert_eq!(min_lap_time(0, 0), Duration::ZERO);
    }

    proptest! {
        /// Simulates a kernel that allocates ids at up to its maximum speed, and an occasional
        /// sampler.
        #[test]
        fn no_allocated_id_is_missed(
            first in 300..32_768_u64,
            steps in prop::collection::vec((1..40_000_u64, 0..=1_000_u64), 1..12),
            start_step in 0..12_usize,
        ) {
            let start = Instant::now();
            let id_of = |allocated: u64| i32::try_from(300 + (allocated - 300) % (LIMIT - 300)).unwrap();
            let mut laps = LapCounter { lap: 0, last_sample: None };
            let (mut clock, mut allocated) = (0, first);
            // The process gets its id right after one of the samples.
            let mut process = None;
            for (index, (wait, speed)) in steps.iter().enumerate() {
                let moment = start + Duration::from_micros(clock);
                let sample = Sample { last: id_of(allocated), tasks: 50 };
                let now = laps.record(sample, LIMIT, (moment, moment));
                if let Some((before, own)) = process
                    && let Some(after) = now.allocated_after(id_of(own), Some(before))
                {
                    let expected: Vec<i32> = (own + 1..=allocated).map(id_of).collect();
                    prop_assert_eq!(after.collect::<Vec<_>>(), expected);
                }
                if index == start_step.min(steps.len() - 1) {
                    allocated += 1;
                    process = Some((now, allocated));
                }
                clock += wait;
                allocated += wait * speed / 1_000;
                // The id of a live process is not allocated again.
                if process.is_some_and(|(_, own)| own < allocated && id_of(own) == id_of(allocated)) {
                    allocated += 1;
                }
            }
        }
    }
}
