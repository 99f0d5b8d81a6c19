//! Lists the tests that were skipped because the machine lacks something. It is the last program of the test command; with
//! `CI` set, a skipped test is a failure.
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
    println!("\nSKIPPED tests, by what is missing on this machine:");
    for prerequisite in &missing {
        println!("  {prerequisite}");
    }
    println!();
    if std::env::var_os("CI").is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
