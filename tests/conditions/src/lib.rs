//! Prerequisites of tests, the switch for the long suites, and the comparison of serialised names.
//!
//! A test that needs a program or a service asks for its [`Prerequisite`] and returns early if it is missing:
//!
//! ```
//! # fn a_query_is_answered() {
//! if !pintle_test_conditions::POSTGRESQL.is_present() {
//!     return;
//! }
//! # }
//! ```
//!
//! [`missing`] lists the prerequisites that are missing, with the tests that are skipped. The test command prints that list
//! at its end. With the variable `CI` set, a missing prerequisite is a failure.
//!
//! [`SerialisedValues`] compares the serialised names of a crate's types with a checked-in file.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    reason = "only for tests: it reads variables of the test run, starts programs, and fails tests"
)]

mod prerequisite;
mod serialised;
mod suites;

pub use self::{
    prerequisite::{
        ALL, BIRTH_TIMES, BUBBLEWRAP, CONTAINERS, EXTENDED_ATTRIBUTES, GO, HTTP2_CLIENT, LANDLOCK, MOUNTS,
        Missing, NODE, POSTGRESQL, PYTEST, Prerequisite, REPORTED_CHANGES, RESTATE, RIPGREP, ROOT,
        SSH_SERVERS, STRACE, TMUX, VENV, missing,
    },
    serialised::SerialisedValues,
    suites::{FULL, cases, is_full},
};
