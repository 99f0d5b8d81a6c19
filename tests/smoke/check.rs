//! What a step has to show.

/// The result of a step, or why it does not hold.
pub(crate) type Checked<T> = Result<T, String>;

/// Demands that something is so.
pub(crate) fn ensure(holds: bool, otherwise: impl Into<String>) -> Checked<()> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// Says in which step something failed.
pub(crate) fn during<T, E: std::fmt::Display>(step: &str, result: Result<T, E>) -> Checked<T> {
    result.map_err(|error| format!("{step}: {error}"))
}
