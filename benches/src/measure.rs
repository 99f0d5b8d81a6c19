//! Two things timed in turns, so that a noisy machine disturbs both alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds for each row; the median of an odd number is one of them.
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
}

#[derive(Clone, Copy)]
struct Round {
    subject: Duration,
    floor: Duration,
}

impl Round {
    fn ratio(self) -> f64 {
        self.subject.as_secs_f64() / self.floor.as_secs_f64()
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
        let (floor, floor_run) = floor;
        // The first round warms caches and the allocator.
        let rounds = (0..=ROUNDS).map(|_| Round { floor: time(&floor_run), subject: time(&subject) });
        Self { what, floor, aim, rounds: rounds.skip(1).collect() }
    }

    fn sorted(&self) -> Vec<Round> {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(|left, right| left.ratio().total_cmp(&right.ratio()));
        rounds
    }
}

fn time<T>(run: impl Fn() -> T) -> Duration {
    let start = Instant::now();
    let result = black_box(run());
    let took = start.elapsed();
    drop(result);
    took
}

/// Prints the rows as a Markdown table.
pub(crate) fn print(rows: &[Row]) {
    println!("| what | against | ratio: median (least to most) | aim | reached |");
    println!("|---|---|---|---|---|");
    for row in rows {
        let rounds = row.sorted();
        let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else { continue };
        let Some(median) = rounds.get(rounds.len() / 2) else { continue };
        println!(
            "| {} | {} ({:.2} ms) | {:.2} ({:.2} to {:.2}) | {:.2} | {} |",
            row.what,
            row.floor,
            median.floor.as_secs_f64() * 1_000.0,
            median.ratio(),
            first.ratio(),
            last.ratio(),
            row.aim,
            if median.ratio() <= row.aim { "yes" } else { "no" },
        );
    }
}
