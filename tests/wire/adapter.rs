//! The adapter of each dialect, for a server on loopback.

use std::sync::Arc;
use std::time::Duration;

use pintle_llm::{AdapterTimeout, Error, ProviderAdapter};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};

use crate::manifest::Kind;

const KEY: &str = "sk-of-no-use";

/// Longer than anything on loopback takes.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Returns the adapter of a dialect for a server at this address, such as `http://127.0.0.1:1`.
pub(crate) fn adapter(kind: Kind, address: &str) -> Result<Arc<dyn ProviderAdapter>, Error> {
    let limits = AdapterTimeout::default().with_first_byte(TIME_LIMIT).with_stream_read(TIME_LIMIT);
    Ok(match kind {
        Kind::OpenaiResponses => Arc::new(
            OpenAi::builder(KEY).with_base_url(format!("{address}/v1")).with_timeout(limits).build()?,
        ),
        Kind::Anthropic => {
            Arc::new(Anthropic::builder(KEY).with_base_url(address).with_timeout(limits).build()?)
        }
        Kind::OpenaiChat => Arc::new(
            OpenAiCompatible::builder(format!("{address}/v1"))
                .with_api_key(KEY)
                .with_timeout(limits)
                .build()?,
        ),
        Kind::Gemini => Arc::new(Gemini::builder(KEY).with_base_url(address).with_timeout(limits).build()?),
    })
}
