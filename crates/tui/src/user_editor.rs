//! The editor of the user, which has the terminal until it ends.
#![expect(clippy::disallowed_methods, reason = "the editor of the user is no tool, and has the terminal")]

use std::path::Path;
use std::process::Command;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;

/// Returns the editor that a variable names.
pub(crate) fn from_env(process_env: &ProcessEnv) -> Option<String> {
    process_env.variable("VISUAL").or_else(|| process_env.variable("EDITOR"))
}

/// Returns the editor that a variable names.
///
/// # Errors
///
/// No variable names one.
pub fn require(process_env: &ProcessEnv) -> Result<String, Failure> {
    from_env(process_env).ok_or_else(|| Failure::usage("no editor: expected one in VISUAL or EDITOR"))
}

/// Opens a file in an editor, whose command may include arguments, as in git. It starts outside of the workspace.
///
/// Blocks until the editor has ended. Fails if it cannot be started or ends with an error.
pub fn open(editor: &str, path: &Path, process_env: &ProcessEnv) -> Result<(), Failure> {
    let script = format!("{editor} \"$1\"");
    let path = std::path::absolute(path).or_failed("cannot start the editor")?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script, "pintle"]).arg(path);
    process_env.prepare_unsandboxed(&mut command);
    let status = command.status().or_failed("cannot start the editor")?;
    if status.success() { Ok(()) } else { Err(Failure::failed(format!("the editor failed ({status})"))) }
}
