//! Lists the groups of tests that were skipped, with the missing prerequisite and how to get it. It is the last program of
//! the test command. With `CI` set, it fails if a group was skipped.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program of the test command: it reads its variables and writes to its output"
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // Runners of tests ask each program for its tests; it has none.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let missing = pintle_test_conditions::missing();
    if missing.is_empty() {
        println!("\nno tests were skipped\n");
        return ExitCode::SUCCESS;
    }
    println!("\nSKIPPED: some tests, because this machine lacks their prerequisites.\n");
    for prerequisite in &missing {
        println!("{prerequisite}\n");
    }
    if std::env::var_os("CI").is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
