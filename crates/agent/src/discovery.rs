//! Shared parts of the discovery of project documents and skills.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Directories that are read concurrently. In a remote environment each read takes a round trip.
pub(crate) const READ_AHEAD: usize = 8;

/// A document, a skill or a directory of skills that exists and could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SkippedFile {
    /// Absolute path. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Reason, for a person to read.
    pub reason: String,
}

impl SkippedFile {
    pub(crate) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_string_lossy().into_owned(), reason: reason.into() }
    }
}

/// Formats an error and its sources on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |source| source.source());
    std::iter::once(error.to_string()).chain(sources.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
