//! The form of journals, for implementations of [`SessionStore`](crate::SessionStore).
//!
//! A journal has the same lines in every store, so that verification and export do not depend on where it is. Each writer
//! begins with a [`Header`]. [`move_to_blobs`] takes large values out of an object, [`Chain::line`] makes a line of it, and
//! [`RawLine::parse`] with [`Chain::verifies`] reads it. The line that [`SessionWriter::close`](crate::SessionWriter::close)
//! writes is [`CLOSED`].

pub use crate::blob::{hashes, move_from_blobs, move_to_blobs};
pub use crate::line::{Chain, Header, RawLine, VERSION};

/// Object of the last line of a writer that was closed: everything before it was synced.
pub const CLOSED: &str = "{\"closed\":true}";

/// Longest id of a session, in bytes.
pub const MAX_ID: usize = 200;
