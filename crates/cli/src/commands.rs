//! The subcommands, one module for each, and the dispatch to them.

#[cfg(feature = "acp")]
mod acp;
mod approvals;
mod ask;
#[cfg(feature = "client")]
mod attach;
mod audit;
#[cfg(feature = "compat")]
mod claude;
mod completions;
mod config;
mod demo;
mod doctor;
mod grants;
mod login;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod mock;
mod models;
mod patch;
mod prompt;
mod rules;
mod run;
#[cfg(feature = "server")]
mod serve;
mod sessions;
#[cfg(feature = "task")]
mod task;
#[cfg(feature = "server")]
mod tokens;
mod tools;
mod trust;
#[cfg(feature = "task")]
mod worker;
mod worktree;

use std::time::Duration;

use crate::arguments::{Arguments, Command, MockCommand};
use crate::console::Console;
use crate::exit::Exit;
use crate::exit::command_failure::{CommandFailure, error_object};
use crate::process_env::ProcessEnv;
use crate::render;

/// How long to wait for a reader to take the final error object.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the command. If its output format is JSON, writes an error object for a failure.
pub(crate) async fn run_and_report(
    arguments: Arguments,
    process_env: &ProcessEnv,
) -> Result<Exit, CommandFailure> {
    let format = arguments.command.error_format();
    let result = dispatch(arguments, process_env).await;
    if let (Some(format), Err(failure)) = (format, &result)
        && !failure.is_in_output()
        && let Ok(line) = render::failure_line(format.error_type, &error_object(failure.failure()))
    {
        // If the reader is gone or stalled, the exit code still reports the failure.
        let _ = tokio::time::timeout(FINAL_WRITE_TIMEOUT, Console::new().write(&line)).await;
    }
    result
}

async fn dispatch(arguments: Arguments, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    let Arguments { command, typed } = arguments;
    let exit = match crate::config::complete(command, &typed, process_env).await? {
        Command::Chat(args) => run::chat(*args, process_env).await?,
        #[cfg(feature = "compat")]
        Command::Run(args) if args.claude_stream => claude::claude(*args, process_env).await?,
        Command::Run(args) => run::run(*args, process_env).await?,
        Command::Ask(args) => ask::ask(*args, process_env).await?,
        Command::Sessions(args) => sessions::sessions(args, process_env).await?,
        Command::Audit(args) => audit::audit(args, process_env).await?,
        Command::Worktree(args) => worktree::worktree(args, process_env).await?,
        Command::Approvals(args) => approvals::approvals(args, process_env).await?,
        Command::Rules(args) => rules::rules(args, process_env).await?,
        Command::Grants(args) => grants::grants(args, process_env).await?,
        Command::Trust(args) => trust::trust(args, process_env).await?,
        Command::Login(args) => login::login(args, process_env).await?,
        Command::Logout(args) => login::logout(&args, process_env).await?,
        Command::Config(args) => config::command(args, process_env).await?,
        Command::Demo(args) => demo::demo(args, process_env).await?,
        Command::Tools(args) => tools::tools(&args, process_env).await?,
        Command::Models(args) => models::models(&args, process_env).await?,
        Command::Prompt(args) => prompt::prompt(args, process_env).await?,
        Command::Patch(args) => patch::patch(args, process_env).await?,
        Command::Mock(args) => match args.command {
            MockCommand::Serve(args) => mock::serve(args).await?,
        },
        Command::Completions(args) => completions::completions(&args).await?,
        Command::Man(args) => man::man(&args, process_env).await?,
        Command::Doctor(args) => doctor::doctor(&args, process_env).await?,
        #[cfg(feature = "acp")]
        Command::Acp(args) => acp::acp(&args, process_env).await?,
        #[cfg(feature = "client")]
        Command::Attach(args) => attach::attach(args, process_env).await?,
        #[cfg(feature = "server")]
        Command::Serve(args) => serve::serve(*args, process_env).await?,
        #[cfg(feature = "server")]
        Command::Tokens(args) => tokens::tokens(args, process_env).await?,
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::command(args, process_env).await?,
        #[cfg(feature = "task")]
        Command::Task(args) => task::task(args, process_env).await?,
        #[cfg(feature = "task")]
        Command::Worker(args) => worker::run_worker(*args, process_env).await?,
    };
    Ok(exit)
}
