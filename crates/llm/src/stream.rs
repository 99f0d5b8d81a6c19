//! Stream events (client specification, sections 3.13 and 3.14).

mod replay;

use std::pin::Pin;

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{ContentPart, ThinkingData, ToolCall, ToolResult};
use crate::error::Error;
use crate::response::{FinishReason, Response, Warning};
use crate::usage::Usage;

/// Events of a response. The stream ends after [`StreamEvent::Finish`] or after the first error.
///
/// Dropping it closes the connection.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, Error>> + Send>>;

/// Event of a streamed response.
///
/// Serialised flat with the specification's field and type names (`type`, `delta`, `tool_call`, …). The
/// specification's `ERROR` event is the stream's `Err`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum StreamEvent {
    /// The response starts.
    StreamStart {
        /// The provider's id of the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Model that responds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Warnings about the request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// A text segment starts.
    TextStart {
        /// Id, unique within the response.
        text_id: String,
    },
    /// More text.
    TextDelta {
        /// Id of the segment.
        text_id: String,
        /// The text.
        delta: String,
    },
    /// A text segment is complete.
    TextEnd {
        /// Id of the segment.
        text_id: String,
        /// Opaque signature over the text (Gemini).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A reasoning segment starts.
    ReasoningStart {
        /// Id, unique within the response.
        reasoning_id: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// Id of the segment.
        reasoning_id: String,
        /// The text.
        reasoning_delta: String,
    },
    /// A reasoning segment is complete.
    ReasoningEnd {
        /// Id of the segment.
        reasoning_id: String,
        /// The complete reasoning, with its signature. Its text is the concatenation of the deltas.
        thinking: ThinkingData,
    },
    /// A tool call starts.
    ToolCallStart {
        /// The incomplete call.
        tool_call: PartialToolCall,
    },
    /// More arguments of a tool call.
    ToolCallDelta {
        /// The incomplete call.
        tool_call: PartialToolCall,
        /// Fragment of JSON, or of free text.
        delta: String,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// The complete call.
        tool_call: ToolCall,
    },
    /// The response is complete.
    Finish {
        /// Reason.
        finish_reason: FinishReason,
        /// Tokens spent.
        usage: Usage,
        /// The complete response.
        response: Box<Response>,
    },
    /// A step of a multi-step generation is complete, including its tools, and another follows. The last step ends with
    /// [`StreamEvent::Finish`] only.
    StepFinish {
        /// Response of the step.
        response: Box<Response>,
        /// Results of its calls, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_results: Vec<ToolResult>,
    },
    /// Event of a provider without a unified counterpart.
    ProviderEvent {
        /// The original event.
        raw: Value,
        /// Part of the message, if it must be sent back to the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<Box<ContentPart>>,
    },
}

impl StreamEvent {
    /// Returns `true` if the event carries content: text, reasoning, arguments of a call, the start or the end of a call, an
    /// opaque part, or the end of the response.
    ///
    /// The start of a response or of a segment is no content, and neither is a progress report of the provider. Such events
    /// may repeat indefinitely and do not reset [`AdapterTimeout::content`].
    ///
    /// [`AdapterTimeout::content`]: crate::AdapterTimeout::content
    #[must_use]
    pub fn is_content(&self) -> bool {
        match self {
            Self::TextDelta { delta, .. } | Self::ToolCallDelta { delta, .. } => !delta.is_empty(),
            Self::ReasoningDelta { reasoning_delta, .. } => !reasoning_delta.is_empty(),
            Self::ProviderEvent { part, .. } => part.is_some(),
            Self::StreamStart { .. } | Self::TextStart { .. } | Self::ReasoningStart { .. } => false,
            Self::TextEnd { .. }
            | Self::ReasoningEnd { .. }
            | Self::ToolCallStart { .. }
            | Self::ToolCallEnd { .. }
            | Self::Finish { .. }
            | Self::StepFinish { .. } => true,
        }
    }
}

/// Incomplete tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialToolCall {
    /// Id of the call.
    pub id: String,
    /// Name of the tool, as far as known.
    pub name: String,
}
