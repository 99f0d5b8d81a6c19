//! Fixtures of unit tests.

pub(crate) mod facts;
