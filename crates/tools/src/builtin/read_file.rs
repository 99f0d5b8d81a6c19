//! `read_file`: lines with their numbers, or an image.

use std::error::Error as _;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, Metadata};
use pintle_llm::ImageData;
use schemars::JsonSchema;
use serde::Deserialize;

use super::content_kind::{ContentKind, SAMPLE};
use super::image::MAX_IMAGE;
use super::notebook::{self, MAX_NOTEBOOK};
use super::path::unreadable;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};
use crate::truncate::ShortenedText;

/// The default number of lines (loop specification, section 3.3).
const DEFAULT_LIMIT: usize = 2000;

/// Maximum number of characters that the model reads of a line, unless the line is read alone.
const MAX_LINE: usize = 2000;

stateless_tool! {
    /// Reads a file (loop specification, section 3.3).
    ///
    /// A line has the form `12 | text`, with its number right-aligned to the width of the last one, and without its
    /// line end and byte-order mark. Invalid UTF-8 is replaced by U+FFFD. If the file continues, the last line contains
    /// the `offset` of the rest. If several lines are read, the model gets at most 2,000 characters of each, and a hint
    /// how to read a long line completely; events contain the complete lines. PNG, JPEG, GIF and WebP files up to 3.75
    /// MB are returned as images. A notebook (`.ipynb`) is shown as the text of its cells and their outputs. Other
    /// binary files are refused with their kind and size.
    pub struct ReadFile;
}

/// The arguments of `read_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadFileInput {
    /// The absolute path of the file.
    #[schemars(description = "")]
    pub file_path: String,
    /// First line, counted from 1.
    pub offset: Option<usize>,
    /// Most lines. Default: 2000.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
}

impl Tool for ReadFile {
    type Input = ReadFileInput;

    tool_properties! {
        name: "read_file",
        description: include_str!("../../prompts/builtin/read_file.md"),
        effect: Effect::Read,
    }

    fn reads(&self, input: &ReadFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: ReadFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(read_file(cx, &input.file_path, input.offset, input.limit).await?.into_output())
    }
}

/// The content of a file. Tools with other output formats share it.
pub(crate) enum FileView {
    /// Lines of a text file.
    Lines(FileLines),
    /// The text of a notebook.
    Notebook(ShortenedText),
    /// An image, with a line of text about it.
    Image(String, ImageData),
    /// The file is empty; contains its path.
    Empty(String),
}

/// Consecutive lines of a text.
pub(crate) struct FileLines {
    text: String,
    /// The number of the first line, from 1.
    first: usize,
    /// The number of lines.
    count: usize,
    /// Whether the file has lines after these.
    has_more: bool,
}

/// Reads `limit` lines of a file from line `offset` on, or an image.
///
/// # Errors
///
/// A missing or binary file, or an offset past the end ([`OffsetPastEnd`]).
pub(crate) async fn read_file(
    cx: &ToolContext,
    path: &str,
    offset: Option<usize>,
    limit: Option<usize>,
) -> Result<FileView, ToolError> {
    let (env, file) = (cx.env.as_ref(), Path::new(path));
    let metadata = match env.metadata(file).await {
        Ok(metadata) => metadata,
        Err(error) => return Err(unreadable(env, file, error).await),
    };
    if metadata.is_dir() {
        let message =
            format!("{path} is a directory, not a file; list it, or find the files in it with a glob");
        return Err(ToolError::failed(message));
    }
    let sample = env.read(file, Some(0..SAMPLE)).await?;
    let (first, limit) = (offset.unwrap_or(1).max(1), limit.unwrap_or(DEFAULT_LIMIT));
    let view = match ContentKind::from_sample(&sample) {
        ContentKind::Image(media_type) => image(env, path, media_type, &metadata).await,
        ContentKind::Binary(kind) => Err(binary(path, kind, &metadata)),
        ContentKind::Text if notebook::is_notebook(path) && metadata.len <= MAX_NOTEBOOK => {
            match notebook::render(&env.read(file, None).await?) {
                Some(text) => cells(path, &text, first, limit),
                None => lines(env, path, first, limit, &metadata).await,
            }
        }
        ContentKind::Text => lines(env, path, first, limit, &metadata).await,
    }?;
    cx.files.read(env, file, &metadata, &sample).await;
    Ok(view)
}

/// Reads lines of a text file.
async fn lines(
    env: &dyn ExecutionEnvironment,
    path: &str,
    first: usize,
    limit: usize,
    metadata: &Metadata,
) -> Result<FileView, ToolError> {
    match env.read_file(Path::new(path), Some(first), Some(limit.saturating_add(1))).await {
        Ok(text) if text.is_empty() => past_the_end(env, path, first).await,
        Ok(text) => Ok(FileView::Lines(FileLines::new(text, first, limit))),
        Err(EnvError::NotText { .. }) => Err(binary(path, "binary data", metadata)),
        Err(error) => Err(error.into()),
    }
}

/// Shows lines of the text of a notebook.
fn cells(path: &str, text: &str, first: usize, limit: usize) -> Result<FileView, ToolError> {
    let mut shown = ShortenedText::default();
    let lines = text.lines().count();
    if lines == 0 {
        shown.push(&format!("[{path} is a notebook without cells]"));
        return Ok(FileView::Notebook(shown));
    }
    if first > lines {
        return Err(offset_past_end(path, first, lines));
    }
    let wanted: Vec<&str> = text.lines().skip(first - 1).take(limit.saturating_add(1)).collect();
    shown.push(
        "[A notebook, shown as text. Its file is JSON, so these lines are not what an edit would find there.]\n",
    );
    FileLines::new(wanted.join("\n"), first, limit).render(&mut shown);
    Ok(FileView::Notebook(shown))
}

async fn image(
    env: &dyn ExecutionEnvironment,
    path: &str,
    media_type: &str,
    metadata: &Metadata,
) -> Result<FileView, ToolError> {
    let size = metadata.len;
    if size > MAX_IMAGE {
        let message = format!(
            "{path} is an image ({media_type}) of {size} bytes; models take at most {MAX_IMAGE}. \
             Make a smaller copy and read that"
        );
        return Err(ToolError::failed(message));
    }
    let bytes = env.read(Path::new(path), None).await?;
    let text = format!("[{path}: {media_type}, {size} bytes, shown as an image]");
    Ok(FileView::Image(text, ImageData::data(bytes, media_type)))
}

fn binary(path: &str, kind: &str, metadata: &Metadata) -> ToolError {
    let size = metadata.len;
    let message = format!(
        "{path} is no text: {kind}, {size} bytes. Convert it or extract text from it with a command, and read the result"
    );
    ToolError::failed(message)
}

/// Handles an offset without lines: the file is empty, or shorter.
async fn past_the_end(
    env: &dyn ExecutionEnvironment,
    path: &str,
    offset: usize,
) -> Result<FileView, ToolError> {
    let lines =
        if offset > 1 { env.read_file(Path::new(path), None, None).await?.lines().count() } else { 0 };
    if lines == 0 {
        return Ok(FileView::Empty(path.to_owned()));
    }
    Err(offset_past_end(path, offset, lines))
}

fn offset_past_end(path: &str, offset: usize, lines: usize) -> ToolError {
    let message = format!("offset {offset} is past the end of {path}, which has {lines} lines");
    ToolError::invalid_arguments(message).with_source(OffsetPastEnd { lines })
}

/// An offset past the last line, for tools with a separate message for it.
#[derive(Debug, thiserror::Error)]
#[error("there are {lines} lines")]
pub(crate) struct OffsetPastEnd {
    /// The number of lines of the file.
    pub(crate) lines: usize,
}

impl OffsetPastEnd {
    /// Returns the cause of an error, if it has this type.
    pub(crate) fn from_error(error: &ToolError) -> Option<&Self> {
        error.source()?.downcast_ref()
    }
}

impl FileView {
    /// Returns the result of `read_file`.
    pub(crate) fn into_output(self) -> ToolOutput {
        let (text, image) = self.into_parts();
        let mut output = ToolOutput::from(text);
        output.images.extend(image);
        output
    }

    /// Returns the text in the format of `read_file`, and the image if there is one.
    pub(crate) fn into_parts(self) -> (ShortenedText, Option<ImageData>) {
        let mut text = ShortenedText::default();
        match self {
            Self::Lines(lines) => lines.render(&mut text),
            Self::Notebook(notebook) => return (notebook, None),
            Self::Image(about, image) => {
                text.push(&about);
                return (text, Some(image));
            }
            Self::Empty(path) => text.push(&empty(&path)),
        }
        (text, None)
    }
}

impl FileLines {
    /// Keeps the first `limit` lines of a text that starts with line `first` of a file.
    fn new(mut text: String, first: usize, limit: usize) -> Self {
        if first == 1 && text.starts_with('\u{FEFF}') {
            text.drain(..'\u{FEFF}'.len_utf8());
        }
        let available = text.lines().count().max(1);
        Self { text, first, count: available.min(limit), has_more: available > limit }
    }

    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// Returns the number of the last line.
    pub(crate) fn last(&self) -> usize {
        self.first.saturating_add(self.count).saturating_sub(1)
    }

    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Appends each line after a prefix that `prefix` writes for its number. Returns the number of the first line that
    /// is cut for the model.
    pub(crate) fn append_to(
        &self,
        text: &mut ShortenedText,
        prefix: impl Fn(&mut ShortenedText, usize),
    ) -> Option<usize> {
        /// The bytes of a usual prefix and a line feed.
        const PREFIX: usize = 8;
        text.reserve(self.text.len() + self.count * PREFIX);
        let max_chars = if self.count == 1 { usize::MAX } else { MAX_LINE };
        let mut first_cut = None;
        for (number, line) in (self.first..=self.last()).zip(self.text.lines()) {
            if number > self.first {
                text.push("\n");
            }
            prefix(text, number);
            if text.push_line(line, max_chars) {
                first_cut = first_cut.or(Some(number));
            }
        }
        first_cut
    }

    /// Appends the lines with their numbers, and notes on cut lines and on the rest of the file.
    fn render(&self, text: &mut ShortenedText) {
        let width = self.last().to_string().len();
        let first_cut = self.append_to(text, |text, number| {
            let _infallible = write!(text, "{number:width$} | ");
        });
        self.append_notes(text, first_cut);
    }

    /// Appends notes on cut lines and on the rest of the file.
    pub(crate) fn append_notes(&self, text: &mut ShortenedText, first_cut: Option<usize>) {
        if let Some(number) = first_cut {
            text.push_for_model(&format!(
                "\n\n[To read a long line whole, read it alone, such as with offset {number} and limit 1.]"
            ));
        }
        if self.has_more {
            let next = self.last().saturating_add(1);
            text.push(&format!("\n\n[More lines follow. To go on, read with offset {next}.]"));
        }
    }
}

/// Returns the text for an empty file.
pub(crate) fn empty(path: &str) -> String {
    format!("[{path} is empty]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::harness::Harness;

    /// Returns the full and the shortened text.
    fn rendered(text: &str, first: usize, limit: usize) -> (String, Option<String>) {
        let mut shown = ShortenedText::default();
        FileLines::new(text.to_owned(), first, limit).render(&mut shown);
        (shown.full, shown.shortened)
    }

    #[test]
    fn a_long_line_is_cut_for_the_model_unless_alone() {
        let long = "é".repeat(MAX_LINE + 7);
        let kept = "é".repeat(MAX_LINE);
        let (full, shortened) = rendered(&format!("a\n{long}\nb\n{long}\n"), 3, 3);
        assert_eq!(
            shortened.unwrap(),
            format!(
                "3 | a\n4 | {kept} [... 7 more characters]\n5 | b\n\n\
                 [To read a long line whole, read it alone, such as with offset 4 and limit 1.]\n\n\
                 [More lines follow. To go on, read with offset 6.]"
            )
        );
        assert_eq!(
            full,
            format!("3 | a\n4 | {long}\n5 | b\n\n[More lines follow. To go on, read with offset 6.]")
        );
        assert_eq!(rendered(&format!("{long}\n"), 1, 2000), (format!("1 | {long}"), None));
        assert_eq!(
            rendered(&format!("{long}\nb\n"), 4, 1),
            (format!("4 | {long}\n\n[More lines follow. To go on, read with offset 5.]"), None)
        );
        assert_eq!(rendered(&format!("{kept}\nb\n"), 1, 2), (format!("1 | {kept}\n2 | b"), None));
    }

    #[tokio::test]
    async fn events_carry_complete_lines() {
        let harness = Harness::new();
        let long = "x".repeat(MAX_LINE + 7);
        harness.write("a.txt", format!("a\n{long}\n"));
        let execution = harness.execute(ReadFile::new(), r#"{"file_path": "a.txt"}"#).await;
        assert_eq!(execution.output.to_text_lossy().unwrap(), format!("1 | a\n2 | {long}"));
        let shown = execution.result.text();
        assert!(shown.contains("xx [... 7 more characters]\n\n[To read a long line whole"), "{shown}");
    }

    #[tokio::test]
    async fn a_notebook_is_shown_as_its_cells() {
        let harness = Harness::new();
        let cells = r##"{"nbformat": 4, "cells": [
            {"cell_type": "markdown", "source": "# T"},
            {"cell_type": "code", "source": "x = 1"}
        ]}"##;
        harness.write("a.ipynb", cells);
        harness.write("empty.ipynb", r#"{"nbformat": 4, "cells": []}"#);
        harness.write("broken.ipynb", "{\"cells\": [\n");
        let read = |arguments| harness.call(ReadFile::new(), arguments);
        insta::assert_snapshot!(read(r#"{"file_path": "a.ipynb"}"#).await, @"
        ok: [A notebook, shown as text. Its file is JSON, so these lines are not what an edit would find there.]
        1 | %% cell 1 (markdown)
        2 | # T
        3 | %% cell 2 (code)
        4 | x = 1
        ");
        insta::assert_snapshot!(read(r#"{"file_path": "a.ipynb", "offset": 2, "limit": 1}"#).await, @"
        ok: [A notebook, shown as text. Its file is JSON, so these lines are not what an edit would find there.]
        2 | # T

        [More lines follow. To go on, read with offset 3.]
        ");
        let cases = [
            (
                r#"{"file_path": "a.ipynb", "offset": 5}"#,
                "error: Tool error (read_file): offset 5 is past the end of a.ipynb, which has 4 lines",
            ),
            (r#"{"file_path": "empty.ipynb"}"#, "ok: [empty.ipynb is a notebook without cells]"),
            (r#"{"file_path": "broken.ipynb"}"#, "ok: 1 | {\"cells\": ["),
        ];
        for (arguments, expected) in cases {
            assert_eq!(read(arguments).await, expected, "{arguments}");
        }
    }

    #[test]
    fn line_numbers_are_aligned_and_a_rest_is_announced() {
        assert_eq!(
            rendered("a\r\n\tb\n\nd", 8, 3).0,
            " 8 | a\n 9 | \tb\n10 | \n\n[More lines follow. To go on, read with offset 11.]"
        );
        assert_eq!(rendered("\u{FEFF}only\n", 1, 1).0, "1 | only");
        assert_eq!(rendered("\u{FEFF}\n", 1, 1).0, "1 | ");
    }

    #[tokio::test]
    async fn the_kind_of_file_decides_the_result() {
        let harness = Harness::new();
        harness.write("a.txt", "one\ntwo\nthree\n");
        harness.write("bom.txt", "\u{FEFF}x");
        harness.write("latin.txt", b"caf\xE9\n");
        harness.write("empty.txt", "");
        harness.write("late.bin", [b"text\n".repeat(4000), b"\0".to_vec()].concat());
        harness.write("doc.pdf", "%PDF-1.7\n");
        harness.write("sub/inner.txt", "");
        let read = |arguments| harness.call(ReadFile::new(), arguments);
        let cases = [
            (r#"{"file_path": "a.txt"}"#, "1 | one\n2 | two\n3 | three"),
            (
                r#"{"file_path": "a.txt", "offset": 2, "limit": 1}"#,
                "2 | two\n\n[More lines follow. To go on, read with offset 3.]",
            ),
            (r#"{"file_path": "a.txt", "offset": 0, "limit": 9}"#, "1 | one\n2 | two\n3 | three"),
            (r#"{"file_path": "./sub/../a.txt", "offset": 3}"#, "3 | three"),
            (r#"{"file_path": "bom.txt"}"#, "1 | x"),
            (r#"{"file_path": "latin.txt"}"#, "1 | caf\u{FFFD}"),
            (r#"{"file_path": "empty.txt"}"#, "[empty.txt is empty]"),
            (r#"{"file_path": "empty.txt", "offset": 7}"#, "[empty.txt is empty]"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(read(arguments).await, format!("ok: {expected}"), "{arguments}");
        }
        let cases = [
            (
                r#"{"file_path": "a.txt", "offset": 9}"#,
                "offset 9 is past the end of a.txt, which has 3 lines",
            ),
            (
                r#"{"file_path": "sub"}"#,
                "sub is a directory, not a file; list it, or find the files in it with a glob",
            ),
            (
                r#"{"file_path": "doc.pdf"}"#,
                "doc.pdf is no text: PDF document, 9 bytes. \
                 Convert it or extract text from it with a command, and read the result",
            ),
            (
                r#"{"file_path": "late.bin", "offset": 3999}"#,
                "late.bin is no text: binary data, 20001 bytes. \
                 Convert it or extract text from it with a command, and read the result",
            ),
            (r#"{"file_path": "docs.pdf"}"#, "DIR/docs.pdf does not exist. Did you mean doc.pdf?"),
            (r#"{"file_path": "no/b.txt"}"#, "DIR/no/b.txt does not exist"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(
                read(arguments).await,
                format!("error: Tool error (read_file): {expected}"),
                "{arguments}"
            );
        }
    }

    #[tokio::test]
    async fn an_image_is_returned_as_an_image() {
        let harness = Harness::new();
        let png = b"\x89PNG\r\n\x1a\nrest";
        harness.write("a.png", png);
        harness.write("big.gif", [&b"GIF89a"[..], &vec![0; MAX_IMAGE as usize]].concat());
        let execution = harness.execute(ReadFile::new(), r#"{"file_path": "a.png"}"#).await;
        assert_eq!(execution.result.text(), "[a.png: image/png, 12 bytes, shown as an image]");
        assert_eq!(execution.result.images, [ImageData::data(png.to_vec(), "image/png")]);
        assert_eq!(
            harness.call(ReadFile::new(), r#"{"file_path": "big.gif"}"#).await,
            "error: Tool error (read_file): big.gif is an image (image/gif) of 3750006 bytes; \
             models take at most 3750000. Make a smaller copy and read that"
        );
    }

    #[tokio::test]
    async fn the_default_is_two_thousand_lines() {
        let harness = Harness::new();
        harness.write("long.txt", "x\n".repeat(2001));
        let shown = harness.call(ReadFile::new(), r#"{"file_path": "long.txt"}"#).await;
        assert!(
            shown.ends_with("2000 | x\n\n[More lines follow. To go on, read with offset 2001.]"),
            "{shown}"
        );
        assert!(shown.starts_with("ok:    1 | x\n   2 | x\n"), "{shown}");
    }
}
