//! `pintle config`: shows the configuration with its sources, and edits its files.

mod edit;
mod list;
mod schema;

use crate::arguments::{ConfigArgs, ConfigCommand};
use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Runs `pintle config`.
pub(crate) async fn command(args: ConfigArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    match args.command.unwrap_or(ConfigCommand::List(args.list)) {
        ConfigCommand::List(args) => list::list(&args, process_env).await,
        ConfigCommand::Edit(args) => edit::edit(&args, process_env).await,
        ConfigCommand::Path => list::paths(process_env).await,
        ConfigCommand::Schema => {
            let text = format!("{:#}\n", schema::schema());
            console::print(&text).await.map(|()| Exit::Done)
        }
    }
}

/// Returns the effective value of each key in the current directory and its source, as a table.
pub(crate) async fn effective(process_env: &ProcessEnv) -> Result<String, Failure> {
    list::effective(process_env).await
}
