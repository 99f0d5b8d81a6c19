//! Gemini (generateContent).

mod arguments;
mod conversation;
mod error;
mod part;
mod reasoning;
mod request;
mod response;
mod stream;
#[cfg(test)]
mod tests;
mod usage;

use pintle_llm::{Error, Request, Response};

use crate::builder::AdapterBuilder;
use crate::dialect::{Dialect, Headers, HttpRequest};
use crate::quirks::has_opened_thinking;
use crate::secret::Secret;
use crate::think::{self, ThinkDecoder};
use crate::transport::{HttpAdapter, provider_adapter};

/// Name of the provider, and memo slot of its encodings in history items.
const NAME: &str = "gemini";

/// The Gemini API (client specification, sections 2.7 and 7.3).
///
/// The key is sent in a header, not in the query, because URLs end up in logs.
///
/// # Provider options
///
/// These options of `provider_options.gemini` are interpreted:
///
/// * `tools`: entries such as `{"googleSearch": {}}`, sent after the request's own functions;
/// * `cachedContent`: the system prompt, the tools and their configuration are then omitted, because they are part of the
///   cached content and the API rejects them beside it.
///
/// All others are merged into the body, objects key by key: `safetySettings`, `generationConfig`, …
///
/// # Reasoning
///
/// A reasoning effort becomes `thinkingLevel` for Gemini 3 and later, else a budget of 1,024, 8,192 or 24,576 tokens, and
/// includes thoughts in the response. Signatures are returned on their part, to the model that created them only. A call
/// without one carries the documented value that skips the check of Gemini 3.
#[derive(Debug)]
pub struct Gemini {
    http: HttpAdapter<GenerateContent>,
}

impl Gemini {
    /// Returns a builder for an adapter with this key and the default base URL
    /// `https://generativelanguage.googleapis.com`.
    pub fn builder(api_key: impl Into<String>) -> AdapterBuilder<Self> {
        AdapterBuilder::new(
            NAME,
            "https://generativelanguage.googleapis.com",
            Secret::new(api_key),
            |parts| {
                let dialect = GenerateContent { api_key: parts.api_key.validate(NAME)? };
                Ok(Self { http: HttpAdapter::new(NAME, parts.http, |_| dialect)? })
            },
        )
    }
}

provider_adapter!(Gemini);

/// Dialect of the Gemini API.
#[derive(Debug)]
pub(crate) struct GenerateContent {
    pub(crate) api_key: Secret,
}

impl Dialect for GenerateContent {
    type Decoder = ThinkDecoder<stream::Decoder>;

    fn provider(&self) -> &str {
        NAME
    }

    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error> {
        request::encode(request, stream, &self.api_key)
    }

    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error> {
        let response = response::decode(request, body)?;
        Ok(think::split_response(response, has_opened_thinking(request)))
    }

    fn decoder(&self, request: &Request, seed: u64) -> Self::Decoder {
        let decoder = stream::Decoder::new(&request.model, seed);
        ThinkDecoder::new(decoder, has_opened_thinking(request))
    }

    fn classify(&self, status: u16, _headers: &Headers, body: &[u8]) -> Error {
        error::classify(status, body)
    }
}

/// Returns whether a model is Gemini 3 or later, which has thinking levels and checks signatures.
fn is_third_generation(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let Some(rest) = name.strip_prefix("gemini-") else { return false };
    let generation: String = rest.chars().take_while(char::is_ascii_digit).collect();
    // Names such as `gemini-flash-latest` mean the newest generation.
    generation.parse::<u32>().map_or_else(|_| name.ends_with("-latest"), |generation| generation >= 3)
}
