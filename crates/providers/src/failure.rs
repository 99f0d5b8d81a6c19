//! What a provider's complaint means (client specification, sections 6.4 and 6.5): one table for all dialects.

use pintle_llm::{Error, ErrorKind, Retry};
use serde_json::Value;

/// A provider's complaint, taken apart by its dialect.
///
/// The driver adds what stands in headers: the request id and `Retry-After`.
#[derive(Debug, Default)]
pub(crate) struct Failure<'a> {
    pub(crate) provider: &'a str,
    /// The HTTP status; `None` for an error inside a stream that names none.
    pub(crate) status: Option<u16>,
    /// The provider's word for the error, the most precise one it gives (`code` before `type`).
    pub(crate) code: Option<&'a str>,
    /// The provider's words for people.
    pub(crate) message: Option<&'a str>,
    /// The body as it came.
    pub(crate) body: &'a [u8],
}

impl Failure<'_> {
    /// The error that follows.
    pub(crate) fn into_error(self) -> Error {
        todo!()
    }
}
