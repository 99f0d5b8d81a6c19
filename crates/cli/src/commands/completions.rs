//! `pintle completions`: generates shell completion scripts.

use clap::CommandFactory as _;

use crate::arguments::{Arguments, CompletionsArgs};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;

/// Writes the completion script for a shell.
pub(crate) async fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "pintle", &mut script);
    Console::new().write(&String::from_utf8_lossy(&script)).await?;
    Ok(Exit::Done)
}
