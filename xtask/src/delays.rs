//! `cargo xtask delays`: runs the tests with random delays in calls of the C library.
//!
//! Reads, writes, syncs, renames, locks, connections, and waits for events and processes are delayed before and after they
//! happen, in the test programs and their children. A test that depends on timing fails.

use std::{path::PathBuf, process::Command};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

const SOURCE: &str = "xtask/src/delays/delays.c";

/// Rate and length of the delays, and the number of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    runs: u64,
    /// Delayed calls per 1,000.
    rate: u64,
    /// Longest delay, in milliseconds.
    milliseconds: u64,
    /// Arguments of `cargo test`.
    test: Vec<String>,
}

/// Runs the suite: `--runs N`, 3 by default, `--rate N` of 1,000 calls, 20 by default, `--milliseconds N`, 20 by default.
/// Words after `--` are arguments of `cargo test`.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    let library = compile(metadata)?;
    // Built before anything is delayed.
    process::run(test(metadata).args(&plan.test).arg("--no-run"))?;
    for run in 1..=plan.runs {
        println!("-- run {run}: {} of 1,000 calls wait for up to {} ms", plan.rate, plan.milliseconds);
        let delays = format!("PINTLE_DELAYS={}:{}", plan.rate, plan.milliseconds);
        let runner = serde_json::to_string(&["env", &format!("LD_PRELOAD={}", library.display()), &delays])
            .context("the runner cannot be named")?;
        let mut command = test(metadata);
        command.args(["--no-fail-fast", "--config", &format!("target.'cfg(all())'.runner = {runner}")]);
        process::run(command.args(&plan.test))?;
    }
    println!("delays: {} runs without a failure", plan.runs);
    Ok(())
}

fn test(metadata: &Metadata) -> Command {
    let mut command = process::cargo(&metadata.workspace_root);
    command.arg("test").args(process::EVERYTHING);
    command
}

fn compile(metadata: &Metadata) -> Result<PathBuf, Failure> {
    let library = metadata.target_directory.join("delays/libdelays.so");
    let directory = library.parent().unwrap_or(&library);
    std::fs::create_dir_all(directory).context("the directory of the library could not be created")?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut cc = Command::new(compiler);
    cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library);
    process::run(cc.arg(metadata.workspace_root.join(SOURCE)))?;
    Ok(library)
}

fn plan(arguments: &[String]) -> Result<Plan, Failure> {
    let mut plan = Plan { runs: 3, rate: 20, milliseconds: 20, test: Vec::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = match word.as_str() {
            "--runs" => &mut plan.runs,
            "--rate" => &mut plan.rate,
            "--milliseconds" => &mut plan.milliseconds,
            "--" => {
                plan.test = words.cloned().collect();
                break;
            }
            other => {
                return Err(Failure::new(format!(
                    "unknown option `{other}`; expected --runs, --rate or --milliseconds with a number, or --"
                )));
            }
        };
        let number = words.next().and_then(|word| word.parse().ok());
        *value = number
            .filter(|number| *number > 0)
            .ok_or_else(|| Failure::new(format!("expected a positive number after {word}")))?;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::{Plan, plan};

    #[test]
    fn a_plan_is_read() {
        let default = Plan { runs: 3, rate: 20, milliseconds: 20, test: Vec::new() };
        let only_env = vec![String::from("-p"), String::from("pintle-env")];
        for (line, expected) in [
            ("", Some(default.clone())),
            ("--runs 1", Some(Plan { runs: 1, ..default.clone() })),
            ("--runs 0", None),
            ("--rate 2 --milliseconds 200", Some(Plan { rate: 2, milliseconds: 200, ..default.clone() })),
            ("-- -p pintle-env", Some(Plan { test: only_env, ..default })),
            ("--rate", None),
            ("--rate x", None),
            ("--all", None),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(plan(&words).ok(), expected, "{line:?}");
        }
    }
}
