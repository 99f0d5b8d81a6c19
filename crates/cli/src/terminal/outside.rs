//! The editor of the user, for a text of several lines.

use std::io::Write as _;

use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};
use crate::user_editor;

/// Editor where no variable names one.
const DEFAULT: &str = "vi";

/// Has a text edited, and returns it without the line end that editors add.
///
/// An editor that cannot be started or fails loses nothing.
pub(super) fn edit(text: &str, process_env: &ProcessEnv) -> Result<String, Failure> {
    let editor = user_editor::named(process_env).unwrap_or_else(|| DEFAULT.to_owned());
    // Editors know by the name how to treat it.
    let file = tempfile::Builder::new().prefix("pintle-").suffix(".md").tempfile();
    let mut file = file.or_failed("cannot write the text for the editor")?;
    file.write_all(text.as_bytes()).or_failed("cannot write the text for the editor")?;
    user_editor::open(&editor, file.path(), process_env)?;
    let edited = process_env::read_text("text of the editor", file.path())?;
    Ok(edited.strip_suffix('\n').unwrap_or(&edited).to_owned())
}
