//! The three result formats.

use pintle_env::{ExecutionEnvironment, GrepFile, GrepLine, GrepOutput};

use crate::builtin::{display_path, ignored_note, shown_line};

/// The range of results that is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) offset: usize,
    /// Maximum number of results; `None` for all.
    pub(super) limit: Option<usize>,
}

impl Page {
    /// Returns the number of results up to the end of the page; `None` without a limit.
    pub(super) fn end(self) -> Option<usize> {
        self.limit.map(|limit| self.offset.saturating_add(limit))
    }

    /// Returns the results on the page, and whether others were left out.
    fn paginate(self, mut results: Vec<String>, found: &GrepOutput) -> (Vec<String>, bool) {
        let all = results.len();
        results.truncate(self.end().unwrap_or(usize::MAX));
        results.drain(..self.offset.min(results.len()));
        let partial = results.len() < all || found.truncated;
        (results, partial)
    }

    fn note(self) -> String {
        let limit = self.limit.map_or("none".to_owned(), |limit| limit.to_string());
        format!("[Showing results with pagination = limit: {limit}, offset: {}]", self.offset)
    }
}

/// Shows `path:line:text` for each match. Context lines have dashes instead of colons, and `--` separates groups.
pub(super) fn content(
    env: &dyn ExecutionEnvironment,
    found: &GrepOutput,
    page: Page,
    numbers: bool,
) -> String {
    let has_context = found.files.iter().flat_map(|file| &file.lines).any(|line| !line.is_match);
    let mut lines = Vec::new();
    for file in &found.files {
        let path = display_path(env, &file.path);
        let mut last: Option<u64> = None;
        for line in &file.lines {
            let is_separate = last.is_none_or(|last| last + 1 != line.number);
            if has_context && is_separate && !lines.is_empty() {
                lines.push("--".to_owned());
            }
            lines.push(match_line(&path, line, numbers));
            last = Some(line.number);
        }
    }
    let (lines, partial) = page.paginate(lines, found);
    let text = if lines.is_empty() { nothing("No matches found", found) } else { lines.join("\n") };
    with_note(text, partial, page)
}

fn match_line(path: &str, line: &GrepLine, numbers: bool) -> String {
    let separator = if line.is_match { ':' } else { '-' };
    let text = shown_line(line);
    if numbers {
        format!("{path}{separator}{}{separator}{text}", line.number)
    } else {
        format!("{path}{separator}{text}")
    }
}

/// Shows `Found N files` and their paths.
pub(super) fn files(env: &dyn ExecutionEnvironment, found: &GrepOutput, page: Page) -> String {
    let paths: Vec<String> = found.files.iter().map(|file| display_path(env, &file.path)).collect();
    let (paths, partial) = page.paginate(paths, found);
    if paths.is_empty() {
        return with_note(nothing("No files found", found), partial, page);
    }
    let noun = if paths.len() == 1 { "file" } else { "files" };
    with_note(format!("Found {} {noun}\n{}", paths.len(), paths.join("\n")), partial, page)
}

/// Shows `path:N` for each file, and the sum.
pub(super) fn counts(env: &dyn ExecutionEnvironment, found: &GrepOutput, page: Page) -> String {
    let counted = |file: &GrepFile| format!("{}:{}", display_path(env, &file.path), file.matches);
    let (lines, partial) = page.paginate(found.files.iter().map(counted).collect(), found);
    if lines.is_empty() {
        return with_note(nothing("No matches found", found), partial, page);
    }
    let on_page = found.files.iter().skip(page.offset).take(lines.len());
    let total: usize = on_page.map(|file| file.matches).sum();
    let (nouns, files) = (if total == 1 { "occurrence" } else { "occurrences" }, lines.len());
    let file_noun = if files == 1 { "file" } else { "files" };
    let sum = format!("Found {total} total {nouns} across {files} {file_noun}.");
    with_note(format!("{}\n\n{sum}", lines.join("\n")), partial, page)
}

/// Returns the text of a result without entries.
fn nothing(text: &str, found: &GrepOutput) -> String {
    ignored_note(found).map_or_else(|| text.to_owned(), |note| format!("{text}\n[{note}]"))
}

fn with_note(text: String, partial: bool, page: Page) -> String {
    if partial { format!("{text}\n\n{}", page.note()) } else { text }
}
