#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accumulate;
mod adapter;
mod catalog;
mod client;
mod content;
mod error;
mod history;
mod message;
mod middleware;
mod request;
mod response;
mod retry;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tool;
mod usage;

pub use accumulate::StreamAccumulator;
pub use adapter::ProviderAdapter;
pub use catalog::{Capability, Catalog, ModelInfo, get_latest_model, get_model_info, list_models};
pub use client::{Client, ClientBuilder, default_client, set_default_client};
pub use content::{
    AudioData, Blob, ContentPart, DocumentData, ImageData, MediaSource, OpaqueData, TextData, ThinkingData,
    ToolCall, ToolCallKind, ToolResult,
};
pub use error::{Error, ErrorInfo, ErrorKind, Retry};
pub use history::{Fingerprint, HistoryItem};
pub use message::{Message, Origin, Role};
pub use middleware::{Middleware, Mode, Next, Reply};
pub use request::{AdapterTimeout, PrefixChain, ReasoningEffort, Request, ResponseFormat, Segment};
pub use response::{Finish, FinishReason, RateLimitInfo, Response, Warning};
pub use retry::{RetryPolicy, retry, spread};
pub use stream::{EventStream, PartialToolCall, StreamEvent};
pub use tool::{Grammar, MAX_TOOL_NAME, ToolChoice, ToolDefinition};
pub use usage::Usage;
