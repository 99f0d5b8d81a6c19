#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod circuit_breaker;
mod known_models;
mod rate_limit;
mod response_cache;
mod text_tool_calls;

pub use self::circuit_breaker::{CircuitBreaker, CircuitBreakerBuilder, CircuitState};
pub use self::known_models::{KnownModels, UnknownModel};
pub use self::rate_limit::{RateLimit, RateLimitBuilder};
pub use self::response_cache::{CacheStats, ResponseCache, ResponseCacheBuilder};
pub use self::text_tool_calls::{TextToolCallForm, TextToolCalls};
