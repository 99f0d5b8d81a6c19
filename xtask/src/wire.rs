//! `cargo xtask wire DIR [FILTER]`: recorded provider answers through the real adapters.
//!
//! The corpus is data of others and no part of the repository: it is read where it is. What is judged and how is
//! said by the program itself, `tests/wire`.

use std::path::{Path, PathBuf};

use crate::{failure::Failure, metadata::Metadata, process};

/// Plays the corpus in the folder that is named first; the rest goes to the program as it is.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let Some((folder, rest)) = arguments.split_first() else {
        return Err(Failure::new("no folder was given; usage: cargo xtask wire DIR [FILTER] [--seed N]"));
    };
    // The program is started in the workspace's root, and the folder is meant from here.
    let folder = std::path::absolute(folder)
        .map_err(|cause| Failure::new(format!("`{folder}` is no path")).because(cause))?;
    play(metadata, &folder, rest)
}

/// The corpus beside the workspace, where there is one.
pub(crate) fn corpus(metadata: &Metadata) -> Option<PathBuf> {
    let folder = metadata.workspace_root.parent()?.join("shared/wire");
    folder.join("manifest.json").is_file().then_some(folder)
}

/// Plays a corpus. Without optimisation: the plays take seconds, and the tests have built it like this already.
pub(crate) fn play(metadata: &Metadata, folder: &Path, rest: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["run", "--quiet", "--package", "pintle-tests", "--bin", "wire", "--"]);
    process::run(command.arg(folder).args(rest))
}
