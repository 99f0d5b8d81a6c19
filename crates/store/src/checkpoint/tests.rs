//! Tests of checkpoints in real directories.
#![expect(clippy::disallowed_methods, reason = "the tests change and inspect the workspace from outside")]

mod comparing;
mod limits;
mod patching;
mod properties;
mod remote;
mod restoring;
mod serialised;
mod taking;
mod workspace;
