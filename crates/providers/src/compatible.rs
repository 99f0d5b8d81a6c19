//! Adapter for servers with an OpenAI-compatible Chat Completions API.

mod delta;
mod request;
mod response;
mod stream;

use pintle_llm::{Error, Request, Response};

use self::stream::ChatDecoder;
use crate::builder::AdapterBuilder;
use crate::dialect::{Dialect, Headers, HttpRequest};
use crate::failure::Failure;
use crate::openai_common::error::failure_of;
use crate::secret::Secret;
use crate::transport::{HttpAdapter, provider_adapter};

const PROVIDER: &str = "openai-compatible";

/// A server with an OpenAI-compatible Chat Completions API: vLLM, Ollama, llama.cpp, OpenRouter, Groq and so on.
///
/// Tools with a grammar are sent as functions. Visible reasoning is read, and returned to servers that expect it: as
/// `reasoning_details` if it was received so, and as `reasoning_content` together with its calls.
///
/// `provider_options` under the adapter's name is merged into the body, objects key by key, except for `tools`, whose
/// entries are added to the request's own. `model`, `stream` and `messages` cannot be set there.
///
/// A conversation that is empty or has a result without its call is refused before sending.
#[derive(Debug)]
pub struct OpenAiCompatible {
    http: HttpAdapter<Chat>,
}

impl OpenAiCompatible {
    /// Returns a builder for an adapter named `openai-compatible`. `base_url` includes `/v1`.
    pub fn builder(base_url: impl Into<String>) -> AdapterBuilder<Self> {
        AdapterBuilder::new(PROVIDER, base_url, Secret::default(), |parts| {
            let api_key = match parts.api_key.expose() {
                "" => None,
                _ => Some(parts.api_key.validate(&parts.name)?),
            };
            let dialect = Chat { provider: parts.name, api_key };
            Ok(Self { http: HttpAdapter::new(dialect, parts.http)? })
        })
    }
}

impl AdapterBuilder<OpenAiCompatible> {
    /// Sets the key, for servers that require one. An empty key means none.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.parts.api_key = Secret::new(key);
        self
    }

    /// Sets the provider name, to distinguish several servers.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.parts.name = name.into();
        self
    }
}

provider_adapter!(OpenAiCompatible);

/// Dialect of Chat Completions.
#[derive(Debug)]
pub(crate) struct Chat {
    pub(crate) provider: String,
    pub(crate) api_key: Option<Secret>,
}

impl Dialect for Chat {
    type Decoder = ChatDecoder;

    fn provider(&self) -> &str {
        &self.provider
    }

    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error> {
        let key = self.api_key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.expose())));
        Ok(HttpRequest {
            path: "/chat/completions".to_owned(),
            headers: key.into_iter().collect(),
            body: request::encode(request, &self.provider, stream)?,
        })
    }

    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error> {
        response::decode(request, &self.provider, body)
    }

    fn decoder(&self, _request: &Request, seed: u64) -> ChatDecoder {
        ChatDecoder::new(&self.provider, seed)
    }

    fn classify(&self, status: u16, _headers: &Headers, body: &[u8]) -> Error {
        failure_of(Failure { provider: &self.provider, status: Some(status), body, ..Failure::default() })
    }
}

#[cfg(test)]
mod tests;
