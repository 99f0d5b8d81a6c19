//! Options of a server.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

/// Options of a [`ScriptedServer`](super::ScriptedServer).
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Address to listen on; by default 127.0.0.1 with a free port.
    pub bind: SocketAddr,
    /// The only accepted key; any key if absent.
    ///
    /// Chat Completions requires a key only if this is set.
    pub api_key: Option<String>,
    /// Accepts an `id` on OpenAI input items although `store` is false; off by default.
    pub allow_item_ids: bool,
    /// Sends ids with Gemini's function calls; off by default, as with most models.
    pub gemini_call_ids: bool,
    /// Sends reasoning in the Anthropic dialect only if the request enables thinking, as the provider does; off by
    /// default, so that one script serves requests with and without it.
    pub thinking_on_request: bool,
    /// Maximum size of a request body in bytes; 64 MiB by default. Larger requests get status 413.
    pub body_bytes: usize,
    /// Maximum size in bytes, including heads, of the requests kept for
    /// [`requests`](super::ScriptedServer::requests); 64 MiB by default. The oldest are evicted first; 0 keeps none.
    pub recorded_bytes: usize,
    /// Maximum number of concurrent connections; 4,096 by default. Others wait.
    pub connections: usize,
    /// Maximum number of conversations whose failures and prefixes are kept; 4,096 by default. The oldest are evicted first.
    pub conversations: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            api_key: None,
            allow_item_ids: false,
            gemini_call_ids: false,
            thinking_on_request: false,
            body_bytes: 64 << 20,
            recorded_bytes: 64 << 20,
            connections: 4096,
            conversations: 4096,
        }
    }
}

impl ServerOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the address to listen on.
    #[must_use]
    pub fn with_bind(mut self, bind: SocketAddr) -> Self {
        self.bind = bind;
        self
    }

    /// Sets the only accepted key.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Sets whether an `id` on OpenAI input items is accepted although `store` is false.
    #[must_use]
    pub fn with_item_ids(mut self, allow: bool) -> Self {
        self.allow_item_ids = allow;
        self
    }

    /// Sets whether Gemini's function calls have ids.
    #[must_use]
    pub fn with_gemini_call_ids(mut self, enable: bool) -> Self {
        self.gemini_call_ids = enable;
        self
    }

    /// Sets whether reasoning in the Anthropic dialect depends on the request.
    #[must_use]
    pub fn with_thinking_on_request(mut self, enable: bool) -> Self {
        self.thinking_on_request = enable;
        self
    }

    /// Sets the maximum size of the kept requests, in bytes.
    #[must_use]
    pub fn with_recorded_bytes(mut self, bytes: usize) -> Self {
        self.recorded_bytes = bytes;
        self
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerOptions")
            .field("bind", &self.bind)
            .field("api_key", &self.api_key.as_ref().map(|_| "[redacted]"))
            .field("allow_item_ids", &self.allow_item_ids)
            .field("gemini_call_ids", &self.gemini_call_ids)
            .field("thinking_on_request", &self.thinking_on_request)
            .field("body_bytes", &self.body_bytes)
            .field("recorded_bytes", &self.recorded_bytes)
            .field("connections", &self.connections)
            .field("conversations", &self.conversations)
            .finish()
    }
}
