//! Anthropic (Messages API).

mod block;
mod conversation;
mod error;
mod reasoning;
mod request;
mod response;
mod sampling;
mod stream;
#[cfg(test)]
mod tests;
mod usage;

use pintle_llm::{Error, Request, Response};

use crate::builder::AdapterBuilder;
use crate::dialect::{Dialect, Headers, HttpRequest};
use crate::secret::Secret;
use crate::transport::{HttpAdapter, provider_adapter};

/// The provider's name, and the key of its encodings in history items.
const NAME: &str = "anthropic";

/// Anthropic's Messages API (client specification, sections 2.7, 2.8, 2.10 and 7.3).
///
/// # Provider options
///
/// Of `provider_options.anthropic` it understands
///
/// * `beta_headers`: a list of strings, joined into the header `anthropic-beta`;
/// * `auto_cache`: `false` turns the automatic cache points off (see below);
/// * `thinking`: sent as it is, instead of what follows from the reasoning effort;
/// * `tools`: server tools, sent after the request's own;
///
/// and merges everything else into the body, objects key by key.
///
/// # Prompt caching
///
/// Up to four cache points are set by itself: the last system block, the last tool, and the last content block of
/// the last two user messages, so that a growing conversation finds its previous turn in the cache. Where the first
/// system message has several parts, the point of the tools moves to the end of the last part but one: it covers the
/// tools too, and other conversations find it that differ in the last part only.
///
/// # Reasoning
///
/// A reasoning effort becomes `output_config.effort` with adaptive thinking for models that the catalog marks so and
/// for newer ones, else a thinking budget of 1,024, 8,192 or 24,576 tokens, kept below `max_tokens`. Thinking stays
/// off while tools are forced, and a budget while the open tool turn was begun without thinking: the API refuses
/// both. It also refuses some temperatures and values of `top_p`, beside thinking and from some models; these are left
/// out, and the answer has a warning for each.
///
/// # Structured output
///
/// A response format becomes an instruction at the end of the system prompt.
#[derive(Debug)]
pub struct Anthropic {
    http: HttpAdapter<Messages>,
}

impl Anthropic {
    /// Begins an adapter with this key. The base URL is `https://api.anthropic.com` unless another one is given.
    pub fn builder(api_key: impl Into<String>) -> AdapterBuilder<Self> {
        AdapterBuilder::new(NAME, "https://api.anthropic.com", Secret::new(api_key), |parts| {
            let dialect = Messages { api_key: parts.api_key.validate(NAME)? };
            Ok(Self { http: HttpAdapter::new(dialect, parts.http)? })
        })
    }
}

provider_adapter!(Anthropic);

/// The Messages dialect.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) api_key: Secret,
}

impl Dialect for Messages {
    type Decoder = stream::Decoder;

    fn provider(&self) -> &str {
        NAME
    }

    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error> {
        request::encode(request, stream, &self.api_key)
    }

    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error> {
        response::decode(request, body)
    }

    fn decoder(&self, request: &Request, _seed: u64) -> stream::Decoder {
        stream::Decoder::new(request::warnings(request))
    }

    fn classify(&self, status: u16, _headers: &Headers, body: &[u8]) -> Error {
        error::classify(status, body)
    }
}
