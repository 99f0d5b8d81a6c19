//! Intervals of proportions, and the test of paired results.

use serde::Serialize;

/// Quantile of the normal distribution for intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A share, with its Wilson interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Proportion {
    /// Number of successes.
    pub count: usize,
    /// Number of trials.
    pub of: usize,
    /// Lower end of the interval, from 0 to 1.
    pub low: f64,
    /// Upper end of the interval, from 0 to 1.
    pub high: f64,
}

impl Proportion {
    /// Creates a share. Without trials, the interval is from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of attempts are far below 2^53")]
    pub fn new(count: usize, of: usize) -> Self {
        if of == 0 {
            return Self { count, of, low: 0.0, high: 1.0 };
        }
        let (successes, trials) = (count as f64, of as f64);
        let share = successes / trials;
        let scale = 1.0 + Z * Z / trials;
        let centre = share + Z * Z / (2.0 * trials);
        let width = Z * (share * (1.0 - share) / trials + Z * Z / (4.0 * trials * trials)).sqrt();
        let low = if count == 0 { 0.0 } else { (centre - width) / scale };
        let high = if count == of { 1.0 } else { (centre + width) / scale };
        Self { count, of, low: low.max(0.0), high: high.min(1.0) }
    }

    /// Returns the share as text, such as `12 of 20 (60.0 %, 38.7–78.1 %)`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of attempts are far below 2^53")]
    pub fn describe(&self) -> String {
        let Self { count, of, .. } = *self;
        if of == 0 {
            return "none of 0".to_owned();
        }
        let [share, low, high] = [count as f64 / of as f64, self.low, self.high].map(|part| part * 100.0);
        format!("{count} of {of} ({share:.1} %, {low:.1}–{high:.1} %)")
    }
}

/// Returns the two-sided p-value of McNemar's exact test, for pairs that only the first or only the second run solved.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "numbers of attempts are far below 2^53")]
pub fn mcnemar(only_first: usize, only_second: usize) -> f64 {
    let discordant = only_first + only_second;
    if discordant == 0 {
        return 1.0;
    }
    // Logarithms, since 2^-n is zero for large n.
    let mut term = discordant as f64 * 0.5_f64.ln();
    let mut sum = term.exp();
    for number in 1..=only_first.min(only_second) {
        term += ((discordant - number + 1) as f64).ln() - (number as f64).ln();
        sum += term.exp();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_agree_with_published_values() {
        for (count, of, low, high) in [
            (0, 10, 0.0, 0.2775),
            (10, 10, 0.7225, 1.0),
            (5, 10, 0.2366, 0.7634),
            (1, 100, 0.0018, 0.0545),
            // Newcombe 1998, table I, method 3.
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
            (0, 0, 0.0, 1.0),
        ] {
            let share = Proportion::new(count, of);
            let is_near = |found: f64, expected: f64| (found - expected).abs() < 0.0001;
            assert!(is_near(share.low, low) && is_near(share.high, high), "{share:?}");
        }
        assert_eq!(Proportion::new(5, 10).describe(), "5 of 10 (50.0 %, 23.7–76.3 %)");
    }

    #[test]
    fn pairs_that_differ_decide_the_exact_test() {
        for (first, second, expected) in [
            (0, 0, 1.0),
            (5, 5, 1.0),
            (0, 5, 0.0625),
            (1, 9, 0.021_484_375),
            (9, 1, 0.021_484_375),
            // Exact binomial sums: approval of a president in two surveys (Agresti), and others.
            (86, 150, 3.715_936_139_571_442e-5),
            (6, 16, 0.052_478_790_283_203_125),
            (12, 5, 0.143_463_134_765_625),
            (59, 121, 4.434_449_263_755_176e-6),
        ] {
            assert!((mcnemar(first, second) - expected).abs() < 1e-9, "{first}, {second}");
        }
        assert!(mcnemar(0, 5_000) < 1e-9, "no overflow");
    }
}
