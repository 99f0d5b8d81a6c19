//! Tests of the whole workspace: real HTTP, real files, real processes.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test is a host, and fails by panicking"
)]

mod approvals;
mod client;
mod editor_sessions;
mod embedding;
mod events;
mod faults;
mod generate;
mod governed_sessions;
mod governed_trees;
mod harness;
mod host_sessions;
mod hosts;
mod looping;
mod many_approvals;
mod programs;
mod prompts;
mod properties;
mod replay;
mod secrets;
mod session_bad_input;
mod session_caching;
mod session_shutdown;
mod session_soak;
#[path = "../shipped/shipped.rs"]
mod shipped;
mod smoke;
mod stability;
mod subagents;
mod switching;
mod test_profile;
mod text_tools;
mod tools_bad_input;
mod wrong_calls;
