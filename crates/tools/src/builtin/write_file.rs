//! `write_file`: a whole file at once.

use std::path::{Path, PathBuf};

use pintle_env::EnvError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::diff::file_change;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::known_files::Comparison;
use crate::tool::{ChangeKind, Effect, FileChange, Tool, ToolOutput};

/// The most bytes of lost lines that a note shows: an output of this tool is cut at 1,000 characters by default.
const MAX_LOST: usize = 500;

/// Creates or replaces a file (loop specification, section 3.3).
///
/// Parents are created; the content is written as it is given, without a look at the line ends of what was there.
/// If the file has been modified since a call of the session read or wrote it, the result says so, with the lines that are lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteFile(());

/// The arguments of `write_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteFileInput {
    /// The absolute path of the file.
    pub file_path: String,
    /// The whole content of the file.
    pub content: String,
}

impl WriteFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for WriteFile {
    type Input = WriteFileInput;

    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        include_str!("write_file.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    fn repeatable(&self) -> bool {
        // The same content is there after the second time as after the first.
        true
    }

    fn writes(&self, input: &WriteFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    fn supports_dry_run(&self) -> bool {
        true
    }

    async fn call(&self, input: WriteFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let WriteFileInput { file_path, content } = input;
        let Written { change, note } = write_file(&file_path, &content, cx).await?;
        let done = if change.kind == ChangeKind::Added { "created" } else { "overwrote an existing file" };
        let message = format!("Wrote {} bytes to {file_path} ({done}){note}", content.len());
        Ok(ToolOutput::new(message).with_change(change))
    }
}

/// A file that was written.
pub(crate) struct Written {
    pub(crate) change: FileChange,
    /// A line that follows the report: what the model has to know of the content that was replaced. Usually empty.
    pub(crate) note: String,
}

/// Writes a whole file. Tools that call it what they like share it.
pub(crate) async fn write_file(
    file_path: &str,
    content: &str,
    cx: &ToolContext,
) -> Result<Written, ToolError> {
    let (env, path) = (cx.env.as_ref(), Path::new(file_path));
    let old = match env.read(path, None).await {
        Ok(bytes) => Found::Content(bytes),
        Err(EnvError::NotFound { .. }) => Found::Nothing,
        Err(EnvError::TooLarge { .. }) => Found::TooLarge,
        Err(error) => return Err(error.into()),
    };
    let before = match &old {
        Found::Nothing => Comparison::Unknown,
        Found::TooLarge => cx.files.compare(env, path, None).await,
        Found::Content(bytes) => cx.files.compare(env, path, Some(bytes)).await,
    };
    env.write(path, content.as_bytes()).await?;
    cx.files.wrote(env, path, content.as_bytes()).await;
    let len = old.len();
    let change = file_change(file_path, old.into_bytes(), content.as_bytes());
    let note = match before {
        Comparison::Unknown | Comparison::Current => String::new(),
        Comparison::Changed { len: seen } => unseen(file_path, seen, len, &change.diff),
    };
    Ok(Written { change, note })
}

/// What is at a path before it is written.
enum Found {
    Nothing,
    Content(Vec<u8>),
    TooLarge,
}

impl Found {
    /// The size in bytes, if it is known.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Content(bytes) => Some(bytes.len()),
            Self::Nothing | Self::TooLarge => None,
        }
    }

    /// The bytes for a diff. A zero byte, which makes none, is in for what is too long to hold.
    fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Nothing => None,
            Self::Content(bytes) => Some(bytes),
            Self::TooLarge => Some(vec![0]),
        }
    }
}

/// The note on a file that someone else had modified, with the first of the lines that it has lost.
fn unseen(path: &str, seen: u64, replaced: Option<usize>, diff: &str) -> String {
    let replaced = replaced.map_or_else(|| "too many to hold".to_owned(), |len| len.to_string());
    let mut note = format!(
        "\nNote: {path} had been modified on disk since this session last read or wrote it ({seen} bytes then, \
         {replaced} when it was replaced), so changes that you have not seen may be lost."
    );
    let lost: Vec<&str> = diff.lines().skip(2).filter(|line| line.starts_with('-')).collect();
    if lost.is_empty() {
        return note;
    }
    let mut room = MAX_LOST;
    let fits = |line: &&&str| {
        let fits = line.len() < room;
        room = room.saturating_sub(line.len() + 1);
        fits
    };
    let shown: Vec<&str> = lost.iter().take_while(fits).copied().collect();
    note.push_str(" Lines that it no longer has:");
    shown.iter().for_each(|line| note.extend(["\n", line]));
    if let Some(more) = lost.len().checked_sub(shown.len()).filter(|more| *more > 0) {
        note.push_str(&format!("\n[... {more} more lines]"));
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Harness;
    use crate::builtin::{ApplyPatch, EditFile, ReadFile};

    #[tokio::test]
    async fn a_file_is_created_with_its_parents_and_replaced_whole() {
        let harness = Harness::new();
        let made = harness.execute(WriteFile::new(), r#"{"file_path": "a/b/c.txt", "content": "é\n"}"#).await;
        assert_eq!(made.result.text(), "Wrote 3 bytes to a/b/c.txt (created)");
        assert_eq!(harness.text("a/b/c.txt"), "é\n");
        assert_eq!((made.changes.len(), &made.changes[0].kind), (1, &ChangeKind::Added));

        let replaced = harness.execute(WriteFile::new(), r#"{"file_path": "a/b/c.txt", "content": "x"}"#).await;
        assert_eq!(replaced.result.text(), "Wrote 1 bytes to a/b/c.txt (overwrote an existing file)");
        assert_eq!(harness.text("a/b/c.txt"), "x");
        assert_eq!(replaced.changes[0].kind, ChangeKind::Modified);
        insta::assert_snapshot!(replaced.changes[0].diff, @r"
        --- a/a/b/c.txt
        +++ b/a/b/c.txt
        @@ -1 +1 @@
        -é
        +x
        \ No newline at end of file
        ");
    }

    /// What the model is told of writing `a` whole in a session that has made the calls before.
    async fn told(harness: &Harness, cx: &ToolContext) -> String {
        let arguments = r#"{"file_path": "a", "content": "one\nmine\n"}"#;
        harness.execute_in(cx, WriteFile::new(), arguments).await.result.text()
    }

    const OVERWROTE: &str = "Wrote 9 bytes to a (overwrote an existing file)";

    #[tokio::test]
    async fn a_file_that_has_changed_since_it_was_read_is_said_to_be_replaced() {
        let harness = Harness::new();
        let cx = harness.context();
        harness.write("a", "one\n");
        harness.execute_in(&cx, ReadFile::new(), r#"{"file_path": "./a"}"#).await;
        harness.write("a", "one\nyours\n");
        insta::assert_snapshot!(told(&harness, &cx).await, @"
        Wrote 9 bytes to a (overwrote an existing file)
        Note: a had been modified on disk since this session last read or wrote it (4 bytes then, 10 when it was replaced), so changes that you have not seen may be lost. Lines that it no longer has:
        -yours
        ");
        assert_eq!(harness.text("a"), "one\nmine\n");
        assert_eq!(told(&harness, &cx).await, OVERWROTE, "its own content is known");
        harness.write("a", "ONE\nMINE\n");
        assert!(told(&harness, &cx).await.contains("had been modified on disk"), "of the same length");
    }

    #[tokio::test]
    async fn a_large_file_of_which_a_part_was_read_is_known_by_its_time() {
        let harness = Harness::new();
        let cx = harness.context();
        harness.write("a", "line\n".repeat(10_000));
        harness.execute_in(&cx, ReadFile::new(), r#"{"file_path": "a", "limit": 1}"#).await;
        assert_eq!(told(&harness, &cx).await, OVERWROTE);
        harness.write("a", "line\n".repeat(10_000));
        harness.execute_in(&cx, ReadFile::new(), r#"{"file_path": "a", "limit": 1}"#).await;
        harness.write("a", "longer line\n".repeat(10_000));
        let told = told(&harness, &cx).await;
        assert!(told.contains("(50000 bytes then, 120000 when it was replaced)"), "{told}");
        assert!(told.starts_with(OVERWROTE) && told.ends_with("more lines]"), "{told}");
    }

    #[tokio::test]
    async fn what_the_session_has_not_read_or_has_changed_itself_is_replaced_without_a_note() {
        let harness = Harness::new();
        let cx = harness.context();
        harness.write("a", "one\n");
        assert_eq!(told(&harness, &cx).await, OVERWROTE, "never read");
        let edit = r#"{"file_path": "a", "old_string": "mine", "new_string": "more"}"#;
        harness.execute_in(&cx, EditFile::new(), edit).await;
        assert_eq!(told(&harness, &cx).await, OVERWROTE, "edited by the session");
        let patch = r#"{"patch": "*** Begin Patch\n*** Update File: a\n@@\n-mine\n+more\n*** End Patch"}"#;
        harness.execute_in(&cx, ApplyPatch::new(), patch).await;
        assert_eq!(harness.text("a"), "one\nmore\n");
        assert_eq!(told(&harness, &cx).await, OVERWROTE, "patched by the session");
        // An edit of a file that has changed shows nothing of the other lines.
        harness.write("a", "one\nmine\nyours\n");
        harness.execute_in(&cx, EditFile::new(), edit).await;
        assert!(told(&harness, &cx).await.contains("-yours"), "changed by others, then edited");
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_said() {
        let harness = Harness::new();
        harness.write("dir/file", "");
        for (path, expected) in [
            ("dir", "DIR/dir is a directory, expected a file"),
            ("dir/file/below", "DIR/dir/file/below is not a directory"),
        ] {
            let arguments = format!(r#"{{"file_path": "{path}", "content": ""}}"#);
            assert_eq!(
                harness.call(WriteFile::new(), &arguments).await,
                format!("error: Tool error (write_file): {expected}")
            );
        }
    }
}
