//! `pintle config`: shows the configuration with its sources, and edits its files.

mod edit;
mod list;
mod schema;

use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_tui::console;

use crate::arguments::{ConfigArgs, ConfigCommand};
use crate::exit::Exit;

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
