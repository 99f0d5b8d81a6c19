//! Measures two alternatives in turns, so that noise affects both alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

/// Default number of rounds per row; odd, so that the median is one of the values.
const ROUNDS: usize = 31;

/// One line of a suite's table: a subject compared with its baseline.
pub(crate) struct Row {
    /// Name of the subject.
    pub(crate) what: String,
    /// Name of the baseline.
    pub(crate) baseline: &'static str,
    /// How close the subject should come.
    pub(crate) aim: Aim,
    rounds: Vec<Round>,
    pub(crate) note: Option<String>,
}

/// How close a subject should come to its baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// At most this multiple of its wall time.
    Wall(f64),
    /// At most this multiple of its CPU time.
    Cpu(f64),
    /// At most this multiple of both.
    Both(f64),
    /// At most these multiples of its wall time and of its CPU time.
    Each { wall: f64, cpu: f64 },
    /// At most this much more wall time.
    More(Duration),
    /// At most this much more CPU time.
    MoreCpu(Duration),
}

impl From<f64> for Aim {
    fn from(ratio: f64) -> Self {
        Self::Wall(ratio)
    }
}

/// A comparison to be measured.
pub(crate) struct Comparison<'a> {
    what: String,
    baseline: &'static str,
    aim: Aim,
    rounds: usize,
    before: Option<&'a dyn Fn()>,
}

#[derive(Clone, Copy)]
pub(crate) struct Round {
    subject: Cost,
    baseline: Cost,
}

/// Cost of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// CPU time of this process and of the children that it waited for, but not of servers and their children.
    pub(crate) cpu: Duration,
}

/// A point in time of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    used: Duration,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), used: cpu() }
    }

    /// Returns the cost between the two.
    pub(crate) fn until(self, later: Self) -> Cost {
        Cost { wall: later.at.saturating_duration_since(self.at), cpu: later.used.saturating_sub(self.used) }
    }
}

impl Cost {
    /// Divides the cost.
    pub(crate) fn per(self, parts: f64) -> Self {
        Self { wall: self.wall.div_f64(parts), cpu: self.cpu.div_f64(parts) }
    }

    /// Subtracts `other`.
    pub(crate) fn less(self, other: Self) -> Self {
        Self { wall: self.wall.saturating_sub(other.wall), cpu: self.cpu.saturating_sub(other.cpu) }
    }
}

impl Round {
    /// Returns the ratio of wall times.
    pub(crate) fn wall(self) -> f64 {
        ratio(self.subject.wall, self.baseline.wall)
    }

    /// Returns the ratio of CPU times.
    pub(crate) fn cpu(self) -> f64 {
        ratio(self.subject.cpu, self.baseline.cpu)
    }

    /// Returns the wall time in excess of the baseline, in milliseconds.
    pub(crate) fn more(self) -> f64 {
        milliseconds(self.subject.wall) - milliseconds(self.baseline.wall)
    }

    /// Returns the CPU time in excess of the baseline, in milliseconds.
    pub(crate) fn more_cpu(self) -> f64 {
        milliseconds(self.subject.cpu) - milliseconds(self.baseline.cpu)
    }

    /// Returns the wall time of the baseline in milliseconds.
    pub(crate) fn baseline_wall(self) -> f64 {
        milliseconds(self.baseline.wall)
    }

    /// Returns the CPU time of the baseline in milliseconds.
    pub(crate) fn baseline_cpu(self) -> f64 {
        milliseconds(self.baseline.cpu)
    }
}

/// Minimum, median and maximum of some numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (values.first().copied()?, values.last().copied()?);
        let median = values.get(values.len() / 2).copied()?;
        Some(Self { least, median, most })
    }
}

impl Row {
    /// Times `baseline` and `subject` in turns.
    pub(crate) fn measure<F, S>(
        what: impl Into<String>,
        baseline: (&'static str, impl Fn() -> F),
        aim: impl Into<Aim>,
        subject: impl Fn() -> S,
    ) -> Self {
        Comparison::new(what, baseline.0, aim).measure(baseline.1, subject)
    }

    /// Has a line printed below the table.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// One number of each round.
    pub(crate) fn spread(&self, of: impl Fn(Round) -> f64) -> Option<Spread> {
        Spread::of(self.rounds.iter().copied().map(of))
    }

    /// Returns whether the median is within the aim.
    pub(crate) fn is_reached(&self) -> bool {
        let within =
            |of: fn(Round) -> f64, most: f64| self.spread(of).is_some_and(|spread| spread.median <= most);
        match self.aim {
            Aim::Wall(most) => within(Round::wall, most),
            Aim::Cpu(most) => within(Round::cpu, most),
            Aim::Both(most) => within(Round::wall, most) && within(Round::cpu, most),
            Aim::Each { wall, cpu } => within(Round::wall, wall) && within(Round::cpu, cpu),
            Aim::More(most) => within(Round::more, milliseconds(most)),
            Aim::MoreCpu(most) => within(Round::more_cpu, milliseconds(most)),
        }
    }
}

impl<'a> Comparison<'a> {
    /// Creates a comparison of `what` with `baseline`, in 31 rounds.
    pub(crate) fn new(what: impl Into<String>, baseline: &'static str, aim: impl Into<Aim>) -> Self {
        Self { what: what.into(), baseline, aim: aim.into(), rounds: ROUNDS, before: None }
    }

    /// Sets the number of rounds, preferably odd.
    pub(crate) fn with_rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// Calls `before` ahead of each measurement, outside of the measured time.
    pub(crate) fn with_before(mut self, before: &'a dyn Fn()) -> Self {
        self.before = Some(before);
        self
    }

    /// Measures both in turns.
    pub(crate) fn measure<F, S>(self, baseline: impl Fn() -> F, subject: impl Fn() -> S) -> Row {
        let before = self.before.unwrap_or(&|| ());
        self.compare(|| time(before, &baseline), || time(before, &subject))
    }

    /// Compares costs that both sides measure themselves, in turns.
    pub(crate) fn compare(self, baseline: impl Fn() -> Cost, subject: impl Fn() -> Cost) -> Row {
        let rounds = self.rounds;
        self.of((0..=rounds).map(|_| (baseline(), subject())))
    }

    /// Takes the costs of the baseline and of the subject in each round.
    pub(crate) fn of(self, costs: impl Iterator<Item = (Cost, Cost)>) -> Row {
        // The first round warms caches and the allocator.
        let rounds = costs.map(|(baseline, subject)| Round { baseline, subject });
        let Self { what, baseline, aim, .. } = self;
        Row { what, baseline, aim, rounds: rounds.skip(1).collect(), note: None }
    }
}

/// Measures the cost of `run`.
pub(crate) fn cost_of<T>(run: impl FnOnce() -> T) -> Cost {
    let start = Moment::now();
    let result = black_box(run());
    let cost = start.until(Moment::now());
    drop(result);
    cost
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn time<T>(before: impl Fn(), run: impl Fn() -> T) -> Cost {
    before();
    cost_of(run)
}

fn ratio(subject: Duration, baseline: Duration) -> f64 {
    subject.as_secs_f64() / baseline.as_secs_f64().max(1e-9)
}

/// Returns the CPU time of this process and of the children that it waited for.
pub(crate) fn cpu() -> Duration {
    let used = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| {
        let usage = getrusage(who).expect("the system knows it");
        let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Duration::from_micros(microseconds.unsigned_abs())
    });
    used.iter().sum()
}
