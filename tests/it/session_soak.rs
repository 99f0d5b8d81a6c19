//! A short soak test in a child process, so that memory, descriptors, tasks and processes are its own.
//!
//! It is slower than other tests, since it runs real commands, some of which take time to terminate.

use std::process::Command;

#[test]
fn disturbed_inputs_leak_nothing() {
    let turns = pintle_test_conditions::cases("50", "100");
    let soak = Command::new(env!("CARGO_BIN_EXE_soak")).args(["--turns", turns]).output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&soak.stdout), String::from_utf8_lossy(&soak.stderr));
    assert!(soak.status.success(), "play it again with the seed below:\n{out}\n{err}");
    assert!(out.starts_with("seed "), "{out}");
}
