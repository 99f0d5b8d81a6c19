//! `cargo xtask wire DIR [FILTER]`: recorded provider responses through the real adapters.
//!
//! The corpus is third-party data and not part of the repository. The checks are described in the program itself,
//! `tests/wire`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

/// Replays the corpus in the directory given first. The other arguments are passed on.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let Some((directory, rest)) = arguments.split_first() else {
        return Err(Failure::new("no directory was given; usage: cargo xtask wire DIR [FILTER] [--seed N]"));
    };
    // The program runs in the root of the workspace; the path is relative to the current directory.
    let directory =
        std::path::absolute(directory).with_context(|| format!("`{directory}` is not a valid path"))?;
    play(metadata, &directory, rest)
}

/// Returns the corpus beside the workspace, if there is one.
pub(crate) fn corpus(metadata: &Metadata) -> Option<PathBuf> {
    let directory = metadata.workspace_root.parent()?.join("shared/wire");
    directory.join("manifest.json").is_file().then_some(directory)
}

/// Replays a corpus. Unoptimized: it takes seconds.
fn play(metadata: &Metadata, directory: &Path, rest: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["run", "--quiet", "--package", "pintle-tests", "--bin", "wire", "--"]);
    process::run(command.arg(directory).args(rest))
}

/// Replays a corpus with the program that the tests have built.
pub(crate) fn play_with_built_program(metadata: &Metadata, directory: &Path) -> Result<(), Failure> {
    process::run(Command::new(metadata.target_directory.join("debug/wire")).arg(directory))
}
