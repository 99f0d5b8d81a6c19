//! Stream events (client specification, sections 3.13 and 3.14).

use std::pin::Pin;

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{ContentPart, ThinkingData, ToolCall, ToolResult};
use crate::error::Error;
use crate::response::{FinishReason, Response, Warning};
use crate::usage::Usage;

/// The events of one answer. It ends after [`StreamEvent::Finish`] or after the first error.
///
/// Dropping it closes the connection.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, Error>> + Send>>;

/// One event of an answer as it forms.
///
/// Serialised flat with the specification's field and type names (`type`, `delta`, `tool_call`, …). The
/// specification's `ERROR` event is the stream's `Err`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum StreamEvent {
    /// The answer has begun.
    StreamStart {
        /// The provider's id for the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The model that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What was odd about the request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// A text segment begins.
    TextStart {
        /// Unique within the answer.
        text_id: String,
    },
    /// More text.
    TextDelta {
        /// The segment.
        text_id: String,
        /// The text.
        delta: String,
    },
    /// A text segment is complete.
    TextEnd {
        /// The segment.
        text_id: String,
        /// An opaque signature over the text (Gemini).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Reasoning begins.
    ReasoningStart {
        /// Unique within the answer.
        reasoning_id: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// The segment.
        reasoning_id: String,
        /// The text.
        reasoning_delta: String,
    },
    /// Reasoning is complete.
    ReasoningEnd {
        /// The segment.
        reasoning_id: String,
        /// All of it, with what the provider needs back. Its text is the concatenation of the deltas.
        thinking: ThinkingData,
    },
    /// A tool call begins.
    ToolCallStart {
        /// The call so far.
        tool_call: PartialToolCall,
    },
    /// More of a call's arguments.
    ToolCallDelta {
        /// The call.
        tool_call: PartialToolCall,
        /// The piece of JSON, or of free text.
        delta: String,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// The call, ready to be made.
        tool_call: ToolCall,
    },
    /// The answer is complete.
    Finish {
        /// Why.
        finish_reason: FinishReason,
        /// Tokens spent.
        usage: Usage,
        /// All of it.
        response: Box<Response>,
    },
    /// One step of a multi-step call is over and its tools have run; the next step begins. The last step ends with
    /// [`StreamEvent::Finish`] alone.
    StepFinish {
        /// The step's answer.
        response: Box<Response>,
        /// The results of its calls, in their order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_results: Vec<ToolResult>,
    },
    /// Something that the unified model has no event for.
    ProviderEvent {
        /// As it came.
        raw: Value,
        /// The part of the message that it stands for, if it must go back to the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<Box<ContentPart>>,
    },
}

impl StreamEvent {
    /// Whether the event brings a part of the answer: text, reasoning, arguments of a call, the name or the end of one,
    /// a part of the message that only the provider can read, or the end of the answer.
    ///
    /// The beginning of an answer or of a segment brings nothing yet, and neither does an event that only reports how
    /// far the provider is. Such events may repeat for ever and do not reset [`AdapterTimeout::content`].
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

/// A tool call that still forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialToolCall {
    /// The call's id.
    pub id: String,
    /// The tool's name as far as known.
    pub name: String,
}
