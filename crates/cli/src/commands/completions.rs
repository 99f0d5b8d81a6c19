//! `pintle completions`: generates shell completion scripts.

use clap::CommandFactory as _;
use pintle_host::failure::Failure;
use pintle_tui::console::Console;

use crate::arguments::{Arguments, CompletionsArgs};
use crate::exit::Exit;

/// Writes the completion script for a shell.
pub(crate) async fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "pintle", &mut script);
    Console::new().write(&String::from_utf8_lossy(&script)).await?;
    Ok(Exit::Done)
}
