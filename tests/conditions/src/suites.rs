//! Whether the long suites run.

/// Name of the variable that `cargo xtask ci --full` sets.
pub const FULL: &str = "PINTLE_TEST_FULL";

/// Returns whether suites run all of their cases. By default, suites of hundreds of cases run a sample.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os(FULL).is_some_and(|value| value == "1")
}

/// Returns the number of cases of a suite: `sample` by default, and `all` in the long run.
#[must_use]
pub fn cases<T>(sample: T, all: T) -> T {
    if is_full() { all } else { sample }
}
