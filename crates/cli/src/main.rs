#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod arguments;
mod commands;
mod config;
mod exit;
mod hardening;
mod input;
mod output;
#[cfg(feature = "client")]
mod remote;
mod testkit_models;

use std::process::ExitCode;

use pintle_host::failure::OrFailure as _;
use pintle_host::process_env::ProcessEnv;
use pintle_tui::console;

use crate::arguments::{Arguments, Command};
use crate::exit::Exit;
use crate::exit::command_failure::CommandFailure;
use crate::testkit_models::TestkitModels;

/// Only argument of a process that opens a listener in the sandbox of a command.
#[cfg(target_os = "linux")]
const LISTEN_IN_SANDBOX: &str = "--listen-in-sandbox";

/// One thread drives the work; the other stays free for signals.
const WORKERS: usize = 2;

#[expect(clippy::disallowed_methods, reason = "the main function captures the environment of the process")]
fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if std::env::args_os().skip(1).eq([LISTEN_IN_SANDBOX]) {
        return match pintle_env::listen_in_sandbox() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let arguments = match arguments::command_line::parse(std::env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    let session = arguments.command.session();
    let process_env = ProcessEnv::capture()
        .with_notices(console::notices())
        .with_scripted_models(TestkitModels)
        .with_workspace(session.and_then(|args| args.environment.dir.as_deref()));
    #[cfg(target_os = "linux")]
    let process_env = process_env.with_sandbox_listener(LISTEN_IN_SANDBOX);
    // SAFETY: no other thread has been started yet.
    #[expect(unsafe_code, reason = "secrets leave the environment before there is another thread")]
    unsafe {
        hardening::hide_secrets(&process_env, &arguments.command);
    }
    #[cfg(feature = "compat")]
    let process_env = match arguments.command.is_codex_stream() {
        true => process_env.with_codex_key(),
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
    let result = runtime.block_on(commands::run_and_report(arguments, process_env));
    if is_interactive {
        console::discard_typeahead();
    }
    // A write to a reader that does not read may still be pending; do not wait for it.
    runtime.shutdown_background();
    result
}
