//! This program as cargo's test runner. It runs a test program and prints its wall time and CPU time.
//!
//! Cargo runs it as `target.'cfg(..)'.runner`.

use std::{
    path::Path,
    process::{Command, ExitCode},
    time::Instant,
};

use nix::sys::resource::UsageWho;

use crate::{
    failure::{Context as _, Failure},
    process,
    test_run::ProgramTime,
};

/// The first argument of this program as a runner.
const NAME: &str = "run-test-program";

/// Variables of the build that a program's own builds must not see.
const BUILD_VARIABLES: &[&str] = &["RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS", "CARGO_INCREMENTAL"];

/// Makes cargo run test programs with `program`, which is this program.
pub(super) fn set_runner<'a>(test: &'a mut Command, program: &Path) -> Result<&'a mut Command, Failure> {
    // As an array, because cargo splits a string at spaces.
    let own = serde_json::to_string(program).context("the path of this program is not UTF-8")?;
    Ok(test.args(["--config", &format!("target.'cfg(all())'.runner = [{own}, \"{NAME}\"]")]))
}

/// Runs a test program if this process is a runner, else returns `None`.
pub(crate) fn run_as_runner() -> Option<Result<ExitCode, Failure>> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != NAME {
        return None;
    }
    let program = words.next()?;
    let mut command = Command::new(&program);
    command.args(words);
    for name in BUILD_VARIABLES {
        command.env_remove(name);
    }
    // The times of tests are an unstable output; the variable enables it in the pinned toolchain.
    command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
    Some(run(&mut command))
}

fn run(command: &mut Command) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let status = command.status().context("the test program could not be started")?;
    let time = ProgramTime { wall: started.elapsed(), cpu: process::cpu_time(UsageWho::RUSAGE_CHILDREN)? };
    println!("{time}");
    Ok(process::exit_code(status))
}
