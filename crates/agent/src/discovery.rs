//! Shared parts of the discovery of project documents and skills.

/// Directories that are read concurrently. In a remote environment each read takes a round trip.
pub(crate) const READ_AHEAD: usize = 8;

/// Formats an error and its sources on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |source| source.source());
    std::iter::once(error.to_string()).chain(sources.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}
