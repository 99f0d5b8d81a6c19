//! Patches for a reviewer: sources first, and each file shortened on its own, so that no position hides a change.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::judging::PathRules;
use crate::names::{escape_name, floor_char_boundary};

/// Limits of patches in a message.
#[derive(Clone, Copy, Debug)]
pub struct PatchLimits {
    /// Bytes of all files together.
    pub bytes: usize,
    /// Lines of all files together.
    pub lines: usize,
}

impl PatchLimits {
    /// Limits of one change.
    pub const CHANGE: Self = Self { bytes: 100 << 10, lines: 3_000 };

    /// Returns an equal part for each of several changes.
    #[must_use]
    pub fn share(self, changes: usize) -> Self {
        let changes = changes.max(1);
        Self { bytes: self.bytes / changes, lines: self.lines / changes }
    }
}

/// Longest part of a line, in bytes. A longer line is probably generated.
const MAX_LINE: usize = 2_000;

/// The change of one file.
struct FilePatch<'a> {
    path: String,
    text: Cow<'a, str>,
}

/// Returns a patch in which each file has its part of the limits. Unused parts go to larger files. Each shortened file ends
/// with the number of omitted lines, and files without any space are named.
#[must_use]
pub fn shorten_patch(patch: &str, rules: &PathRules, limits: PatchLimits) -> String {
    let mut files = split_files(patch);
    let rank = |file: &FilePatch<'_>| match () {
        () if rules.is_test(&file.path) => 2,
        () if rules.is_source(&file.path) => 0,
        () => 1,
    };
    files.sort_by_key(rank);
    let bytes = divide(limits.bytes, files.iter().map(|file| file.text.len()).collect());
    let lines = divide(limits.lines, files.iter().map(|file| file.text.lines().count()).collect());
    let mut text = String::new();
    let mut omitted = Vec::new();
    for ((file, bytes), lines) in files.iter().zip(bytes).zip(lines) {
        let shown = shorten_file(&file.text, bytes, lines);
        if shown.is_empty() {
            omitted.push(file.path.clone());
        }
        text.push_str(&shown);
    }
    if !omitted.is_empty() {
        let names = omitted.iter().map(|path| escape_name(path)).collect::<Vec<_>>();
        text.push_str(&format!("[not shown: {}]\n", names.join(", ")));
    }
    text
}

/// Returns the parts of several values that together are at most `total`. Each value has at least an equal part if it needs it.
fn divide(total: usize, sizes: Vec<usize>) -> Vec<usize> {
    let mut order: Vec<(usize, usize)> = sizes.into_iter().enumerate().collect();
    order.sort_by_key(|(_, size)| *size);
    let (mut left, count) = (total, order.len());
    let mut parts: Vec<(usize, usize)> = Vec::with_capacity(count);
    for (position, (index, size)) in order.into_iter().enumerate() {
        let part = size.min(left / (count - position));
        left -= part;
        parts.push((index, part));
    }
    parts.sort_unstable();
    parts.into_iter().map(|(_, part)| part).collect()
}

fn split_files(patch: &str) -> Vec<FilePatch<'_>> {
    let mut starts: Vec<usize> =
        patch.match_indices("\ndiff --git ").map(|(position, _)| position + 1).collect();
    if !patch.is_empty() {
        starts.insert(0, 0);
    }
    let ends = starts.iter().copied().skip(1).chain([patch.len()]);
    let texts = starts.iter().copied().zip(ends).filter_map(|(start, end)| patch.get(start..end));
    texts.map(|text| FilePatch { path: path_of(text), text: shorten_lines(text) }).collect()
}

/// Returns the path of a file's patch: the new name, or the old name of a deleted file.
fn path_of(text: &str) -> String {
    let named = |mark: &str, side: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(mark))?;
        line.trim_end().trim_matches('"').strip_prefix(side).map(str::to_owned)
    };
    let header = || Some(text.lines().next()?.rsplit_once(" b/")?.1.trim_matches('"').to_owned());
    named("+++ ", "b/").or_else(|| named("--- ", "a/")).or_else(header).unwrap_or_default()
}

/// Shortens lines that no reviewer reads.
fn shorten_lines(text: &str) -> Cow<'_, str> {
    if text.lines().all(|line| line.len() <= MAX_LINE) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for line in text.lines() {
        let end = floor_char_boundary(line, MAX_LINE);
        shown.push_str(line.get(..end).unwrap_or_default());
        if end < line.len() {
            shown.push_str(&format!(" [{} bytes more]", line.len() - end));
        }
        shown.push('\n');
    }
    Cow::Owned(shown)
}

/// Returns the first lines of a file's patch within its limits.
fn shorten_file(text: &str, bytes: usize, lines: usize) -> String {
    let (mut shown, mut count) = (String::new(), 0_usize);
    for line in text.split_inclusive('\n').take(lines) {
        if shown.len() + line.len() > bytes {
            break;
        }
        shown.push_str(line);
        count += 1;
    }
    let left = text.lines().count().saturating_sub(count);
    if left > 0 && count > 0 {
        shown.push_str(&format!("[{left} more lines of this file are in the working tree]\n"));
    }
    shown
}
