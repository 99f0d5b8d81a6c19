//! `cargo xtask bench`: benchmarks, as ratios of two measurements in one run.

use std::process::Command;

use crate::{failure::Failure, metadata::Metadata, process};

/// The suites that run the command itself.
const OF_THE_COMMAND: [&str; 3] = ["protocols", "start", "terminal"];

/// The programs that the command is compared with.
const BASELINES: [&str; 2] = ["baseline-start", "baseline-terminal"];

/// Builds the benchmarks, the release build of the command and the programs that it is compared with, and runs the
/// benchmarks named in `arguments`, or all.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let cargo = |verb: &str, profile: &str, package: &str| {
        let mut command = process::cargo(&metadata.workspace_root);
        command.args([verb, "--locked", "--profile", profile, "--package", package]);
        command
    };
    if starts_the_command(arguments) {
        process::run(cargo("build", "dist", "pintle-cli").args(["--features", "full"]))?;
    }
    let mut benches = cargo("build", "measure", "pintle-benches");
    process::run(benches.args(["--bin", "pintle-benches", "--features", "durable,protocols,server"]))?;
    // Linked statically, since loading a library would take longer than everything else that it does.
    for baseline in BASELINES {
        let baseline = ["--bin", baseline, "--", "-C", "target-feature=+crt-static"];
        process::run(cargo("rustc", "measure", "pintle-benches").args(baseline))?;
    }
    let program = metadata.target_directory.join("measure/pintle-benches");
    process::run(Command::new(program).current_dir(&metadata.workspace_root).args(arguments))
}

/// Returns whether a suite that needs the command is selected: its link-time optimization takes minutes.
fn starts_the_command(arguments: &[String]) -> bool {
    let named = arguments.iter().find(|word| !word.starts_with("--"));
    named.is_none_or(|name| OF_THE_COMMAND.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::starts_the_command;

    #[test]
    fn the_command_is_built_only_if_needed() {
        for (words, expected) in [
            ("", true),
            ("start", true),
            ("start memory", true),
            ("terminal CPU", true),
            ("protocols", true),
            ("--write", true),
            ("round start", false),
        ] {
            let words: Vec<String> = words.split_whitespace().map(ToOwned::to_owned).collect();
            assert_eq!(starts_the_command(&words), expected, "{words:?}");
        }
    }
}
