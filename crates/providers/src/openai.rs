//! OpenAI adapter (Responses API).

mod input;
mod request;
mod response;
mod stream;

use pintle_llm::{Error, Request, Response};

use self::stream::ResponsesDecoder;
use crate::builder::AdapterBuilder;
use crate::dialect::{Dialect, Headers, HttpRequest};
use crate::failure::Failure;
use crate::openai_common::error::failure_of;
use crate::quirks::has_opened_thinking;
use crate::secret::Secret;
use crate::think::{self, ThinkDecoder};
use crate::transport::{HttpAdapter, provider_adapter};

const PROVIDER: &str = "openai";

/// OpenAI, through the Responses API.
///
/// Nothing is stored at the provider: each request contains the complete conversation, and reasoning is returned as its
/// encrypted content, to the model that wrote it only.
///
/// `provider_options.openai` is merged into the body, objects key by key, except for `tools` (such as built-in ones) and
/// `include`, whose entries are added to the request's own. `model`, `stream` and `input` cannot be set there.
///
/// A conversation that is empty or has a result without its call is refused before sending, unless one of
/// `previous_response_id`, `conversation` and `prompt` refers to content at the provider.
#[derive(Debug)]
pub struct OpenAi {
    http: HttpAdapter<Responses>,
}

impl OpenAi {
    /// Returns a builder for an adapter of `https://api.openai.com/v1`, named `openai`.
    pub fn builder(api_key: impl Into<String>) -> AdapterBuilder<Self> {
        AdapterBuilder::new(PROVIDER, "https://api.openai.com/v1", Secret::new(api_key), |parts| {
            let dialect = Responses { api_key: parts.api_key.validate(PROVIDER)? };
            Ok(Self { http: HttpAdapter::new(PROVIDER, parts.http, |_| dialect)? })
        })
    }
}

impl AdapterBuilder<OpenAi> {
    /// Sets the organization to bill, for a key that belongs to several.
    pub fn with_organization(self, id: impl Into<String>) -> Self {
        self.with_default_header("openai-organization", id)
    }

    /// Sets the project of the requests.
    pub fn with_project(self, id: impl Into<String>) -> Self {
        self.with_default_header("openai-project", id)
    }
}

provider_adapter!(OpenAi);

/// The dialect of the Responses API.
#[derive(Debug)]
pub(crate) struct Responses {
    pub(crate) api_key: Secret,
}

impl Dialect for Responses {
    type Decoder = ThinkDecoder<ResponsesDecoder>;

    fn provider(&self) -> &str {
        PROVIDER
    }

    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error> {
        Ok(HttpRequest {
            path: "/responses".to_owned(),
            headers: vec![("authorization", format!("Bearer {}", self.api_key.expose()))],
            body: request::encode(request, stream)?,
        })
    }

    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error> {
        let response = response::decode(request, body)?;
        Ok(think::split_response(response, has_opened_thinking(request)))
    }

    fn decoder(&self, request: &Request, seed: u64) -> Self::Decoder {
        let decoder = ResponsesDecoder::new(response::warnings(request), seed);
        ThinkDecoder::new(decoder, has_opened_thinking(request))
    }

    fn classify(&self, status: u16, _headers: &Headers, body: &[u8]) -> Error {
        failure_of(Failure { provider: PROVIDER, status: Some(status), body, ..Failure::default() })
    }
}

#[cfg(test)]
mod tests;
