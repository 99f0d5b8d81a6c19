//! Searches the lines of a file.

use std::{
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
};

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};

use super::{GrepFile, GrepLine, GrepMode, GrepRequest, pattern::FileFilter};
use crate::{
    blocking::{CancelFlag, blocking},
    error::EnvError,
};

/// Maximum length of a reported line, in bytes.
const MAX_LINE: usize = 64 << 10;

/// Memory limit for one line during the search.
const MAX_LINE_BUFFER: usize = 64 << 20;

/// A compiled [`GrepRequest`].
#[derive(Clone, Debug)]
pub(crate) struct Query {
    matcher: RegexMatcher,
    filter: Option<FileFilter>,
    mode: GrepMode,
    max_results: usize,
    before_context: usize,
    after_context: usize,
}

/// Result of searching one file.
#[derive(Debug)]
pub(crate) enum FileOutcome {
    NoMatch,
    Binary,
    Unreadable,
    Matches(GrepFile),
}

impl Query {
    pub(crate) fn compile(request: &GrepRequest) -> Result<Self, EnvError> {
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(request.case_insensitive)
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .build(&request.pattern)
            .map_err(|error| EnvError::invalid_pattern(&request.pattern, error))?;
        let filter = request.glob_filter.as_deref().map(FileFilter::parse);
        let context = request.output_mode == GrepMode::Content;
        Ok(Self {
            matcher,
            filter: filter.transpose()?,
            mode: request.output_mode,
            max_results: request.max_results,
            before_context: if context { request.before_context } else { 0 },
            after_context: if context { request.after_context } else { 0 },
        })
    }

    /// Returns true if a file below `root` passes the filter.
    pub(crate) fn admits(&self, root: &Path, path: &Path) -> bool {
        let relative = path.strip_prefix(root).unwrap_or(path);
        self.filter.as_ref().is_none_or(|filter| filter.admits(relative))
    }

    /// Searches `content`, the content of the file at `path`.
    pub(crate) fn search(&self, path: PathBuf, content: impl Read, cancelled: &CancelFlag) -> FileOutcome {
        FileSearch::new(self).search(path, content, cancelled)
    }

    /// Searches the content of a file off the runtime's threads. Dropping the future ends the search.
    pub(crate) async fn search_bytes(&self, path: PathBuf, bytes: Vec<u8>) -> Result<FileOutcome, EnvError> {
        let query = self.clone();
        let cancelled = CancelFlag::default();
        let _guard = cancelled.on_drop();
        blocking(move || query.search(path, bytes.as_slice(), &cancelled)).await
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::byte(b'\n'))
            .line_number(self.mode == GrepMode::Content)
            .before_context(self.before_context)
            .after_context(self.after_context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_LINE_BUFFER))
            .memory_map(MmapChoice::never())
            .build()
    }
}

/// Searches files one after the other on one thread, reusing the buffers and the scratch space of
/// the regular expression. Creating these takes longer than searching a small file.
#[derive(Debug)]
pub(crate) struct FileSearch {
    query: Query,
    searcher: Searcher,
}

impl FileSearch {
    pub(crate) fn new(query: &Query) -> Self {
        Self { query: query.clone(), searcher: query.searcher() }
    }

    /// Searches `content`, the content of the file at `path`.
    pub(crate) fn search(
        &mut self,
        path: PathBuf,
        content: impl Read,
        cancelled: &CancelFlag,
    ) -> FileOutcome {
        let Self { query, searcher } = self;
        let mut lines = LineSink { query, lines: Vec::new(), matches: 0, is_binary: false };
        let content = CancellableRead { content, cancelled };
        match searcher.search_reader(&query.matcher, content, &mut lines) {
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "file not searched");
                FileOutcome::Unreadable
            }
            Ok(()) if lines.is_binary => FileOutcome::Binary,
            Ok(()) if lines.matches == 0 => FileOutcome::NoMatch,
            Ok(()) => FileOutcome::Matches(GrepFile { path, matches: lines.matches, lines: lines.lines }),
        }
    }
}

/// Collects the matching lines of one file.
struct LineSink<'a> {
    query: &'a Query,
    lines: Vec<GrepLine>,
    matches: usize,
    is_binary: bool,
}

impl LineSink<'_> {
    fn keep(&mut self, bytes: &[u8], number: Option<u64>, is_match: bool) {
        let found = if is_match { self.query.matcher.find(bytes).ok().flatten() } else { None };
        let found = found.map_or(0..0, |found| found.start()..found.end());
        self.lines.push(grep_line(bytes, number, is_match, &found));
    }
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.query.mode {
            GrepMode::Content => {
                self.keep(found.bytes(), found.line_number(), true);
                // One match beyond the limit shows that there are more.
                Ok(self.matches <= self.query.max_results)
            }
            GrepMode::FilesWithMatches => Ok(false),
            GrepMode::Count => Ok(true),
        }
    }

    fn context(&mut self, _searcher: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.keep(line.bytes(), line.line_number(), false);
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// Aborts the search of a large file once it is cancelled.
struct CancellableRead<'a, R> {
    content: R,
    cancelled: &'a CancelFlag,
}

impl<R: Read> Read for CancellableRead<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancelled.get() {
            return Err(io::Error::other("the search was cancelled"));
        }
        self.content.read(buffer)
    }
}

/// Returns a line for the result. Of a line above [`MAX_LINE`], the part starts so that it has the start of `found`, the
/// first match.
fn grep_line(bytes: &[u8], number: Option<u64>, is_match: bool, found: &Range<usize>) -> GrepLine {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let match_start = found.start.min(line.len());
    let mut start = 0;
    if let Some(last_start) = line.len().checked_sub(MAX_LINE)
        && found.end > MAX_LINE
    {
        start = match_start.saturating_sub(MAX_LINE / 2).min(last_start);
        let rest = line.get(start..match_start).unwrap_or_default();
        // A character has at most three continuation bytes.
        start += rest.iter().take(3).take_while(|byte| *byte & 0b1100_0000 == 0b1000_0000).count();
    }
    let end = start.saturating_add(MAX_LINE).min(line.len());
    let text_of = |range: Range<usize>| String::from_utf8_lossy(line.get(range).unwrap_or_default());
    let mut text = text_of(start..match_start).into_owned();
    let match_start_in_text = text.len();
    text.push_str(&text_of(match_start..end));
    if end < line.len() {
        // The cut may have split a character, which then became a replacement character.
        while text.ends_with(char::REPLACEMENT_CHARACTER) {
            text.pop();
        }
    }
    GrepLine {
        number: number.unwrap_or_default(),
        skipped: text_of(0..start).chars().count(),
        match_start: match_start_in_text.min(text.len()),
        text,
        is_match,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_line(pattern: &str, content: &[u8]) -> GrepLine {
        let query = Query::compile(&GrepRequest::new(pattern)).unwrap();
        match query.search("a".into(), content, &CancelFlag::default()) {
            FileOutcome::Matches(mut file) => file.lines.remove(0),
            other @ (FileOutcome::NoMatch | FileOutcome::Binary | FileOutcome::Unreadable) => {
                panic!("{pattern}: {other:?}")
            }
        }
    }

    #[test]
    fn the_start_of_the_first_match_is_reported() {
        let cases: [(&str, &[u8], usize); 5] = [
            ("b", b"abab\n", 1),
            ("^a", b"ab\r\n", 0),
            ("b$", b"\xc3\xa9b\n", 2),
            ("b", b"\xffb", 3),
            ("$", b"ab\r\n", 2),
        ];
        for (pattern, content, start) in cases {
            let line = first_line(pattern, content);
            assert_eq!((line.match_start, line.skipped), (start, 0), "{pattern} {line:?}");
        }
    }

    #[test]
    fn the_part_of_a_long_line_has_the_match() {
        for before in [0, 1, MAX_LINE - 6, MAX_LINE - 5, MAX_LINE, 3 * MAX_LINE] {
            for after in [0, 1, 3 * MAX_LINE] {
                for filling in ["x", "é"] {
                    let content = format!("{}needle{}", filling.repeat(before), filling.repeat(after));
                    let line = first_line("needle", content.as_bytes());
                    assert!(line.text.len() <= MAX_LINE, "{before} {after} {filling}");
                    assert!(
                        line.text[line.match_start..].starts_with("needle"),
                        "{before} {after} {filling}"
                    );
                    let shown_before = line.text[..line.match_start].chars().count();
                    assert_eq!(line.skipped + shown_before, before, "{before} {after} {filling}");
                }
            }
        }
    }
}
