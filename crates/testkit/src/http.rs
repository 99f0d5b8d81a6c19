//! Just enough HTTP/1.1 for a server whose every byte and every fault is its own.

mod read;
mod write;

pub(crate) use read::{ReadError, Reader};
pub(crate) use write::{Writer, reason};

/// A request, read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// Path and query as they were sent.
    pub(crate) path: String,
    /// Names in lower case, in the order of the request.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the client wants to send another request on this connection.
    pub(crate) keep_alive: bool,
}
