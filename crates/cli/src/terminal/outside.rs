//! The editor of the user, for a text of several lines.
#![expect(
    clippy::disallowed_methods,
    reason = "the editor of the user has the terminal, as no command of a model does"
)]

use std::io::Write as _;
use std::process::Command;

use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};

/// Editor where no variable names one.
const DEFAULT: &str = "vi";

/// Has a text edited, and returns it without the line end that editors add.
///
/// # Errors
///
/// A failure if the editor cannot be started or fails: nothing is lost then.
pub(super) fn edit(text: &str, process_env: &ProcessEnv) -> Result<String, Failure> {
    let editor = process_env.variable("VISUAL").or_else(|| process_env.variable("EDITOR"));
    let editor = editor.unwrap_or_else(|| DEFAULT.to_owned());
    // Editors know by the name how to treat it.
    let file = tempfile::Builder::new().prefix("pintle-").suffix(".md").tempfile();
    let mut file = file.or_failed("cannot write the text for the editor")?;
    file.write_all(text.as_bytes()).or_failed("cannot write the text for the editor")?;
    // The variable may have arguments, as it has for git.
    let script = format!("{editor} \"$1\"");
    let status = Command::new("/bin/sh").args(["-c", &script, "pintle"]).arg(file.path()).status();
    let status = status.or_failed("cannot start the editor")?;
    if !status.success() {
        return Err(Failure::failed(format!("the editor failed ({status}): the text is as it was")));
    }
    let edited = process_env::read_text("text of the editor", file.path())?;
    Ok(edited.strip_suffix('\n').unwrap_or(&edited).to_owned())
}
