//! Parses text to a [`Patch`].

mod builder;
mod diagnostics;
mod envelope;
mod item;
mod marker;
mod sections;
mod stream;

pub use item::StreamItem;
pub use stream::PatchStream;

use std::collections::HashSet;

use self::marker::{Marker, MarkerLine};
use crate::error::ParseError;
use crate::syntax::Patch;

/// Parses a patch in the v4a format (coding agent loop specification, appendix A).
///
/// Common deviations of models that have only one possible meaning are accepted and reported in [`Patch::diagnostics`]:
/// text around the patch, a missing end marker, markers that are indented or end in `***`, git-style hunk headers,
/// carriage returns.
///
/// [`PatchStream`] parses the same format incrementally.
///
/// # Errors
///
/// [`ParseError`] for any other text, with the first wrong line, the text found and the text expected.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    PatchStream::without_items().read_whole(text)
}

/// Parses a patch like [`parse`], but omits the lines of hunks and of added files. Used to read the paths, or to check
/// whether a text is a patch. Memory use depends on the number of operations and hunks, not on the length of their
/// lines.
///
/// # Errors
///
/// As for [`parse`].
pub fn parse_outline(text: &str) -> Result<Patch, ParseError> {
    PatchStream::outline_only().read_whole(text)
}

/// Returns the paths in a patch for display, each once, in the order of the patch. If the patch does not parse, the
/// paths come from its headers. A text without headers has no paths.
#[must_use]
pub fn named_paths(text: &str) -> Vec<String> {
    if let Ok(patch) = parse_outline(text) {
        return patch.paths().into_iter().map(str::to_owned).collect();
    }
    let mut seen = HashSet::new();
    let headers = text.lines().filter_map(MarkerLine::parse).filter(|header| !header.indented);
    let paths = headers.filter_map(|header| match header.marker {
        Marker::AddFile(path)
        | Marker::DeleteFile(path)
        | Marker::UpdateFile(path)
        | Marker::MoveTo(path) => Some(path),
        Marker::BeginPatch | Marker::EndPatch | Marker::EndOfFile | Marker::EnvironmentId => None,
    });
    paths.filter(|path| seen.insert(*path)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
