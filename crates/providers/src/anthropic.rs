//! Anthropic (Messages API).

mod block;
mod cache_points;
mod conversation;
mod error;
mod format;
mod reasoning;
mod request;
mod response;
mod sampling;
mod stream;
#[cfg(test)]
mod tests;
mod usage;

use pintle_llm::{Error, Request, Response, Warning};

use crate::builder::AdapterBuilder;
use crate::dialect::{Dialect, Headers, HttpRequest};
use crate::quirks::quirks_for;
use crate::secret::Secret;
use crate::think::{self, ThinkDecoder};
use crate::transport::{HttpAdapter, provider_adapter};

/// Name of the provider, and memo slot of its encodings in history items.
const NAME: &str = "anthropic";

/// Anthropic's Messages API (client specification, sections 2.7, 2.8, 2.10 and 7.3).
///
/// # Provider options
///
/// These options of `provider_options.anthropic` are interpreted:
///
/// * `beta_headers`: a list of strings, joined into the header `anthropic-beta`;
/// * `auto_cache`: `false` disables the automatic cache points (see below);
/// * `thinking`: sent verbatim, overriding the reasoning effort;
/// * `tools`: server tools, sent after the request's own tools;
/// * `quirks`: overrides the [`ServerQuirks`](pintle_llm::ServerQuirks) detected from host and model.
///
/// All others are merged into the body, objects key by key.
///
/// # Prompt caching
///
/// Up to four cache points are set automatically: on the last system block, on the last tool, and on the last content
/// block of the last two user messages, so that a growing conversation finds its previous turn in the cache. If the first
/// system message has several parts, the cache point of the tools moves to the end of the second last part: it covers the
/// tools as well, and conversations that differ in the last part only share it.
///
/// # Reasoning
///
/// A reasoning effort becomes `output_config.effort` with adaptive thinking for models that the catalog marks so and for
/// newer ones, else a thinking budget of 1,024, 8,192 or 24,576 tokens, kept below `max_tokens`. Thinking is off while
/// tools are forced, and a budget is off while the open tool turn started without thinking: the API rejects both. With
/// thinking, and for some models, it also rejects some values of `temperature` and `top_p`; these are dropped, and the
/// response has a warning for each. Thinking without a signature is sent back to compatible servers that require it.
///
/// # Structured output
///
/// Claude 4.5 and newer models enforce a strict schema (`output_config.format`), without keywords that the API refuses, such as
/// `minimum`. Any other response format becomes an instruction at the end of the system prompt.
#[derive(Debug)]
pub struct Anthropic {
    http: HttpAdapter<Messages>,
}

impl Anthropic {
    /// Returns a builder for an adapter with this key and the default base URL `https://api.anthropic.com`.
    pub fn builder(api_key: impl Into<String>) -> AdapterBuilder<Self> {
        AdapterBuilder::new(NAME, "https://api.anthropic.com", Secret::new(api_key), |parts| {
            let api_key = parts.api_key.validate(NAME)?;
            let dialect = |host: &str| Messages { api_key, host: host.to_owned() };
            Ok(Self { http: HttpAdapter::new(NAME, parts.http, dialect)? })
        })
    }
}

provider_adapter!(Anthropic);

/// Dialect of the Messages API.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) api_key: Secret,
    /// Host of the base URL, which decides about quirks.
    pub(crate) host: String,
}

impl Messages {
    /// Returns whether thinking without a signature is sent back.
    fn returns_unsigned_thinking(&self, request: &Request) -> Result<bool, Error> {
        Ok(quirks_for(request, NAME, &self.host)?.unsigned_thinking == Some(true))
    }

    /// Returns whether the chat template contains the opening tag of the reasoning. Encoding the request has checked its
    /// options.
    fn has_opened_thinking(&self, request: &Request) -> bool {
        quirks_for(request, NAME, &self.host).unwrap_or_default().opened_thinking == Some(true)
    }

    /// Returns the warnings about dropped parameters. Encoding the request has checked its options.
    fn warnings(&self, request: &Request) -> Vec<Warning> {
        request::warnings(request, self.returns_unsigned_thinking(request).unwrap_or_default())
    }
}

impl Dialect for Messages {
    type Decoder = ThinkDecoder<stream::Decoder>;

    fn provider(&self) -> &str {
        NAME
    }

    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error> {
        request::encode(request, stream, &self.api_key, self.returns_unsigned_thinking(request)?)
    }

    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error> {
        let mut response = response::decode(request, body)?;
        response.warnings = self.warnings(request);
        Ok(think::split_response(response, self.has_opened_thinking(request)))
    }

    fn decoder(&self, request: &Request, _seed: u64) -> Self::Decoder {
        let decoder = stream::Decoder::new(self.warnings(request));
        ThinkDecoder::new(decoder, self.has_opened_thinking(request))
    }

    fn classify(&self, status: u16, _headers: &Headers, body: &[u8]) -> Error {
        error::classify(status, body)
    }
}
