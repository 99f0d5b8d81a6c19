//! `cargo xtask soak`: thousands of inputs, or a thousand sessions at once, and what they leave behind.

use crate::{failure::Failure, metadata::Metadata, process};

/// Builds the soak in release, so that its figures are those of a user, and hands it its arguments.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["run", "--locked", "--release", "--package", "pintle-tests", "--bin", "soak", "--"]);
    process::run(command.args(arguments))
}
