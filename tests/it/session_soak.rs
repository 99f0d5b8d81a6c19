//! A short soak, in a process of its own, whose memory, descriptors, tasks and processes are its alone.
//!
//! It takes longer than other tests do, since what it plays are real commands, some of which take their time to end.

use std::process::Command;

#[test]
fn a_hundred_disturbed_inputs_leave_nothing_behind() {
    let soak = Command::new(env!("CARGO_BIN_EXE_soak")).args(["--turns", "100"]).output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&soak.stdout), String::from_utf8_lossy(&soak.stderr));
    assert!(soak.status.success(), "play it again with the seed below:\n{out}\n{err}");
    assert!(out.starts_with("seed "), "{out}");
}
