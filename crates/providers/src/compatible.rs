//! Adapter for servers with an OpenAI-compatible Chat Completions API.

mod delta;
mod request;
mod response;
mod rules;
mod stream;

use pintle_llm::{Error, Request, Response, ServerQuirks};

use self::stream::ChatDecoder;
use crate::builder::AdapterBuilder;
use crate::dialect::{Dialect, Headers, HttpRequest};
use crate::failure::Failure;
use crate::openai_common::error::failure_of;
use crate::quirks::quirks_for;
use crate::secret::Secret;
use crate::think::{self, ThinkDecoder};
use crate::transport::{HttpAdapter, provider_adapter};

const PROVIDER: &str = "openai-compatible";

/// A server with an OpenAI-compatible Chat Completions API: vLLM, Ollama, llama.cpp, OpenRouter, Groq and so on.
///
/// Tools with a grammar are sent as functions. Visible reasoning is read, and returned to servers that expect it: as
/// `reasoning_details` if it was received so, and as `reasoning_content` on each assistant message from the first one that
/// was received with it. `<think>` at the start of the content is reasoning, which is not returned. The `extra_content` of a
/// call is returned with the call.
///
/// `provider_options` under the adapter's name is merged into the body, objects key by key, except for `tools`, whose
/// entries are added to the request's own, and for `quirks`, which overrides the [`ServerQuirks`] detected from host and
/// model. `model`, `stream` and `messages` cannot be set there. An option `max_completion_tokens` or `max_tokens` replaces
/// the request's limit under either name.
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
            let provider = parts.name;
            let dialect = |host: &str| Chat { provider: provider.clone(), api_key, host: host.to_owned() };
            Ok(Self { http: HttpAdapter::new(&provider, parts.http, dialect)? })
        })
    }
}

impl AdapterBuilder<OpenAiCompatible> {
    /// Sets the key, for servers that require one. An empty key means none.
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.parts.api_key = Secret::new(key);
        self
    }

    /// Sets the provider name, to distinguish several servers.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
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
    /// Host of the base URL, which decides about quirks.
    pub(crate) host: String,
}

impl Chat {
    fn quirks(&self, request: &Request) -> Result<ServerQuirks, Error> {
        quirks_for(request, &self.provider, &self.host)
    }

    /// Returns whether the chat template contains the opening tag of the reasoning. Encoding the request has checked its
    /// options.
    fn has_opened_thinking(&self, request: &Request) -> bool {
        self.quirks(request).unwrap_or_default().opened_thinking == Some(true)
    }
}

impl Dialect for Chat {
    type Decoder = ThinkDecoder<ChatDecoder>;

    fn provider(&self) -> &str {
        &self.provider
    }

    fn encode(&self, request: &Request, stream: bool) -> Result<HttpRequest, Error> {
        let key = self.api_key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.expose())));
        Ok(HttpRequest {
            path: "/chat/completions".to_owned(),
            headers: key.into_iter().collect(),
            body: request::encode(request, &self.provider, &self.quirks(request)?, stream)?,
        })
    }

    fn decode(&self, request: &Request, body: &[u8]) -> Result<Response, Error> {
        let response = response::decode(request, &self.provider, body)?;
        Ok(think::split_response(response, self.has_opened_thinking(request)))
    }

    fn decoder(&self, request: &Request, seed: u64) -> Self::Decoder {
        ThinkDecoder::new(ChatDecoder::new(&self.provider, seed), self.has_opened_thinking(request))
    }

    fn classify(&self, status: u16, _headers: &Headers, body: &[u8]) -> Error {
        failure_of(Failure { provider: &self.provider, status: Some(status), body, ..Failure::default() })
    }
}

#[cfg(test)]
mod tests;
