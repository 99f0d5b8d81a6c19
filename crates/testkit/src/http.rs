//! Minimal HTTP/1.1 with control over every byte, as scripted faults require.

mod read;
mod write;

pub(crate) use read::{ReadError, Reader};
pub(crate) use write::{Writer, reason};

/// A complete request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// Path and query as sent.
    pub(crate) path: String,
    /// Names are in lower case, in the order of the request.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the connection stays open for another request.
    pub(crate) keep_alive: bool,
}
