//! Tests of both formats.

mod properties;
pub(crate) mod scripted;
