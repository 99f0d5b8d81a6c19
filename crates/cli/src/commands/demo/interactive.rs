//! `pintle demo --interactive`: a conversation with a scripted model, in a copy of the example project.
#![expect(clippy::disallowed_methods, reason = "the command replaces itself by a conversation")]

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv, STATE_VARIABLE};
use pintle_tui::console;
use pintle_tui::terminal::{self, PresentationChoice};

use super::{copy_project, temporary_directory};
use crate::exit::Exit;

/// Script of the model. It answers any message.
const SCRIPT: &str = include_str!("../../../demo/conversation.toml");

/// Flags of the conversation besides its files. Each call requires approval, so that the user can try its keys.
const FLAGS: [&str; 9] =
    ["--provider", "scripted", "--dialect", "anthropic", "--toolset", "spec", "--mode", "ask", "--script"];

/// Replaces this process with `pintle chat` with the scripted model. Project, script and sessions are in a temporary
/// directory, which is not removed.
pub(super) async fn converse(dir: Option<&Path>, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    terminal::require(process_env, PresentationChoice::default())?;
    let temporary = temporary_directory()?;
    let directory = match dir {
        Some(dir) => process_env::absolute(dir)?,
        None => temporary.join("roman"),
    };
    process_env.create_directory(&directory)?;
    copy_project(&process_env.local_environment(&directory)?, &directory).await?;
    let script = process_env.write_new(&temporary.join("script.toml"), SCRIPT)?;
    console::notice(&format!("the project is in {}", directory.display()));
    let program = std::env::current_exe().or_failed("cannot start the conversation")?;
    let mut chat = Command::new(program);
    chat.arg("chat").args(FLAGS).arg(script).arg("--dir").arg(&directory);
    // Sessions of the demonstration do not appear in the user's list.
    let error = chat.env(STATE_VARIABLE, temporary.join("state")).exec();
    Err(Failure::failed("cannot start the conversation").caused_by(&error))
}
