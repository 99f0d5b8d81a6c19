//! Two things timed in turns, so that a noisy machine disturbs both alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

/// Rounds for each row if it does not say; the median of an odd number is one of them.
const ROUNDS: usize = 31;

/// One line of a suite's table.
pub(crate) struct Row {
    /// What is measured.
    pub(crate) what: &'static str,
    /// What it is measured against.
    pub(crate) floor: &'static str,
    /// At most this ratio is wanted.
    pub(crate) aim: f64,
    rounds: Vec<Round>,
    note: Option<String>,
}

/// How a row is measured.
pub(crate) struct Contest<'a> {
    what: &'static str,
    floor: &'static str,
    aim: f64,
    rounds: usize,
    before: Option<&'a dyn Fn()>,
}

#[derive(Clone, Copy)]
struct Round {
    subject: Cost,
    floor: Cost,
}

/// What one run took.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    /// Of this process and of those that it has waited for; not of servers, nor of what they run.
    cpu: Duration,
}

impl Round {
    fn wall(self) -> f64 {
        self.subject.wall.as_secs_f64() / self.floor.wall.as_secs_f64()
    }

    fn cpu(self) -> f64 {
        self.subject.cpu.as_secs_f64() / self.floor.cpu.as_secs_f64()
    }
}

impl Row {
    /// Times `floor` and `subject` in turns.
    pub(crate) fn measure<F, S>(
        what: &'static str,
        floor: (&'static str, impl Fn() -> F),
        aim: f64,
        subject: impl Fn() -> S,
    ) -> Self {
        Contest::new(what, floor.0, aim).measure(floor.1, subject)
    }

    /// Has a line printed below the table.
    pub(crate) fn with_note(mut self, note: String) -> Self {
        self.note = Some(note);
        self
    }

    fn sorted(&self, by: impl Fn(Round) -> f64) -> Vec<Round> {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(|left, right| by(*left).total_cmp(&by(*right)));
        rounds
    }
}

impl<'a> Contest<'a> {
    /// `what` against `floor`, in 31 rounds.
    pub(crate) fn new(what: &'static str, floor: &'static str, aim: f64) -> Self {
        Self { what, floor, aim, rounds: ROUNDS, before: None }
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
        // The first round warms caches and the allocator.
        let rounds =
            (0..=self.rounds).map(|_| Round { floor: time(before, &floor), subject: time(before, &subject) });
        let Self { what, floor, aim, .. } = self;
        Row { what, floor, aim, rounds: rounds.skip(1).collect(), note: None }
    }
}

fn time<T>(before: impl Fn(), run: impl Fn() -> T) -> Cost {
    before();
    let (start, used) = (Instant::now(), cpu());
    let result = black_box(run());
    let cost = Cost { wall: start.elapsed(), cpu: cpu().saturating_sub(used) };
    drop(result);
    cost
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

/// Prints the rows as a Markdown table.
pub(crate) fn print(rows: &[Row]) {
    println!("| what | against | ratio: median (least to most) | aim | reached | of CPU |");
    println!("|---|---|---|---|---|---|");
    for row in rows {
        let rounds = row.sorted(Round::wall);
        let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else { continue };
        let Some(median) = rounds.get(rounds.len() / 2) else { continue };
        let Some(cpu) = row.sorted(Round::cpu).get(row.rounds.len() / 2).copied() else { continue };
        println!(
            "| {} | {} ({:.2} ms) | {:.2} ({:.2} to {:.2}) | {:.2} | {} | {:.2} |",
            row.what,
            row.floor,
            median.floor.wall.as_secs_f64() * 1_000.0,
            median.wall(),
            first.wall(),
            last.wall(),
            row.aim,
            if median.wall() <= row.aim { "yes" } else { "no" },
            cpu.cpu(),
        );
    }
    let notes: Vec<&String> = rows.iter().filter_map(|row| row.note.as_ref()).collect();
    if !notes.is_empty() {
        println!();
        notes.iter().for_each(|note| println!("* {note}"));
    }
}
