//! `read_file`: lines with their numbers, or an image.

use std::error::Error as _;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, Metadata};
use pintle_llm::ImageData;
use schemars::JsonSchema;
use serde::Deserialize;

use super::content_kind::{ContentKind, SAMPLE};
use super::notebook::{self, MAX_NOTEBOOK};
use super::path::unreadable;
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::tool::{Effect, Tool, ToolOutput};

/// The lines that are read if the call does not say (loop specification, section 3.3).
const DEFAULT_LIMIT: usize = 2000;

/// The most characters of a line that is read with others. A line that is read alone comes whole.
pub(crate) const MAX_LINE: usize = 2000;

/// The largest image, in bytes: in base64 it is 5 MB, the most that every provider takes.
const MAX_IMAGE: u64 = 3_750_000;

/// Reads a file (loop specification, section 3.3).
///
/// A line comes as `12 | text`, its number right-aligned to the width of the last one shown, without its line end and
/// without a byte-order mark; bytes that are not UTF-8 are shown as U+FFFD. When the file goes on, the last line says
/// at which `offset`. Where several lines are read, those of more than 2,000 characters are cut, and the result says how
/// to read one of them whole. PNG, JPEG, GIF and WebP come as images up to 3.75 MB. A notebook (`.ipynb`) comes as its
/// cells and their outputs, in lines of its own. Other binary files are refused by kind and size.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadFile(());

/// The arguments of `read_file`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadFileInput {
    /// The absolute path of the file.
    pub file_path: String,
    /// The number of the first line to read, counted from 1. Default: 1.
    pub offset: Option<usize>,
    /// The most lines to read. Default: 2000.
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
}

impl ReadFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for ReadFile {
    type Input = ReadFileInput;

    fn name(&self) -> &str {
        "read_file"
    }

    fn description(&self) -> &str {
        include_str!("read_file.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn reads(&self, input: &ReadFileInput) -> Vec<PathBuf> {
        vec![PathBuf::from(&input.file_path)]
    }

    async fn call(&self, input: ReadFileInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
        view(cx, &input.file_path, input.offset.unwrap_or(1), limit).await
    }
}

/// The beginning of a file as `read_file` shows it.
pub(super) async fn view_from_start(cx: &ToolContext, path: &str) -> Result<ToolOutput, ToolError> {
    view(cx, path, 1, DEFAULT_LIMIT).await
}

async fn view(cx: &ToolContext, path: &str, offset: usize, limit: usize) -> Result<ToolOutput, ToolError> {
    let env = cx.env.as_ref();
    let place = Path::new(path);
    let metadata = match env.metadata(place).await {
        Ok(metadata) => metadata,
        Err(error) => return Err(unreadable(env, place, error).await),
    };
    if metadata.is_dir() {
        let message =
            format!("{path} is a directory, not a file; list it, or find the files in it with a glob");
        return Err(ToolError::new(ToolErrorKind::Failed, message));
    }
    let sample = env.read(place, Some(0..SAMPLE)).await?;
    let shown = match ContentKind::of(&sample) {
        ContentKind::Image(media_type) => image(env, path, media_type, &metadata).await,
        ContentKind::Binary(kind) => Err(binary(path, kind, &metadata)),
        ContentKind::Text if notebook::is_notebook(path) && metadata.len <= MAX_NOTEBOOK => {
            match notebook::render(&env.read(place, None).await?) {
                Some(text) => cells(path, &text, offset, limit),
                None => lines(env, path, offset, limit, &metadata).await,
            }
        }
        ContentKind::Text => lines(env, path, offset, limit, &metadata).await,
    }?;
    cx.files.read(env, place, &metadata, &sample).await;
    Ok(shown)
}

/// Lines of a text file as they are.
async fn lines(
    env: &dyn ExecutionEnvironment,
    path: &str,
    offset: usize,
    limit: usize,
    metadata: &Metadata,
) -> Result<ToolOutput, ToolError> {
    match env.read_file(Path::new(path), Some(offset), Some(limit.saturating_add(1))).await {
        Ok(text) if text.is_empty() => past_the_end(env, path, offset).await,
        Ok(text) => Ok(ToolOutput::new(numbered(&text, offset.max(1), limit))),
        Err(EnvError::NotText { .. }) => Err(binary(path, "binary data", metadata)),
        Err(error) => Err(error.into()),
    }
}

/// Lines of what a notebook shows.
fn cells(path: &str, text: &str, offset: usize, limit: usize) -> Result<ToolOutput, ToolError> {
    let first = offset.max(1);
    let lines = text.lines().count();
    if lines == 0 {
        return Ok(ToolOutput::new(format!("[{path} is a notebook without cells]")));
    }
    if first > lines {
        return Err(beyond(path, first, lines));
    }
    let wanted: Vec<&str> = text.lines().skip(first - 1).take(limit.saturating_add(1)).collect();
    let note = "[A notebook, shown as text. Its file is JSON, so these lines are not what an edit would find there.]";
    Ok(ToolOutput::new(format!("{note}\n{}", numbered(&wanted.join("\n"), first, limit))))
}

async fn image(
    env: &dyn ExecutionEnvironment,
    path: &str,
    media_type: &str,
    metadata: &Metadata,
) -> Result<ToolOutput, ToolError> {
    let size = metadata.len;
    if size > MAX_IMAGE {
        let message = format!(
            "{path} is an image ({media_type}) of {size} bytes; models take at most {MAX_IMAGE}. \
             Make a smaller copy and read that"
        );
        return Err(ToolError::new(ToolErrorKind::Failed, message));
    }
    let bytes = env.read(Path::new(path), None).await?;
    let text = format!("[{path}: {media_type}, {size} bytes, shown as an image]");
    Ok(ToolOutput::new(text).with_image(ImageData::data(bytes, media_type)))
}

fn binary(path: &str, kind: &str, metadata: &Metadata) -> ToolError {
    let size = metadata.len;
    let message = format!(
        "{path} is no text: {kind}, {size} bytes. Convert it or extract text from it with a command, and read the result"
    );
    ToolError::new(ToolErrorKind::Failed, message)
}

/// There are no lines from `offset` on: because the file is empty, or because it is shorter.
async fn past_the_end(
    env: &dyn ExecutionEnvironment,
    path: &str,
    offset: usize,
) -> Result<ToolOutput, ToolError> {
    let lines =
        if offset > 1 { env.read_file(Path::new(path), None, None).await?.lines().count() } else { 0 };
    if lines == 0 {
        return Ok(ToolOutput::new(format!("[{path} is empty]")));
    }
    Err(beyond(path, offset, lines))
}

fn beyond(path: &str, offset: usize, lines: usize) -> ToolError {
    let message = format!("offset {offset} is past the end of {path}, which has {lines} lines");
    ToolError::new(ToolErrorKind::InvalidArguments, message).with_source(OffsetPastEnd { lines })
}

/// Nothing is left to read, for tools that count otherwise or say it in their own form.
#[derive(Debug, thiserror::Error)]
#[error("there are {lines} lines")]
pub(crate) struct OffsetPastEnd {
    /// As many as can be read.
    pub(crate) lines: usize,
}

impl OffsetPastEnd {
    /// That which an error tells of, if it does.
    pub(crate) fn of(error: &ToolError) -> Option<&Self> {
        error.source()?.downcast_ref()
    }
}

/// The first `limit` lines of `text` with their numbers from `first` on, and notes if there are more or some are cut.
fn numbered(text: &str, first: usize, limit: usize) -> String {
    let text = if first == 1 { text.strip_prefix('\u{FEFF}').unwrap_or(text) } else { text };
    let available = text.lines().count().max(1);
    let last = first.saturating_add(available.min(limit)).saturating_sub(1);
    let width = last.to_string().len();
    let mut shown = String::with_capacity(text.len() + available * (width + 3));
    let most = if last == first { usize::MAX } else { MAX_LINE };
    let mut first_cut = None;
    for (number, line) in (first..=last).zip(text.lines()) {
        let separator = if number == first { "" } else { "\n" };
        let (kept, rest) = cut(line, most);
        let _infallible = write!(shown, "{separator}{number:width$} | {kept}");
        if !rest.is_empty() {
            first_cut = first_cut.or(Some(number));
            let _infallible = write!(shown, " [... {} more characters]", rest.chars().count());
        }
    }
    if let Some(number) = first_cut {
        let _infallible = write!(
            shown,
            "\n\n[To read a long line whole, read it alone, such as with offset {number} and limit 1.]"
        );
    }
    if available > limit {
        let next = last.saturating_add(1);
        let _infallible = write!(shown, "\n\n[More lines follow. To go on, read with offset {next}.]");
    }
    shown
}

/// The first `most` characters of a line, and the rest.
fn cut(line: &str, most: usize) -> (&str, &str) {
    if line.len() <= most {
        return (line, "");
    }
    line.split_at(line.char_indices().nth(most).map_or(line.len(), |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Harness;

    #[test]
    fn a_long_line_is_cut_beside_others_and_whole_alone() {
        let long = "é".repeat(MAX_LINE + 7);
        let kept = "é".repeat(MAX_LINE);
        assert_eq!(
            numbered(&format!("a\n{long}\nb\n{long}\n"), 3, 3),
            format!(
                "3 | a\n4 | {kept} [... 7 more characters]\n5 | b\n\n\
                 [To read a long line whole, read it alone, such as with offset 4 and limit 1.]\n\n\
                 [More lines follow. To go on, read with offset 6.]"
            )
        );
        assert_eq!(numbered(&format!("{long}\n"), 1, 2000), format!("1 | {long}"));
        assert_eq!(
            numbered(&format!("{long}\nb\n"), 4, 1),
            format!("4 | {long}\n\n[More lines follow. To go on, read with offset 5.]")
        );
        assert_eq!(numbered(&format!("{kept}\nb\n"), 1, 2), format!("1 | {kept}\n2 | b"));
    }

    #[tokio::test]
    async fn a_notebook_comes_as_its_cells() {
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
        let rows = [
            (
                r#"{"file_path": "a.ipynb", "offset": 5}"#,
                "error: Tool error (read_file): offset 5 is past the end of a.ipynb, which has 4 lines",
            ),
            (r#"{"file_path": "empty.ipynb"}"#, "ok: [empty.ipynb is a notebook without cells]"),
            (r#"{"file_path": "broken.ipynb"}"#, "ok: 1 | {\"cells\": ["),
        ];
        for (arguments, expected) in rows {
            assert_eq!(read(arguments).await, expected, "{arguments}");
        }
    }

    #[test]
    fn numbers_are_aligned_and_the_rest_is_announced() {
        assert_eq!(
            numbered("a\r\n\tb\n\nd", 8, 3),
            " 8 | a\n 9 | \tb\n10 | \n\n[More lines follow. To go on, read with offset 11.]"
        );
        assert_eq!(numbered("\u{FEFF}only\n", 1, 1), "1 | only");
        assert_eq!(numbered("\u{FEFF}\n", 1, 1), "1 | ");
    }

    #[tokio::test]
    async fn what_is_there_decides_what_comes() {
        let harness = Harness::new();
        harness.write("a.txt", "one\ntwo\nthree\n");
        harness.write("bom.txt", "\u{FEFF}x");
        harness.write("latin.txt", b"caf\xE9\n");
        harness.write("empty.txt", "");
        harness.write("late.bin", [b"text\n".repeat(4000), b"\0".to_vec()].concat());
        harness.write("doc.pdf", "%PDF-1.7\n");
        harness.write("sub/inner.txt", "");
        let read = |arguments| harness.call(ReadFile::new(), arguments);
        let rows = [
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
        for (arguments, expected) in rows {
            assert_eq!(read(arguments).await, format!("ok: {expected}"), "{arguments}");
        }
        let rows = [
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
        for (arguments, expected) in rows {
            assert_eq!(
                read(arguments).await,
                format!("error: Tool error (read_file): {expected}"),
                "{arguments}"
            );
        }
    }

    #[tokio::test]
    async fn an_image_comes_as_an_image() {
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
    async fn two_thousand_lines_come_by_default() {
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
