//! Limits of the cost of evidence.

use std::time::Duration;

use super::Baseline;

/// Maximum number of runs of each check for a candidate.
pub const MAX_CHECK_RUNS: usize = 6;

/// Time of a run of the checks above which controls run the anchor alone.
pub const LONG_RUN: Duration = Duration::from_secs(300);

/// Counter of the runs of a check for a candidate, on its change and on mutants of it: at most [`MAX_CHECK_RUNS`].
#[derive(Clone, Copy, Debug)]
pub struct RunCounter {
    done: usize,
    limit: usize,
}

impl Default for RunCounter {
    fn default() -> Self {
        Self { done: 0, limit: MAX_CHECK_RUNS }
    }
}

impl RunCounter {
    /// Creates a counter for the first one of two judgements, each with these runs of the check or half of the limit.
    #[must_use]
    pub fn for_first_judgement(runs: usize) -> Self {
        Self { done: 0, limit: MAX_CHECK_RUNS - runs.min(MAX_CHECK_RUNS / 2) }
    }

    /// Permits the runs that were reserved for the second judgement.
    pub fn release(&mut self) {
        self.limit = MAX_CHECK_RUNS;
    }

    /// Takes up to `wanted` of the runs that are left, and returns their number.
    pub fn take(&mut self, wanted: usize) -> usize {
        let taken = wanted.min(self.limit.saturating_sub(self.done));
        self.done += taken;
        taken
    }

    /// Takes runs in separate clones after the runs in one clone have differed. Returns 0 if less than two are left, which
    /// cannot tell a flaky test from one that fails.
    pub fn take_separate(&mut self) -> usize {
        let wanted = self.done.min(self.limit.saturating_sub(self.done));
        if wanted < 2 { 0 } else { self.take(wanted) }
    }
}

impl Baseline {
    /// Returns whether controls run the anchor alone, because one run of all checks takes longer than [`LONG_RUN`].
    #[must_use]
    pub fn is_costly(&self) -> bool {
        let slowest =
            self.checks.values().map(|runs| runs.iter().map(|run| run.millis).max().unwrap_or_default());
        slowest.map(u128::from).sum::<u128>() > LONG_RUN.as_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plain;

    #[test]
    fn runs_of_a_check_have_a_limit() {
        for (done, expected) in [(1, 0), (2, 2), (3, 3), (4, 2), (5, 0), (6, 0), (10, 0)] {
            let mut counter = RunCounter::default();
            assert_eq!(counter.take(done), done.min(MAX_CHECK_RUNS));
            assert_eq!(counter.take_separate(), expected, "{done}");
            let left = MAX_CHECK_RUNS.saturating_sub(done + expected);
            assert_eq!((counter.take(9), counter.take(1)), (left, 0), "{done}");
        }
    }

    #[test]
    fn a_second_judgement_has_runs_left() {
        for (runs, first, separate, second) in
            [(1, 1, 0, 5), (2, 2, 2, 2), (3, 3, 0, 3), (4, 3, 0, 3), (6, 3, 0, 3)]
        {
            let mut counter = RunCounter::for_first_judgement(runs);
            assert_eq!((counter.take(runs), counter.take_separate()), (first, separate), "{runs}");
            counter.release();
            assert_eq!(counter.take(MAX_CHECK_RUNS), second, "{runs}");
        }
    }

    #[test]
    fn slow_checks_are_costly_together() {
        let run = |millis: u64| {
            let mut run = plain(0);
            run.millis = millis;
            run
        };
        let baseline = |millis: &[u64]| {
            let checks = millis.iter().map(|millis| (millis.to_string(), vec![run(*millis), run(1)]));
            Baseline { checks: checks.collect(), ..Baseline::default() }
        };
        assert!(!baseline(&[100_000, 200_000]).is_costly());
        assert!(baseline(&[100_000, 200_001]).is_costly());
    }
}
