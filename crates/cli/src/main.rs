#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod answer;
mod approve;
mod args;
mod ask;
mod completions;
mod console;
mod cost;
mod demo;
mod environment;
mod equipment;
mod example;
mod exit;
mod explain;
mod failure;
mod follow;
mod hardening;
mod host;
mod interrupt;
mod mock;
mod model;
mod models;
mod patch;
mod piped_input;
mod profile_file;
mod prompt;
mod prompt_source;
mod provider;
mod render;
mod route;
mod run;
mod timeout;
mod tools;

use std::process::ExitCode;
use std::time::Duration;

use crate::args::{Arguments, Command, MockCommand};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;

/// One thread drives the work; the other stays free for signals, whatever the first is busy with.
const WORKERS: usize = 2;

/// How long the last object waits for a reader.
const PATIENCE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let arguments = match Arguments::of_process() {
        Ok(arguments) => arguments,
        Err(exit) => return exit.into(),
    };
    let host = Host::of_process();
    // SAFETY: there is one thread so far.
    #[expect(unsafe_code, reason = "secrets leave the environment before there is another thread")]
    unsafe {
        hardening::hide_secrets(&host, &arguments.command);
    }
    let exit = perform(arguments, &host).unwrap_or_else(|failure| {
        failure.report();
        failure.exit()
    });
    exit.into()
}

fn perform(arguments: Arguments, host: &Host) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("cannot start the runtime").because(&error))?;
    let takes_time = matches!(arguments.command, Command::Run(_) | Command::Ask(_) | Command::Demo(_));
    let performed = runtime.block_on(dispatch(arguments.command, host));
    if takes_time {
        console::discard_typed_ahead();
    }
    // What may still hang is a write that nobody reads; the process must not wait for it.
    runtime.shutdown_background();
    performed
}

/// Performs the command and writes an object for a failure where programs read objects.
async fn dispatch(command: Command, host: &Host) -> Result<Exit, Failure> {
    let form = command.form();
    let done = execute(command, host).await;
    if let (Some(form), Err(failure)) = (form, &done)
        && !failure.is_in_output()
        && let Ok(line) = render::failure(form.error_type, failure)
    {
        // A reader who is gone or does not read has the exit code.
        let _ = tokio::time::timeout(PATIENCE, Console::new().write(&line)).await;
    }
    done
}

async fn execute(command: Command, host: &Host) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => run::run(*args, host).await,
        Command::Ask(args) => ask::ask(*args, host).await,
        Command::Demo(args) => demo::demo(args, host).await,
        Command::Tools(args) => tools::tools(&args, host).await,
        Command::Models(args) => models::models(&args, host).await,
        Command::Prompt(args) => prompt::prompt(args, host).await,
        Command::Patch(args) => patch::patch(args, host).await,
        Command::Mock(args) => match args.command {
            MockCommand::Serve(args) => mock::serve(args).await,
        },
        Command::Completions(args) => completions::completions(&args).await,
    }
}
