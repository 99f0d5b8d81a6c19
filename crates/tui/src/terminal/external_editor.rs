//! Edits a text of several lines in the user's editor.

use std::io::Write as _;

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};

use crate::user_editor;

/// Editor if no variable names one.
const DEFAULT: &str = "vi";

/// Opens a text in the user's editor, and returns it without the line end that editors add.
///
/// If the editor cannot be started or fails, the text is not lost.
pub(super) fn edit(text: &str, process_env: &ProcessEnv) -> Result<String, Failure> {
    let editor = user_editor::from_env(process_env).unwrap_or_else(|| DEFAULT.to_owned());
    // Editors choose the file type by the name.
    let file = tempfile::Builder::new().prefix("pintle-").suffix(".md").tempfile();
    let mut file = file.or_failed("cannot write the text for the editor")?;
    file.write_all(text.as_bytes()).or_failed("cannot write the text for the editor")?;
    user_editor::open(&editor, file.path(), process_env)?;
    let edited = process_env::read_text("text of the editor", file.path())?;
    Ok(edited.strip_suffix('\n').unwrap_or(&edited).to_owned())
}
