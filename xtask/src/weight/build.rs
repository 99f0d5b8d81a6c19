//! Builds of the command from nothing: their CPU time, and the size of the program.

use std::path::Path;

use nix::sys::resource::UsageWho;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

use super::{check::Checks, cold::ColdChecks, table::Table};

/// Result of a build of the command in an empty target directory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ColdBuild {
    /// CPU seconds of the whole build, with linkers and build scripts.
    pub(crate) seconds: f64,
    /// CPU seconds of the reference crates of `xtask/weight.toml` in it.
    pub(crate) reference_seconds: f64,
    /// Size of the program in bytes.
    pub(crate) bytes: u64,
}

impl ColdBuild {
    /// Builds the command with this profile and these features, and removes the target directory.
    ///
    /// # Errors
    ///
    /// A build that fails, or reference crates that are not part of it.
    pub(crate) fn run(metadata: &Metadata, profile: &str, features: &str) -> Result<Self, Failure> {
        let reference = Table::load(metadata)?.reference;
        let cold = ColdChecks::for_build(metadata)?;
        let mut build = process::cargo(&metadata.workspace_root);
        build.args(["build", "--locked", "--quiet", "--message-format=json", "--package", "pintle-cli"]);
        build.args(["--profile", profile, "--features", features]);
        // A user's first build is incremental where the profile says so.
        let build = cold.with(&mut build)?.env_remove("CARGO_INCREMENTAL");
        let before = process::cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        let output = process::capture(build)?;
        let seconds = process::cpu_time(UsageWho::RUSAGE_CHILDREN)?.saturating_sub(before).as_secs_f64();
        let reference_seconds =
            Checks::of_build(&cold, &reference.layer, &output)?.reference_seconds(&reference)?;
        let bytes = size_of(&cold.target().join(output_directory(profile)).join("pintle"))?;
        cold.remove()?;
        Ok(Self { seconds, reference_seconds, bytes })
    }
}

/// Returns the directory below the target directory for the programs of a profile.
pub(crate) fn output_directory(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

/// Returns the size of a program in bytes.
///
/// # Errors
///
/// A program that does not exist.
pub(crate) fn size_of(program: &Path) -> Result<u64, Failure> {
    let metadata =
        std::fs::metadata(program).with_context(|| format!("{} was not built", program.display()))?;
    Ok(metadata.len())
}
