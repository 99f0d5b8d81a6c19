//! Limits of the cost of evidence.

use std::time::Duration;

use super::Baseline;

/// Maximum number of runs of each check for a candidate.
pub const MAX_CHECK_RUNS: usize = 6;

/// Time of a run of the checks above which controls run the anchor alone.
pub const LONG_RUN: Duration = Duration::from_secs(300);

/// Returns the number of runs in separate clones after `done` runs in one clone have differed. 0 if the limit leaves less than
/// two, which cannot tell a flaky test from one that fails.
pub(crate) fn plan_separate_runs(done: usize) -> usize {
    let left = done.min(MAX_CHECK_RUNS.saturating_sub(done));
    if left < 2 { 0 } else { left }
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
    use crate::tests::facts::plain;

    #[test]
    fn runs_of_a_check_have_a_limit() {
        for (done, expected) in [(1, 0), (2, 2), (3, 3), (4, 2), (5, 0), (6, 0), (10, 0)] {
            assert_eq!(plan_separate_runs(done), expected, "{done}");
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
