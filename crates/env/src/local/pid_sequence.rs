//! The numbers that the kernel gives to processes: in lap, so that whoever was started after a process has one of
//! those that were allocated after its own. Linux only: elsewhere nobody says which number was allocated last.
//!
//! That holds within one lap through all numbers. When they begin again with small ones, later is no longer larger,
//! and after a whole lap a number says nothing at all. A lap is noticed by sample the last number allocated so often
//! that no whole lap fits in between.
#![cfg_attr(
    target_os = "linux",
    expect(clippy::disallowed_methods, reason = "the kernel's numbers are not in a file of the environment")
)]

use std::ops::RangeInclusive;
#[cfg(any(target_os = "linux", test))]
use std::time::{Duration, Instant};

/// Below it no number is allocated again after the first lap.
#[cfg(any(target_os = "linux", test))]
const RESERVED: u64 = 300;

/// How many numbers one task can hold: its own, its process's, its group's and its session's, which all stay taken
/// when those that they were allocated to are gone. The kernel passes over them without giving them.
#[cfg(any(target_os = "linux", test))]
const MAX_IDS_PER_TASK: u64 = 4;

/// The least time in which the kernel gives out a number: a new process or thread takes it some ten times as long,
/// and a lock keeps several processors from doing it at once.
#[cfg(any(target_os = "linux", test))]
const MIN_ALLOCATION_TIME: Duration = Duration::from_micros(1);

/// How far the kernel has come with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Two positions are in the same lap through all numbers if this is the same; if not, they may be.
    lap: u64,
    /// The number that was allocated last.
    last: i32,
}

impl Position {
    /// Where the kernel is now; `None` if it does not say.
    #[cfg(target_os = "linux")]
    pub(super) fn now() -> Option<Self> {
        linux::position()
    }

    /// Nobody says it here.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn now() -> Option<Self> {
        None
    }

    /// The numbers that were allocated after that of the process `id`, which was allocated after `start`; empty if there
    /// are none, `None` if that cannot be known.
    ///
    /// To be asked for a process that is still there or has just gone: while it is there its number is not allocated
    /// again, so that if the last one is its own there is none after it, whatever happened in between.
    pub(super) fn allocated_after(self, id: i32, start: Option<Self>) -> Option<RangeInclusive<i32>> {
        let is_same_lap =
            start.is_some_and(|start| start.lap == self.lap && start.last < id && id <= self.last);
        (self.last == id || is_same_lap).then(|| id.saturating_add(1)..=self.last)
    }
}

/// What the kernel says of its numbers.
#[cfg(any(target_os = "linux", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    /// The number allocated last.
    last: i32,
    /// How many tasks there are.
    tasks: u64,
}

/// The end of `/proc/loadavg`: `1/121 7841`, of 121 tasks one runs, and 7841 is the number that was allocated last.
#[cfg(any(target_os = "linux", test))]
fn parse_sample(line: &[u8]) -> Option<Sample> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace().skip(3);
    let (_, tasks) = fields.next()?.split_once('/')?;
    Some(Sample { tasks: tasks.parse().ok()?, last: fields.next()?.parse().ok()? })
}

/// Counts the laps.
#[cfg(any(target_os = "linux", test))]
struct LapCounter {
    lap: u64,
    /// The last sample, and a moment before it was made.
    last_sample: Option<(Instant, Sample)>,
}

#[cfg(any(target_os = "linux", test))]
impl LapCounter {
    /// Takes note of a sample that was made between two moments, with numbers below `limit`.
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

/// The time in which no lap can be made from when there are so many tasks: what is passed over on the way are
/// their numbers, since those of later tasks are allocated on the way.
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

    /// Below which number all are; `None` if what `/proc` says cannot be used.
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();

    pub(super) fn position() -> Option<Position> {
        let limit = (*LIMIT.get_or_init(limit))?;
        // Held while it is read, so that readings are noted in the order in which they were made.
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
        // Containers may have another file there that somebody makes up now and then.
        let file = fs::File::open(FILE).ok()?;
        let is_procfs =
            fstatfs(file.as_fd()).is_ok_and(|system| system.filesystem_type() == PROC_SUPER_MAGIC);
        // The table may be that of another namespace, where numbers mean others.
        let is_own_namespace =
            fs::read_link("/proc/self").is_ok_and(|own| own == *std::process::id().to_string());
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
            // Nobody came after it, whatever is known of the lap.
            (Some(at(3, 99)), 100, at(3, 100), Some(vec![])),
            (Some(at(3, 99)), 100, at(4, 100), Some(vec![])),
            (None, 100, at(4, 100), Some(vec![])),
            // The numbers have begun again, or may have.
            (Some(at(3, 99)), 100, at(4, 103), None),
            (Some(at(3, 99)), 100, at(4, 50), None),
            (None, 100, at(3, 103), None),
            // What cannot be is no ground to build on.
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
        // It counts from before one sample to after the other.
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
        /// A kernel that gives out numbers at up to its greatest speed, and somebody who looks now and then.
        #[test]
        fn no_allocated_id_is_missed(
            first in 300..32_768_u64,
            steps in prop::collection::vec((1..40_000_u64, 0..=1_000_u64), 1..12),
            start_step in 0..12_usize,
        ) {
            let start = Instant::now();
            let number = |allocated: u64| i32::try_from(300 + (allocated - 300) % (LIMIT - 300)).unwrap();
            let mut laps = LapCounter { lap: 0, last_sample: None };
            let (mut clock, mut allocated) = (0, first);
            // A process gets its number right after one of the readings.
            let mut process = None;
            for (index, (wait, speed)) in steps.iter().enumerate() {
                let moment = start + Duration::from_micros(clock);
                let sample = Sample { last: number(allocated), tasks: 50 };
                let now = laps.record(sample, LIMIT, (moment, moment));
                if let Some((before, own)) = process
                    && let Some(after) = now.allocated_after(number(own), Some(before))
                {
                    let expected: Vec<i32> = (own + 1..=allocated).map(number).collect();
                    prop_assert_eq!(after.collect::<Vec<_>>(), expected);
                }
                if index == start_step.min(steps.len() - 1) {
                    allocated += 1;
                    process = Some((now, allocated));
                }
                clock += wait;
                allocated += wait * speed / 1_000;
                // The number of a process that is there is not allocated to another.
                if process.is_some_and(|(_, own)| own < allocated && number(own) == number(allocated)) {
                    allocated += 1;
                }
            }
        }
    }
}
