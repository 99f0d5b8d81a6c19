#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "anthropic", feature = "compatible", feature = "gemini", feature = "openai")),
    allow(dead_code, reason = "some shared code is used by one provider only")
)]

#[cfg(feature = "anthropic")]
mod anthropic;
#[cfg(feature = "_http")]
mod body;
#[cfg(feature = "_http")]
mod builder;
#[cfg(feature = "compatible")]
mod compatible;
mod default_client;
#[cfg(feature = "_http")]
mod dialect;
#[cfg(feature = "_http")]
mod envelope;
#[cfg(feature = "_http")]
mod failure;
mod from_env;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "_http")]
mod input_tokens;
#[cfg(feature = "_http")]
mod lenient;
#[cfg(feature = "_http")]
mod media;
#[cfg(feature = "_http")]
mod message_form;
#[cfg(feature = "openai")]
mod openai;
#[cfg(any(feature = "compatible", feature = "openai"))]
mod openai_common;
#[cfg(feature = "_http")]
mod options;
#[cfg(feature = "_http")]
mod overflow;
#[cfg(feature = "_http")]
mod quirks;
#[cfg(feature = "_http")]
mod rate_limit;
#[cfg(feature = "_http")]
mod refused_media;
#[cfg(feature = "_http")]
mod refused_reasoning;
#[cfg(feature = "_http")]
mod repair;
#[cfg(feature = "_http")]
mod retry_after;
#[cfg(feature = "_http")]
mod secret;
#[cfg(feature = "_http")]
mod sse;
#[cfg(feature = "_http")]
mod streamed_arguments;
#[cfg(feature = "_http")]
mod think;
#[cfg(feature = "_http")]
mod tool_names;
#[cfg(feature = "_http")]
mod transport;

#[cfg(test)]
mod tests;

#[cfg(feature = "anthropic")]
pub use anthropic::Anthropic;
#[cfg(feature = "_http")]
pub use builder::AdapterBuilder;
#[cfg(feature = "compatible")]
pub use compatible::OpenAiCompatible;
pub use default_client::{
    default_client, generate, generate_object, generate_object_as, stream, stream_object, stream_object_as,
};
pub use from_env::FromEnv;
#[cfg(feature = "gemini")]
pub use gemini::Gemini;
#[cfg(feature = "openai")]
pub use openai::OpenAi;
