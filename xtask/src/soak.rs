//! `cargo xtask soak`: thousands of inputs, or a thousand concurrent sessions, and the resources that they leak.

use crate::{failure::Failure, metadata::Metadata, process};

/// Builds the soak test with the profile of an embedding application, so that the figures apply to it, and runs it.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    let profile = ["run", "--locked", "--profile", "measure"];
    command.args(profile).args(["--package", "pintle-tests", "--bin", "soak", "--"]);
    process::run(command.args(arguments))
}
