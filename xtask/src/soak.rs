//! `cargo xtask soak`: thousands of inputs, or a thousand sessions at once, and what they leave behind.

use crate::{failure::Failure, metadata::Metadata, process};

/// Builds the soak as hosts build our crates, so that its figures are theirs, and hands it its arguments.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    let profile = ["run", "--locked", "--profile", "measure"];
    command.args(profile).args(["--package", "pintle-tests", "--bin", "soak", "--"]);
    process::run(command.args(arguments))
}
