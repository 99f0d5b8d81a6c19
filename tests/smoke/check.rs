//! Checks of a step.

/// Result of a step, or the reason for its failure.
pub(crate) type Checked<T> = Result<T, String>;

/// Fails unless a condition holds.
pub(crate) fn ensure(holds: bool, otherwise: impl Into<String>) -> Checked<()> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// Adds the name of the step to an error.
pub(crate) fn during<T, E: std::fmt::Display>(step: &str, result: Result<T, E>) -> Checked<T> {
    result.map_err(|error| format!("{step}: {error}"))
}
