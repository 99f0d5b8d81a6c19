//! `read_many_files`: reads several files in one call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _};
use pintle_llm::{ImageData, MediaSource};
use schemars::JsonSchema;
use serde::Deserialize;

use super::path::{display_path, search_base};
use super::read_file::{FileView, read_file};
use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::known_files::canonical_path;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, ReadExtent, Tool, ToolOutput};
use crate::truncate::ShortenedText;

/// Maximum number of files per call.
const MAX_FILES: usize = 100;

/// Total size in bytes, including images, above which no further file is read.
const MAX_BYTES: usize = 8 << 20;

stateless_tool! {
    /// Reads several files, each like `read_file` (loop specification, section 3.6).
    ///
    /// An entry with a wildcard is a glob, unless a file has that name. A link found by a glob is followed only to
    /// targets below the glob's base, since gates have judged only those. At most 100 files are read, and none after 8
    /// MiB. A file that cannot be read has an error in its section. The call fails only if no file can be read, or if
    /// the environment is lost.
    pub struct ReadManyFiles;
}

/// The arguments of `read_many_files`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReadManyFilesInput {
    /// Absolute paths or globs.
    #[schemars(length(min = 1))]
    pub paths: Vec<String>,
}

impl Tool for ReadManyFiles {
    type Input = ReadManyFilesInput;

    tool_properties! {
        name: "read_many_files",
        description: include_str!("../../prompts/builtin/read_many_files.md"),
        effect: Effect::Read,
        kind: "read_file",
    }

    /// A name with wildcards is read as a file if such a file exists, and as a glob otherwise.
    fn reads(&self, input: &ReadManyFilesInput) -> Vec<PathBuf> {
        let searched = input.paths.iter().filter(|path| is_glob(path)).map(|path| search_base(None, path));
        searched.chain(input.paths.iter().map(PathBuf::from)).collect()
    }

    fn read_extent(&self, _input: &ReadManyFilesInput) -> ReadExtent {
        ReadExtent::Searched
    }

    async fn call(&self, input: ReadManyFilesInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let env = cx.env.as_ref();
        let entries = expand(env, &input.paths).await?;
        let mut sections = Sections::default();
        for entry in entries.iter().take(MAX_FILES) {
            if sections.bytes > MAX_BYTES {
                break;
            }
            match read(cx, entry).await {
                Ok(view) => sections.push(entry, view),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => sections.push_error(entry, &error),
            }
        }
        Ok(sections.into_output(entries.len()))
    }
}

/// The sections of the result.
#[derive(Default)]
struct Sections {
    text: ShortenedText,
    images: Vec<ImageData>,
    /// The total size of texts and images.
    bytes: usize,
    count: usize,
    failed: usize,
}

impl Sections {
    fn push(&mut self, entry: &RequestedFile, view: FileView) {
        let (text, image) = view.into_parts();
        self.bytes += image.as_ref().map_or(0, size);
        self.images.extend(image);
        self.push_text(entry, &text);
    }

    fn push_error(&mut self, entry: &RequestedFile, error: &ToolError) {
        self.failed += 1;
        let mut text = ShortenedText::default();
        text.push(&format!("[Error: {}]", error.for_model()));
        self.push_text(entry, &text);
    }

    fn push_text(&mut self, entry: &RequestedFile, text: &ShortenedText) {
        let separator = if self.count == 0 { "" } else { "\n\n" };
        self.text.push(&format!("{separator}==> {} <==\n", entry.name()));
        self.text.append(text);
        self.bytes += text.full.len();
        self.count += 1;
    }

    /// Returns the result of a call that named `entries` files.
    fn into_output(mut self, entries: usize) -> ToolOutput {
        if let Some(left) = entries.checked_sub(self.count).filter(|left| *left > 0) {
            self.text.push(&format!(
                "\n\n[{left} more files are not shown: one call reads at most {MAX_FILES}, and stops after {} MiB.]",
                MAX_BYTES >> 20
            ));
        }
        let mut output = ToolOutput::from(self.text).with_error(self.failed == self.count);
        output.images = self.images;
        output
    }
}

/// A file of the call, or a pattern without files.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RequestedFile {
    File(String),
    /// A file found by a name with wildcards, with the canonical path of the base.
    Found(String, PathBuf),
    /// A glob that matches no file.
    NoMatch(String),
}

impl RequestedFile {
    fn name(&self) -> &str {
        match self {
            Self::File(name) | Self::Found(name, _) | Self::NoMatch(name) => name,
        }
    }
}

/// Returns each file once, in the order of the arguments; the files of a glob are sorted by path.
async fn expand(env: &dyn ExecutionEnvironment, paths: &[String]) -> Result<Vec<RequestedFile>, ToolError> {
    let mut entries = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        for entry in matches(env, path).await? {
            if seen.insert(env.resolve(Path::new(entry.name()))) {
                entries.push(entry);
            }
        }
    }
    Ok(entries)
}

/// Returns whether an entry may be a glob. A backslash alone does not make a name a glob.
fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

async fn matches(env: &dyn ExecutionEnvironment, path: &str) -> Result<Vec<RequestedFile>, ToolError> {
    let file = || Ok(vec![RequestedFile::File(path.to_owned())]);
    if !is_glob(path) {
        return file();
    }
    match env.file_exists(Path::new(path)).await {
        Ok(false) => {}
        // File names may contain brackets. Gates have judged only the base.
        Ok(true) => {
            let base = canonical_path(env, &search_base(None, path)).await;
            return Ok(vec![RequestedFile::Found(path.to_owned(), base)]);
        }
        Err(error @ (EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. })) => {
            return Err(error.into());
        }
        // Reading it fails in the same way, in its own section.
        Err(_unreadable) => return file(),
    }
    let found = match env.glob(path, Path::new(".")).await {
        Ok(found) => found,
        Err(error @ (EnvError::EnvironmentLost { .. } | EnvError::Unreachable { .. })) => {
            return Err(error.into());
        }
        // The section of the entry reports that no file matches. The other entries are read.
        Err(_invalid) => Vec::new(),
    };
    if found.is_empty() {
        return Ok(vec![RequestedFile::NoMatch(path.to_owned())]);
    }
    let base = canonical_path(env, &search_base(None, path)).await;
    let mut entries: Vec<RequestedFile> =
        found.iter().map(|path| RequestedFile::Found(display_path(env, path), base.clone())).collect();
    entries.sort();
    Ok(entries)
}

async fn read(cx: &ToolContext, entry: &RequestedFile) -> Result<FileView, ToolError> {
    let env = cx.env.as_ref();
    match entry {
        RequestedFile::File(path) => read_file(cx, path, None, None).await,
        RequestedFile::Found(path, base) => {
            let target = canonical_path(env, Path::new(path)).await;
            if !target.starts_with(base) {
                let message = format!(
                    "{path} is a link to {}, outside of what the glob searches; to read it, name it",
                    target.display()
                );
                return Err(ToolError::new(ToolErrorKind::PermissionDenied, message));
            }
            read_file(cx, path, None, None).await
        }
        RequestedFile::NoMatch(pattern) => {
            Err(ToolError::new(ToolErrorKind::NotFound, format!("no file matches {pattern}")))
        }
    }
}

fn size(image: &ImageData) -> usize {
    match &image.source {
        MediaSource::Data(bytes) => bytes.as_bytes().len(),
        MediaSource::Url(text) | MediaSource::Path(text) => text.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::harness::Harness;

    #[tokio::test]
    async fn each_file_has_a_section_and_so_has_each_error() {
        let harness = Harness::new();
        harness.write("a.txt", "one\ntwo\n");
        harness.write("src/x.py", "x\n");
        harness.write("src/y.py", "y\n");
        harness.write("odd[1].txt", "odd\n");
        harness.write("i.png", b"\x89PNG\r\n\x1a\n");
        let arguments =
            r#"{"paths": ["a.txt", "missing", "src/*.py", "./a.txt", "*.rs", "odd[1].txt", "i.png"]}"#;
        let execution = harness.execute(ReadManyFiles::new(), arguments).await;
        insta::assert_snapshot!(harness.mask(&execution.result.text()), @"
        ==> a.txt <==
        1 | one
        2 | two

        ==> missing <==
        [Error: DIR/missing does not exist]

        ==> src/x.py <==
        1 | x

        ==> src/y.py <==
        1 | y

        ==> *.rs <==
        [Error: no file matches *.rs]

        ==> odd[1].txt <==
        1 | odd

        ==> i.png <==
        [i.png: image/png, 8 bytes, shown as an image]
        ");
        assert!(!execution.result.is_error);
        assert_eq!(execution.result.images.len(), 1);
    }

    #[test]
    fn names_are_declared_as_globs_and_as_files() {
        let input =
            ReadManyFilesInput { paths: ["app/[slug]/key", r"k\eys/*", r"a\b"].map(Into::into).into() };
        let expected = ["./app", ".", "app/[slug]/key", r"k\eys/*", r"a\b"].map(PathBuf::from);
        assert_eq!(Tool::reads(&ReadManyFiles::new(), &input), expected);
    }

    #[tokio::test]
    async fn a_glob_does_not_follow_links_outside() {
        let (harness, outside) = (Harness::new(), Harness::new());
        harness.write("README.md", "here\n");
        harness.write("docs/a.md", "a\n");
        outside.write("key", "secret\n");
        for (target, link) in [(outside.path("key"), "docs/b.md"), (harness.path("README.md"), "docs/c.md")] {
            std::os::unix::fs::symlink(target, harness.path(link)).unwrap();
        }
        let read = async |paths: &str| {
            let answer = harness.call(ReadManyFiles::new(), &format!(r#"{{"paths": {paths}}}"#)).await;
            answer.replace(&outside.path("key").canonicalize().unwrap().display().to_string(), "OUTSIDE")
        };
        insta::assert_snapshot!(read(r#"["docs/*.md"]"#).await, @"
        ok: ==> docs/a.md <==
        1 | a

        ==> docs/b.md <==
        [Error: docs/b.md is a link to OUTSIDE, outside of what the glob searches; to read it, name it]

        ==> docs/c.md <==
        [Error: docs/c.md is a link to DIR/README.md, outside of what the glob searches; to read it, name it]
        ");
        assert_eq!(read(r#"["docs/b.md"]"#).await, "ok: ==> docs/b.md <==\n1 | secret", "as a gate can see");
    }

    #[tokio::test]
    async fn the_call_fails_if_no_file_can_be_read() {
        let harness = Harness::new();
        assert_eq!(
            harness.call(ReadManyFiles::new(), r#"{"paths": ["missing"]}"#).await,
            "error: ==> missing <==\n[Error: DIR/missing does not exist]"
        );
    }

    #[tokio::test]
    async fn files_above_the_limit_are_counted() {
        let harness = Harness::new();
        for number in 0..MAX_FILES + 2 {
            harness.write(&format!("{number}.txt"), "");
        }
        let answer = harness.call(ReadManyFiles::new(), r#"{"paths": ["*.txt"]}"#).await;
        assert_eq!(answer.matches(" is empty]").count(), MAX_FILES);
        assert!(
            answer.ends_with(
                "[2 more files are not shown: one call reads at most 100, and stops after 8 MiB.]"
            ),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn no_file_is_read_after_the_byte_limit() {
        let harness = Harness::new();
        for number in 0..4 {
            harness.write(&format!("{number}.json"), "x".repeat(MAX_BYTES / 2));
        }
        let execution = harness.execute(ReadManyFiles::new(), r#"{"paths": ["*.json"]}"#).await;
        let text = execution.output.to_text_lossy().unwrap();
        assert_eq!(text.matches("==> ").count(), 2);
        assert!(text.contains("[2 more files are not shown"));
    }
}
