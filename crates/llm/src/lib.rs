#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accumulate;
mod adapter;
mod arguments;
mod cache;
mod catalog;
#[cfg(any(test, feature = "chat-json"))]
pub mod chat_json;
mod client;
mod content;
mod error;
mod error_chain;
pub mod estimate;
mod fingerprint;
mod generate;
mod history;
mod message;
mod middleware;
pub mod money;
mod object;
mod readable_duration;
mod request;
mod response;
mod retry;
pub mod schema;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tool;
mod usage;

pub use accumulate::StreamAccumulator;
// Parts of signatures, so that an adapter or a caller needs no second dependency for them.
pub use async_trait::async_trait;
pub use tokio_util::sync::CancellationToken;

pub use adapter::ProviderAdapter;
pub use arguments::CallArguments;
pub use catalog::{
    CallIds, Capability, Catalog, ModelInfo, ModelSources, OutputLimit, PriceTier, ReasoningContent,
    ServerQuirks, get_latest_model, get_model_info, list_models,
};
pub use client::{Client, ClientBuilder, default_client, default_client_or_init, set_default_client};
pub use content::{
    AudioData, Blob, ContentPart, DocumentData, ImageData, MediaSource, OpaqueData, TextData, ThinkingData,
    ToolCall, ToolCallKind, ToolResult,
};
pub use error::{Error, ErrorInfo, ErrorKind, Retry};
pub use error_chain::error_chain;
pub use fingerprint::Fingerprint;
pub use generate::{
    CallContext, ClientTool, ClientToolOutput, GenerateOptions, GenerateResult, IntoClientToolOutput,
    InvalidToolCall, OnStep, RepairToolCall, StepResult, StopCondition, StreamResult, TextStream,
    TimeoutConfig, generate, stream,
};
pub use history::HistoryItem;
pub use message::{Message, Origin, Role};
pub use middleware::{
    Budget, BudgetBuilder, BudgetTotals, CallEnd, CallObserver, Logging, Middleware, Mode, Next, Reply,
    UnknownPrice, observe,
};
pub use money::{InvalidMoney, Money};
pub use object::{
    AnswerSchema, ObjectStream, PartialJson, UnmatchedAnswer, Verdict, generate_object, generate_object_as,
    stream_object, stream_object_as,
};
pub use readable_duration::ReadableDuration;
pub use request::{
    AdapterTimeout, MessageList, PrefixChain, ReasoningEffort, Request, ResponseFormat, Segment,
};
pub use response::{Finish, FinishReason, RateLimitInfo, Response, Warning};
pub use retry::{OnRetry, RetryPolicy, ShouldRetry, jitter, retry, retry_with_jitter};
pub use stream::{EventStream, PartialToolCall, StreamEvent};
pub use tool::{Grammar, MAX_TOOL_NAME, ToolChoice, ToolDefinition, ToolItem, ToolList};
pub use usage::Usage;
