//! Text in, a [`Patch`] out.

mod draft;
mod envelope;
mod item;
mod marker;
mod sections;
mod stream;
mod tolerated;

pub use item::StreamItem;
pub use stream::PatchStream;

use crate::error::ParseError;
use crate::syntax::Patch;

/// The longest patch that is read, in bytes.
pub const MAX_PATCH_BYTES: usize = 64 * 1024 * 1024;

/// The deepest stack of `@@` lines before one hunk.
pub const MAX_HINTS: usize = 32;

/// Reads a patch in the v4a format (coding agent loop specification, appendix A).
///
/// What models write a little wrong and can mean in one way only is accepted and reported in
/// [`Patch::diagnostics`]: text around the patch, a missing end marker, markers that are indented
/// or end in `***`, git-style hunk headers, carriage returns.
///
/// [`PatchStream`] reads the same while the text is still being written.
///
/// # Errors
///
/// [`ParseError`] for everything else, with the first line that is wrong, what was found and what
/// was expected.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    PatchStream::unseen().read_whole(text)
}

/// Reads a patch as [`parse`] does, but leaves the lines of hunks and of added files out: for its paths, or to see
/// whether it is one. It takes memory for the operations only, however long their lines are.
///
/// # Errors
///
/// Those of [`parse`].
pub fn parse_outline(text: &str) -> Result<Patch, ParseError> {
    PatchStream::outlined().read_whole(text)
}

#[cfg(test)]
mod tests;
