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
#[cfg(feature = "eval")]
mod eval;
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

use pintle_host::boxed_future::box_future;
use pintle_host::process_env::ProcessEnv;
use pintle_tui::console::Console;
use pintle_tui::render;

use crate::arguments::{Arguments, Command, MockCommand};
use crate::exit::Exit;
use crate::exit::command_failure::{CommandFailure, error_object};

/// How long to wait for a reader to take the final error object.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the command. If its output format is JSON, writes an error object for a failure.
pub(crate) async fn run_and_report(
    arguments: Arguments,
    process_env: &ProcessEnv,
) -> Result<Exit, CommandFailure> {
    let format = arguments.command.error_format();
    let result = box_future(|| dispatch(arguments, process_env)).await;
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
    process_env.check_directories()?;
    let command = box_future(|| crate::config::complete(command, &typed, process_env)).await?;
    let exit = match command {
        Command::Chat(args) => box_future(|| run::chat(*args, process_env)).await?,
        #[cfg(feature = "compat")]
        Command::Run(args) if args.claude_stream => box_future(|| claude::claude(*args, process_env)).await?,
        Command::Run(args) => box_future(|| run::run(*args, process_env)).await?,
        Command::Ask(args) => box_future(|| ask::ask(*args, process_env)).await?,
        Command::Sessions(args) => box_future(|| sessions::sessions(args, process_env)).await?,
        Command::Audit(args) => box_future(|| audit::audit(args, process_env)).await?,
        Command::Worktree(args) => box_future(|| worktree::worktree(args, process_env)).await?,
        Command::Approvals(args) => box_future(|| approvals::approvals(args, process_env)).await?,
        Command::Rules(args) => box_future(|| rules::rules(args, process_env)).await?,
        Command::Grants(args) => box_future(|| grants::grants(args, process_env)).await?,
        Command::Trust(args) => box_future(|| trust::trust(args, process_env)).await?,
        Command::Login(args) => box_future(|| login::login(args, process_env)).await?,
        Command::Logout(args) => box_future(|| login::logout(&args, process_env)).await?,
        Command::Config(args) => box_future(|| config::command(args, process_env)).await?,
        Command::Demo(args) => box_future(|| demo::demo(args, process_env)).await?,
        Command::Tools(args) => box_future(|| tools::tools(&args, process_env)).await?,
        Command::Models(args) => box_future(|| models::models(&args, process_env)).await?,
        Command::Prompt(args) => box_future(|| prompt::prompt(args, process_env)).await?,
        Command::Patch(args) => box_future(|| patch::patch(args, process_env)).await?,
        Command::Mock(args) => match args.command {
            MockCommand::Serve(args) => box_future(|| mock::serve(args)).await?,
        },
        Command::Completions(args) => box_future(|| completions::completions(&args)).await?,
        Command::Man(args) => box_future(|| man::man(&args, process_env)).await?,
        Command::Doctor(args) => box_future(|| doctor::doctor(&args, process_env)).await?,
        #[cfg(feature = "acp")]
        Command::Acp(args) => box_future(|| acp::acp(&args, process_env)).await?,
        #[cfg(feature = "client")]
        Command::Attach(args) => box_future(|| attach::attach(args, process_env)).await?,
        #[cfg(feature = "server")]
        Command::Serve(args) => box_future(|| serve::serve(*args, process_env)).await?,
        #[cfg(feature = "server")]
        Command::Tokens(args) => box_future(|| tokens::tokens(args, process_env)).await?,
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => box_future(|| mcp::command(args, process_env)).await?,
        #[cfg(feature = "task")]
        Command::Task(args) => box_future(|| task::task(args, process_env)).await?,
        #[cfg(feature = "task")]
        Command::Worker(args) => box_future(|| worker::run_worker(*args, process_env)).await?,
        #[cfg(feature = "eval")]
        Command::Eval(args) => box_future(|| eval::eval(args, process_env)).await?,
    };
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// Number of bytes that a future may have on the stack.
    const LIMIT: usize = 16 * 1024;

    #[test]
    fn the_future_of_a_command_is_small() {
        let process_env = ProcessEnv::from_variables([]);
        let arguments = || Arguments::try_parse_from(["pintle", "run", "x"]).unwrap();
        let of_process = size_of_val(&run_and_report(arguments(), &process_env));
        let of_command = size_of_val(&dispatch(arguments(), &process_env));
        assert!(of_process < LIMIT && of_command < LIMIT, "{of_process} {of_command}");
    }
}
