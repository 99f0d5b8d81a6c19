//! `pintle patch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ReportFormat;
use crate::exit;

/// `pintle patch`.
#[derive(Debug, Args)]
pub(crate) struct PatchArgs {
    #[command(subcommand)]
    pub(crate) command: PatchCommand,
}

/// Subcommands of `pintle patch`.
#[derive(Debug, Subcommand)]
pub(crate) enum PatchCommand {
    /// Apply a patch to all its files, or to none
    #[command(after_help = exit::TABLE)]
    Apply(ApplyArgs),
    /// Report the changes that a patch would make, without making them
    #[command(after_help = exit::TABLE)]
    Check(PatchInput),
}

/// `pintle patch apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) input: PatchInput,
    /// Change nothing, like `check`
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A patch and how to interpret it.
#[derive(Debug, Args)]
pub(crate) struct PatchInput {
    /// Patch file; `-` reads standard input, which is also the default unless it is a terminal
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Root directory of the patch; paths outside of it are rejected [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Follow the reference implementation where implementations differ
    #[arg(long)]
    pub(crate) reference: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ReportFormat,
}
