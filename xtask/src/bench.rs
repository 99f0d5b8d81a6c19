//! `cargo xtask bench`: benchmarks, as ratios of two measurements in one run.

use std::{path::PathBuf, process::Command};

use crate::{failure::Failure, metadata::Metadata, process, weight};

/// The suites that run the command itself.
const OF_THE_COMMAND: [&str; 4] = ["protocols", "round", "start", "terminal"];

/// The program that the conversation is compared with.
const BASELINE: &str = "baseline-terminal";

/// Features of the suites that the counts of instructions need not compile.
const ALL_SUITES: &str = "durable,protocols,server";

/// Profile and features of the command as it is shipped.
pub(crate) const SHIPPED_PROFILE: &str = "dist";
pub(crate) const SHIPPED_FEATURES: &str = "full";

/// Builds the benchmarks, the shipped command and the program that it is compared with, and runs the benchmarks named in
/// `arguments`, or all.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    if starts_the_command(arguments) {
        build_command(metadata, SHIPPED_PROFILE, SHIPPED_FEATURES)?;
    }
    let program = build_benches(metadata, Some(ALL_SUITES))?;
    process::run(Command::new(program).current_dir(&metadata.workspace_root).args(arguments))
}

/// Builds the command in the target directory of the workspace. Returns its path.
pub(crate) fn build_command(metadata: &Metadata, profile: &str, features: &str) -> Result<PathBuf, Failure> {
    process::run(&mut command_build(metadata, profile, features))?;
    Ok(metadata.target_directory.join(weight::output_directory(profile)).join("pintle"))
}

/// Returns the build of the command with this profile and these features.
pub(crate) fn command_build(metadata: &Metadata, profile: &str, features: &str) -> Command {
    let mut command = cargo(metadata, "build", profile, "pintle-cli");
    command.args(["--features", features]);
    command
}

/// Builds the benchmarks with these features, and the program that the command is compared with. Returns the path of the
/// benchmarks.
pub(crate) fn build_benches(metadata: &Metadata, features: Option<&str>) -> Result<PathBuf, Failure> {
    let mut benches = cargo(metadata, "build", "measure", "pintle-benches");
    benches.args(["--bin", "pintle-benches"]);
    if let Some(features) = features {
        benches.args(["--features", features]);
    }
    process::run(&mut benches)?;
    // Linked statically, since loading a library would take longer than everything else that it does.
    let baseline = ["--bin", BASELINE, "--", "-C", "target-feature=+crt-static"];
    process::run(cargo(metadata, "rustc", "measure", "pintle-benches").args(baseline))?;
    Ok(metadata.target_directory.join("measure/pintle-benches"))
}

fn cargo(metadata: &Metadata, verb: &str, profile: &str, package: &str) -> Command {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args([verb, "--locked", "--profile", profile, "--package", package]);
    command
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
            ("round start", true),
            ("stream start", false),
        ] {
            let words: Vec<String> = words.split_whitespace().map(ToOwned::to_owned).collect();
            assert_eq!(starts_the_command(&words), expected, "{words:?}");
        }
    }
}
