//! The adapter of each dialect, with a server on loopback of its own.

use std::sync::Arc;
use std::time::Duration;

use pintle_llm::{AdapterTimeout, Error, ProviderAdapter};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};

use crate::manifest::Kind;

const KEY: &str = "sk-of-no-use";

/// Nothing on loopback takes this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// The adapter of a dialect for a server at this address, such as `http://127.0.0.1:1`.
pub(crate) fn adapter(kind: Kind, address: &str) -> Result<Arc<dyn ProviderAdapter>, Error> {
    let limits = AdapterTimeout::default().with_first_byte(PATIENCE).with_stream_read(PATIENCE);
    Ok(match kind {
        Kind::OpenaiResponses => {
            Arc::new(OpenAi::builder(KEY).base_url(format!("{address}/v1")).timeout(limits).build()?)
        }
        Kind::Anthropic => Arc::new(Anthropic::builder(KEY).base_url(address).timeout(limits).build()?),
        Kind::OpenaiChat => {
            Arc::new(OpenAiCompatible::builder(format!("{address}/v1")).api_key(KEY).timeout(limits).build()?)
        }
        Kind::Gemini => Arc::new(Gemini::builder(KEY).base_url(address).timeout(limits).build()?),
    })
}
