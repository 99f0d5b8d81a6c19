//! Tests of several dialects.

#[cfg(feature = "_http")]
pub(crate) mod snapshot;
#[cfg(all(feature = "anthropic", feature = "compatible", feature = "gemini", feature = "openai"))]
mod switch;
