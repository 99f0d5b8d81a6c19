//! Shared parts of the discovery of project documents and skills.

/// Directories that are read concurrently. In a remote environment each read takes a round trip.
pub(crate) const READ_AHEAD: usize = 8;
