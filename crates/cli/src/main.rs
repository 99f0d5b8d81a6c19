#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[cfg(feature = "acp")]
mod acp;
mod approvals;
mod args;
mod ask;
#[cfg(feature = "client")]
mod attach;
mod audit;
#[cfg(feature = "compat")]
mod claude;
#[cfg(feature = "compat")]
mod codex_output;
mod command_failure;
mod command_line;
mod completions;
mod config;
mod config_file;
mod demo;
mod doctor;
mod exit;
mod first_start;
mod follow;
mod grants;
mod hardening;
#[cfg(feature = "compat")]
mod last_message;
mod login;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod mock;
mod models;
mod output_schema;
mod patch;
mod piped_input;
mod prompt;
mod prompt_source;
#[cfg(feature = "client")]
mod remote;
mod response_view;
mod rules;
mod run;
#[cfg(feature = "server")]
mod serve;
mod session_commands;
#[cfg(feature = "task")]
mod task;
mod testkit_models;
#[cfg(feature = "server")]
mod tokens;
mod tools;
mod trust;

use std::process::ExitCode;
use std::time::Duration;

#[cfg(feature = "server")]
use pintle_host::kept_in;
#[cfg(feature = "acp")]
use pintle_host::prompt_commands;
use pintle_host::{
    attendant, cost, env_spec, environment, explain, failure, host_command, instructions, keys, model,
    named_value, notice, policy, process_env, process_secrets, profile_file, provider, route,
    scripted_models, servers, sessions, timeout, toolset,
};
#[cfg(feature = "mcp")]
use pintle_host::{gates, server_tokens};
#[cfg(feature = "acp")]
use pintle_tui::reports;
use pintle_tui::{approve, console, interrupt, render, terminal, user_editor};

use crate::args::{Arguments, Command, MockCommand};
use crate::command_failure::{CommandFailure, error_object};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::OrFailure as _;
use crate::process_env::ProcessEnv;
use crate::testkit_models::TestkitModels;

/// One thread drives the work; the other stays free for signals.
const WORKERS: usize = 2;

/// How long to wait for a reader to take the final error object.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

#[expect(clippy::disallowed_methods, reason = "the main function captures the environment of the process")]
fn main() -> ExitCode {
    let arguments = match command_line::parse(std::env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    let session = arguments.command.session();
    let process_env = ProcessEnv::capture()
        .with_notices(console::notices())
        .with_scripted_models(TestkitModels)
        .with_key_commands(config_file::key_commands)
        .with_workspace(session.and_then(|args| args.environment.dir.as_deref()));
    // SAFETY: no other thread has been started yet.
    #[expect(unsafe_code, reason = "secrets leave the environment before there is another thread")]
    unsafe {
        hardening::hide_secrets(&process_env, &arguments.command);
    }
    #[cfg(feature = "compat")]
    let process_env = match arguments.command.is_codex_stream() {
        true => process_env.with_key_of_codex(),
        false => process_env,
    };
    let exit = execute(arguments, &process_env).unwrap_or_else(|failure| {
        console::report(failure.failure());
        failure.exit()
    });
    exit.into()
}

fn execute(arguments: Arguments, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .or_failed("cannot start the runtime")?;
    let is_interactive = matches!(arguments.command, Command::Run(_) | Command::Ask(_) | Command::Demo(_));
    let result = runtime.block_on(run_and_report(arguments, process_env));
    if is_interactive {
        console::discard_typeahead();
    }
    // A write to a reader that does not read may still be pending; do not wait for it.
    runtime.shutdown_background();
    result
}

/// Runs the command. If its output format is JSON, writes an error object for a failure.
async fn run_and_report(arguments: Arguments, process_env: &ProcessEnv) -> Result<Exit, CommandFailure> {
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
    let exit = match config::complete(command, &typed, process_env).await? {
        Command::Chat(args) => run::chat(*args, process_env).await?,
        #[cfg(feature = "compat")]
        Command::Run(args) if args.claude_stream => claude::claude(*args, process_env).await?,
        Command::Run(args) => run::run(*args, process_env).await?,
        Command::Ask(args) => ask::ask(*args, process_env).await?,
        Command::Sessions(args) => session_commands::sessions(args, process_env).await?,
        Command::Audit(args) => audit::audit(args, process_env).await?,
        Command::Worktree(args) => session_commands::worktree(args, process_env).await?,
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
        Command::Acp(args) => acp::acp(*args, process_env).await?,
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
        Command::Worker(args) => task::run_worker(*args, process_env).await?,
    };
    Ok(exit)
}
