//! The format of journals, for implementations of [`SessionStore`](crate::SessionStore).
//!
//! A journal has the same lines in every store, so that verification and export do not depend on its location. The
//! first line of each writer is a [`SegmentHeader`]. [`move_to_blobs`] takes large values out of an object,
//! [`HashChain::line`] makes a line from it, and [`RawLine::parse`] with [`HashChain::verifies`] reads it. A lost summary
//! can be rebuilt from a [`summary_line`]. [`SessionWriter::close`](crate::SessionWriter::close) writes the line
//! [`CLOSED`].

use serde::{Deserialize, Serialize};

pub use crate::blob::{hashes, move_from_blobs, move_to_blobs};
pub use crate::line::{HashChain, RawLine, SegmentHeader, VERSION};
use crate::store::Summary;

/// Object of the last line of a closed writer: all earlier lines were synced.
pub const CLOSED: &str = "{\"closed\":true}";

/// Prefix of a line that contains the session's summary for lists.
const SUMMARY: &str = "{\"summary\":";

/// Returns the object of a line from which a summary can be rebuilt.
#[must_use]
pub fn summary_line(summary: &Summary) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        summary: &'a Summary,
    }
    // A summary contains no value that JSON cannot represent.
    serde_json::to_string(&Line { summary }).unwrap_or_default()
}

/// Returns the summary of a line, if [`summary_line`] wrote it.
#[must_use]
pub fn summary_of(object: &str) -> Option<Summary> {
    #[derive(Deserialize)]
    struct Line {
        summary: Summary,
    }
    // Most lines contain no summary and need not be parsed.
    let line = object.starts_with(SUMMARY).then(|| serde_json::from_str::<Line>(object));
    line?.ok().map(|line| line.summary)
}

/// Longest id of a session, in bytes.
pub const MAX_ID: usize = 200;
