//! What a server is told beside its script.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

/// Where and how strictly a server serves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The address to listen on; by default 127.0.0.1 with a free port.
    pub bind: SocketAddr,
    /// The only key that is accepted; any key when absent.
    ///
    /// With a key set, Chat Completions wants one too, which it does not otherwise.
    pub api_key: Option<String>,
    /// Accept an `id` on OpenAI input items although `store` is false; off by default.
    pub allow_item_ids: bool,
    /// Give Gemini's function calls an id; off by default, as most models do.
    pub gemini_call_ids: bool,
    /// The most bytes of a request body; 64 MiB by default. Above it the answer is 413.
    pub body_bytes: usize,
    /// The most bytes of requests, heads included, that are kept for
    /// [`requests`](super::ScriptedServer::requests); 64 MiB by default, the oldest go first, 0 keeps none.
    pub recorded_bytes: usize,
    /// The most connections at once; 4,096 by default. More of them wait.
    pub connections: usize,
    /// The most conversations whose failures and prefixes are remembered; 4,096 by default, the oldest go first.
    pub conversations: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            api_key: None,
            allow_item_ids: false,
            gemini_call_ids: false,
            body_bytes: 64 << 20,
            recorded_bytes: 64 << 20,
            connections: 4096,
            conversations: 4096,
        }
    }
}

impl ServerOptions {
    /// The defaults.
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

    /// Sets the only key that is accepted.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Accepts an `id` on OpenAI input items although `store` is false.
    #[must_use]
    pub fn with_item_ids(mut self, allow: bool) -> Self {
        self.allow_item_ids = allow;
        self
    }

    /// Gives Gemini's function calls an id.
    #[must_use]
    pub fn with_gemini_call_ids(mut self, give: bool) -> Self {
        self.gemini_call_ids = give;
        self
    }

    /// Sets how many bytes of requests are kept.
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
            .field("body_bytes", &self.body_bytes)
            .field("recorded_bytes", &self.recorded_bytes)
            .field("connections", &self.connections)
            .field("conversations", &self.conversations)
            .finish()
    }
}
