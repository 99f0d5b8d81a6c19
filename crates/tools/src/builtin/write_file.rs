//! `write_file`: creates or replaces a file.

use std::path::{Path, PathBuf};

use pintle_env::EnvError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::diff::file_change;
use super::edit_file::keep_line_ends;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::intent::DeclaredChange;
use crate::known_files::Comparison;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{ChangeKind, Effect, FileChange, Tool, ToolOutput};

/// Maximum size of the lost lines in a note, in bytes. By default this tool's output is truncated at 1,000 characters.
const MAX_LOST: usize = 500;

stateless_tool! {
    /// Creates or replaces a file (loop specification, section 3.3).
    ///
    /// Parent directories are created. A replaced file keeps its byte-order mark and its line ends. If another process
    /// has modified the file since a call of the session read or wrote it, the result reports that and shows the lost
    /// lines.
    pub struct WriteFile;
}

/// The arguments of `write_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteFileInput {
    /// The absolute path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// The whole content of the file.
    #[schemars(description = "")]
    pub content: String,
}

impl Tool for WriteFile {
    type Input = WriteFileInput;

    tool_properties! {
        name: "write_file",
        description: include_str!("../../prompts/builtin/write_file.md"),
        effect: Effect::Write,
        declares_changes: true,
        // Writing the same content twice does no harm.
        repeatable: true,
        supports_dry_run: true,
    }

    fn writes(&self, input: &WriteFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: WriteFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let WriteFileInput { file_path, content } = input;
        let WriteReport { len, change, note } = write_file(&file_path, &content, cx).await?;
        let done = if change.kind == ChangeKind::Added { "created" } else { "overwrote an existing file" };
        let noun = if len == 1 { "byte" } else { "bytes" };
        let message = format!("Wrote {len} {noun} to {file_path} ({done}){note}");
        Ok(ToolOutput::new(message).with_change(change))
    }
}

/// The outcome of [`write_file`].
pub(crate) struct WriteReport {
    /// The size of the file, in bytes.
    pub(crate) len: usize,
    pub(crate) change: FileChange,
    /// A note about lost changes, which follows the report. Usually empty.
    pub(crate) note: String,
}

/// Writes a whole file. Tools with other names share it.
pub(crate) async fn write_file(
    file_path: &str,
    content: &str,
    cx: &ToolContext,
) -> Result<WriteReport, ToolError> {
    let (env, path) = (cx.env.as_ref(), Path::new(file_path));
    let old = match env.read(path, None).await {
        Ok(bytes) => OldContent::Bytes(bytes),
        Err(EnvError::NotFound { .. }) => OldContent::None,
        Err(EnvError::TooLarge { .. }) => OldContent::TooLarge,
        Err(error) => return Err(error.into()),
    };
    let before = match &old {
        OldContent::None => Comparison::Unknown,
        OldContent::TooLarge => cx.files.compare(env, path, None).await,
        OldContent::Bytes(bytes) => cx.files.compare(env, path, Some(bytes)).await,
    };
    let content = keep_line_ends(old.bytes().unwrap_or_default(), content);
    cx.declare(&[DeclaredChange { path, before: old.bytes(), after: Some(&content) }]).await?;
    env.write(path, &content).await?;
    cx.files.wrote(env, path, &content).await;
    let old_len = old.len();
    let change = file_change(file_path, old.into_bytes(), &content);
    let note = match before {
        Comparison::Unknown | Comparison::Current => String::new(),
        Comparison::Changed { len: seen } => lost_changes(file_path, seen, old_len, &change.diff),
    };
    Ok(WriteReport { len: content.len(), change, note })
}

/// The content of a file before it is written.
enum OldContent {
    None,
    Bytes(Vec<u8>),
    TooLarge,
}

impl OldContent {
    /// Returns the size in bytes, if it is known.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::None | Self::TooLarge => None,
        }
    }

    /// Returns the bytes for a declaration. Content that is too large for a later comparison matches nothing.
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::None => None,
            Self::Bytes(bytes) => Some(bytes),
            Self::TooLarge => Some(&[0]),
        }
    }

    /// Returns the bytes for a diff. A zero byte replaces content that is too large, since binary files have no diff.
    fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::None => None,
            Self::Bytes(bytes) => Some(bytes),
            Self::TooLarge => Some(vec![0]),
        }
    }
}

/// Returns the note about a file that another process had modified, with the first lost lines.
fn lost_changes(path: &str, seen: u64, replaced: Option<usize>, diff: &str) -> String {
    let replaced = replaced.map_or_else(|| "too many to hold".to_owned(), |len| len.to_string());
    let mut note = format!(
        "\nNote: {path} had been modified on disk since this session last read or wrote it ({seen} bytes then, \
         {replaced} when it was replaced), so changes that you have not seen may be lost."
    );
    let lost: Vec<&str> = diff.lines().skip(2).filter(|line| line.starts_with('-')).collect();
    if lost.is_empty() {
        return note;
    }
    let mut remaining = MAX_LOST;
    let fits = |line: &&&str| {
        let fits = line.len() < remaining;
        remaining = remaining.saturating_sub(line.len() + 1);
        fits
    };
    let shown: Vec<&str> = lost.iter().take_while(fits).copied().collect();
    note.push_str(" Lines that it no longer has:");
    shown.iter().for_each(|line| note.extend(["\n", line]));
    if let Some(more) = lost.len().checked_sub(shown.len()).filter(|more| *more > 0) {
        let noun = if more == 1 { "line" } else { "lines" };
        note.push_str(&format!("\n[... {more} more {noun}]"));
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{ApplyPatch, EditFile, ReadFile};
    use crate::tests::harness::Harness;

    #[tokio::test]
    async fn a_file_is_created_with_parents_and_replaced() {
        let harness = Harness::new();
        let created =
            harness.execute(WriteFile::new(), r#"{"file_path": "a/b/c.txt", "content": "é\n"}"#).await;
        assert_eq!(created.result.text(), "Wrote 3 bytes to a/b/c.txt (created)");
        assert_eq!(harness.text("a/b/c.txt"), "é\n");
        assert_eq!((created.changes.len(), &created.changes[0].kind), (1, &ChangeKind::Added));

        let replaced =
            harness.execute(WriteFile::new(), r#"{"file_path": "a/b/c.txt", "content": "x"}"#).await;
        assert_eq!(replaced.result.text(), "Wrote 1 byte to a/b/c.txt (overwrote an existing file)");
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

    #[tokio::test]
    async fn a_replaced_file_keeps_its_mark_and_line_ends() {
        for (old, content, expected) in [
            ("\u{feff}a\r\n", "b\nc\n", "\u{feff}b\r\nc\r\n"),
            ("\u{feff}a\n", "\u{feff}b\n", "\u{feff}b\n"),
            ("a\r\nb\r\n", "b\r\nc\n", "b\r\nc\r\n"),
            ("a\n", "b\r\nc\n", "b\nc\n"),
            ("a\r\nb\n", "b\nc\r\n", "b\nc\r\n"),
            ("a", "b\r\n", "b\r\n"),
            ("", "b\n", "b\n"),
        ] {
            let harness = Harness::new();
            harness.write("a", old);
            let arguments =
                serde_json::json!({"file_path": harness.path("a"), "content": content}).to_string();
            for is_native in [false, true] {
                harness.write("a", old);
                let result = match is_native {
                    false => harness.call(WriteFile::new(), &arguments).await,
                    true => harness.call(crate::native::anthropic::Write::new(), &arguments).await,
                };
                assert!(result.starts_with("ok: "), "{result}");
                assert_eq!(harness.text("a"), expected, "{old:?} {content:?}");
            }
        }
    }

    /// Writes `a` and returns what the model reads.
    async fn overwrite(harness: &Harness, cx: &ToolContext) -> String {
        let arguments = r#"{"file_path": "a", "content": "one\nmine\n"}"#;
        harness.execute_in(cx, WriteFile::new(), arguments).await.result.text()
    }

    const OVERWROTE: &str = "Wrote 9 bytes to a (overwrote an existing file)";

    #[tokio::test]
    async fn lost_changes_of_others_are_reported() {
        let harness = Harness::new();
        let cx = harness.context();
        harness.write("a", "one\n");
        harness.execute_in(&cx, ReadFile::new(), r#"{"file_path": "./a"}"#).await;
        harness.write("a", "one\nyours\n");
        insta::assert_snapshot!(overwrite(&harness, &cx).await, @"
        Wrote 9 bytes to a (overwrote an existing file)
        Note: a had been modified on disk since this session last read or wrote it (4 bytes then, 10 when it was replaced), so changes that you have not seen may be lost. Lines that it no longer has:
        -yours
        ");
        assert_eq!(harness.text("a"), "one\nmine\n");
        assert_eq!(overwrite(&harness, &cx).await, OVERWROTE, "its own content is known");
        harness.write("a", "ONE\nMINE\n");
        assert!(overwrite(&harness, &cx).await.contains("had been modified on disk"), "of the same length");
    }

    #[tokio::test]
    async fn a_partly_read_file_is_compared_by_time() {
        let harness = Harness::new();
        let cx = harness.context();
        harness.write("a", "line\n".repeat(10_000));
        harness.execute_in(&cx, ReadFile::new(), r#"{"file_path": "a", "limit": 1}"#).await;
        assert_eq!(overwrite(&harness, &cx).await, OVERWROTE);
        harness.write("a", "line\n".repeat(10_000));
        harness.execute_in(&cx, ReadFile::new(), r#"{"file_path": "a", "limit": 1}"#).await;
        harness.write("a", "longer line\n".repeat(10_000));
        let note = overwrite(&harness, &cx).await;
        assert!(note.contains("(50000 bytes then, 120000 when it was replaced)"), "{note}");
        assert!(note.starts_with(OVERWROTE) && note.ends_with("more lines]"), "{note}");
    }

    #[tokio::test]
    async fn unread_and_own_content_is_replaced_silently() {
        let harness = Harness::new();
        let cx = harness.context();
        harness.write("a", "one\n");
        assert_eq!(overwrite(&harness, &cx).await, OVERWROTE, "never read");
        let edit = r#"{"file_path": "a", "old_string": "mine", "new_string": "more"}"#;
        harness.execute_in(&cx, EditFile::new(), edit).await;
        assert_eq!(overwrite(&harness, &cx).await, OVERWROTE, "edited by the session");
        let patch = r#"{"patch": "*** Begin Patch\n*** Update File: a\n@@\n-mine\n+more\n*** End Patch"}"#;
        harness.execute_in(&cx, ApplyPatch::new(), patch).await;
        assert_eq!(harness.text("a"), "one\nmore\n");
        assert_eq!(overwrite(&harness, &cx).await, OVERWROTE, "patched by the session");
        // An edit does not show the other lines of a changed file.
        harness.write("a", "one\nmine\nyours\n");
        harness.execute_in(&cx, EditFile::new(), edit).await;
        assert!(overwrite(&harness, &cx).await.contains("-yours"), "changed by others, then edited");
    }

    #[tokio::test]
    async fn failed_writes_explain_themselves() {
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
