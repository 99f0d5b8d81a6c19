#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod anthropic;
mod body;
mod builder;
mod compatible;
mod default_client;
mod dialect;
mod failure;
mod from_env;
mod gemini;
mod input_tokens;
mod lenient;
mod media;
mod openai;
mod rate_limit;
mod repair;
mod retry_after;
mod secret;
mod sse;
mod transport;

#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod switch_tests;

pub use anthropic::Anthropic;
pub use builder::AdapterBuilder;
pub use compatible::OpenAiCompatible;
pub use default_client::{
    default_client, generate, generate_object, generate_object_as, stream, stream_object, stream_object_as,
};
pub use from_env::FromEnv;
pub use gemini::Gemini;
pub use openai::OpenAi;
