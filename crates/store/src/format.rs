//! The form of journals, for implementations of [`SessionStore`](crate::SessionStore).
//!
//! A journal has the same lines in every store, so that verification and export do not depend on where it is. Each writer
//! begins with a [`Header`]. [`move_to_blobs`] takes large values out of an object, [`Chain::line`] makes a line of it, and
//! [`RawLine::parse`] with [`Chain::verifies`] reads it. A [`summary_line`] is one from which a lost summary can be
//! rebuilt. The line that [`SessionWriter::close`](crate::SessionWriter::close)
//! writes is [`CLOSED`].

use serde::{Deserialize, Serialize};

pub use crate::blob::{hashes, move_from_blobs, move_to_blobs};
pub use crate::line::{Chain, Header, RawLine, VERSION};
use crate::store::Summary;

/// Object of the last line of a writer that was closed: everything before it was synced.
pub const CLOSED: &str = "{\"closed\":true}";

/// Beginning of a line that says what a list shows of the session.
const SUMMARY: &str = "{\"summary\":";

/// Returns the object of a line from which a summary can be rebuilt.
#[must_use]
pub fn summary_line(summary: &Summary) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        summary: &'a Summary,
    }
    // A summary has no value that JSON lacks.
    serde_json::to_string(&Line { summary }).unwrap_or_default()
}

/// Returns the summary of a line, if it is one of [`summary_line`].
#[must_use]
pub fn summary_of(object: &str) -> Option<Summary> {
    #[derive(Deserialize)]
    struct Line {
        summary: Summary,
    }
    // Most lines are others and need not be parsed.
    let line = object.starts_with(SUMMARY).then(|| serde_json::from_str::<Line>(object));
    line?.ok().map(|line| line.summary)
}

/// Longest id of a session, in bytes.
pub const MAX_ID: usize = 200;
