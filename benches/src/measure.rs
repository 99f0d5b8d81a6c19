//! Two things timed in turns, so that a noisy machine disturbs both alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

/// Rounds for each row if it does not say; the median of an odd number is one of them.
const ROUNDS: usize = 31;

/// One line of a suite's table: something against its floor.
pub(crate) struct Row {
    /// What is measured.
    pub(crate) what: String,
    /// What it is measured against.
    pub(crate) floor: &'static str,
    /// How near it should come.
    pub(crate) aim: Aim,
    rounds: Vec<Round>,
    pub(crate) note: Option<String>,
}

/// How near something should come to its floor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// At most so many times its wall time.
    Wall(f64),
    /// At most so many times its processor time.
    Cpu(f64),
    /// At most so many times both.
    Both(f64),
    /// At most so much wall time more.
    More(Duration),
}

impl From<f64> for Aim {
    fn from(ratio: f64) -> Self {
        Self::Wall(ratio)
    }
}

/// How a row is measured.
pub(crate) struct Contest<'a> {
    what: String,
    floor: &'static str,
    aim: Aim,
    rounds: usize,
    before: Option<&'a dyn Fn()>,
}

#[derive(Clone, Copy)]
pub(crate) struct Round {
    subject: Cost,
    floor: Cost,
}

/// What one run took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// Of this process and of those that it has waited for; not of servers, nor of what they run.
    pub(crate) cpu: Duration,
}

/// A point in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    used: Duration,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), used: cpu() }
    }

    /// What was spent between the two.
    pub(crate) fn until(self, later: Self) -> Cost {
        Cost { wall: later.at.saturating_duration_since(self.at), cpu: later.used.saturating_sub(self.used) }
    }
}

impl Cost {
    /// A share of it.
    pub(crate) fn per(self, parts: f64) -> Self {
        Self { wall: self.wall.div_f64(parts), cpu: self.cpu.div_f64(parts) }
    }

    /// What it is beyond `other`.
    pub(crate) fn less(self, other: Self) -> Self {
        Self { wall: self.wall.saturating_sub(other.wall), cpu: self.cpu.saturating_sub(other.cpu) }
    }
}

impl Round {
    /// The ratio of wall times.
    pub(crate) fn wall(self) -> f64 {
        ratio(self.subject.wall, self.floor.wall)
    }

    /// The ratio of processor times.
    pub(crate) fn cpu(self) -> f64 {
        ratio(self.subject.cpu, self.floor.cpu)
    }

    /// The wall time beyond the floor's, in milliseconds.
    pub(crate) fn more(self) -> f64 {
        milliseconds(self.subject.wall) - milliseconds(self.floor.wall)
    }

    /// The floor's wall time in milliseconds.
    pub(crate) fn floor_wall(self) -> f64 {
        milliseconds(self.floor.wall)
    }

    /// The floor's processor time in milliseconds.
    pub(crate) fn floor_cpu(self) -> f64 {
        milliseconds(self.floor.cpu)
    }
}

/// The least, the median and the most of some numbers.
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
    /// Times `floor` and `subject` in turns.
    pub(crate) fn measure<F, S>(
        what: impl Into<String>,
        floor: (&'static str, impl Fn() -> F),
        aim: impl Into<Aim>,
        subject: impl Fn() -> S,
    ) -> Self {
        Contest::new(what, floor.0, aim).measure(floor.1, subject)
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

    /// Whether the median is within the aim.
    pub(crate) fn is_reached(&self) -> bool {
        let within =
            |of: fn(Round) -> f64, most: f64| self.spread(of).is_some_and(|spread| spread.median <= most);
        match self.aim {
            Aim::Wall(most) => within(Round::wall, most),
            Aim::Cpu(most) => within(Round::cpu, most),
            Aim::Both(most) => within(Round::wall, most) && within(Round::cpu, most),
            Aim::More(most) => within(Round::more, milliseconds(most)),
        }
    }
}

impl<'a> Contest<'a> {
    /// `what` against `floor`, in 31 rounds.
    pub(crate) fn new(what: impl Into<String>, floor: &'static str, aim: impl Into<Aim>) -> Self {
        Self { what: what.into(), floor, aim: aim.into(), rounds: ROUNDS, before: None }
    }

    /// Says how many rounds there are, best an odd number.
    pub(crate) fn with_rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// Calls `before` ahead of each of the two in each round, outside of the time measured.
    pub(crate) fn with_before(mut self, before: &'a dyn Fn()) -> Self {
        self.before = Some(before);
        self
    }

    /// Times both in turns.
    pub(crate) fn measure<F, S>(self, floor: impl Fn() -> F, subject: impl Fn() -> S) -> Row {
        let before = self.before.unwrap_or(&|| ());
        self.compare(|| time(before, &floor), || time(before, &subject))
    }

    /// Has both say in turns what they took, because only a part of what they do is measured.
    pub(crate) fn compare(self, floor: impl Fn() -> Cost, subject: impl Fn() -> Cost) -> Row {
        // The first round warms caches and the allocator.
        let rounds = (0..=self.rounds).map(|_| Round { floor: floor(), subject: subject() });
        let Self { what, floor, aim, .. } = self;
        Row { what, floor, aim, rounds: rounds.skip(1).collect(), note: None }
    }
}

/// What `run` takes.
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

fn ratio(subject: Duration, floor: Duration) -> f64 {
    subject.as_secs_f64() / floor.as_secs_f64().max(1e-9)
}

/// What this process and its children have used of the processors.
fn cpu() -> Duration {
    let used = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| {
        let usage = getrusage(who).expect("the system knows it");
        let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Duration::from_micros(microseconds.unsigned_abs())
    });
    used.iter().sum()
}
