//! Output of several commands: the events of a session, a streamed response, and the final response.

#[cfg(feature = "compat")]
pub(crate) mod codex;
pub(crate) mod follow;
#[cfg(feature = "compat")]
pub(crate) mod last_message;
pub(crate) mod response_view;
