//! Fixtures of unit tests.

pub(crate) mod harness;
pub(crate) mod probe;
