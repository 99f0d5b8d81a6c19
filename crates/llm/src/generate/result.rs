//! What a generation gives (client specification, section 4.3).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::{ToolCall, ToolResult};
use crate::history::HistoryItem;
use crate::response::{FinishReason, Response, Warning};
use crate::usage::Usage;

/// One step: a model call and the tools that were run for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepResult {
    /// The model's answer.
    pub response: Arc<Response>,
    /// The results of its calls, in their order; empty if none was made. Calls of tools without a handler have none.
    pub tool_results: Vec<ToolResult>,
}

impl StepResult {
    /// A step with this answer.
    #[must_use]
    pub fn new(response: impl Into<Arc<Response>>, tool_results: Vec<ToolResult>) -> Self {
        Self { response: response.into(), tool_results }
    }

    /// All text, joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.response.text()
    }

    /// The readable reasoning.
    #[must_use]
    pub fn reasoning(&self) -> Option<String> {
        self.response.reasoning()
    }

    /// The calls that the model wanted made, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.response.tool_calls()
    }

    /// Why the model stopped.
    #[must_use]
    pub fn finish_reason(&self) -> &FinishReason {
        &self.response.finish_reason
    }

    /// The tokens of this step.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.response.usage
    }

    /// What was odd but did no harm.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.response.warnings
    }
}

/// What a generation came to. Methods named as those of a [`StepResult`] speak of the final step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GenerateResult<T = ()> {
    /// The final step's answer.
    pub response: Arc<Response>,
    /// The final step's tool results: not empty if a stop condition ended the loop, or if the step's other calls are of
    /// tools without a handler.
    pub tool_results: Vec<ToolResult>,
    /// Every step, the final one included.
    pub steps: Vec<StepResult>,
    /// The tokens of all steps.
    pub total_usage: Usage,
    /// What the conversation grew by: answers and tool results, ready to be sent with the next request.
    /// The results of the final step are among them if every call has one.
    pub messages: Vec<HistoryItem>,
    /// The parsed object of [`generate_object`](crate::generate_object) and its like.
    pub output: T,
}

impl<T> GenerateResult<T> {
    /// The final text, joined; the raw text of an object.
    #[must_use]
    pub fn text(&self) -> String {
        self.response.text()
    }

    /// The readable reasoning of the final step.
    #[must_use]
    pub fn reasoning(&self) -> Option<String> {
        self.response.reasoning()
    }

    /// The calls of the final step: not empty if the caller is to make them, or if the rounds were used up.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.response.tool_calls()
    }

    /// Why the final step stopped.
    #[must_use]
    pub fn finish_reason(&self) -> &FinishReason {
        &self.response.finish_reason
    }

    /// The tokens of the final step.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.response.usage
    }

    pub(crate) fn with_output<U>(self, output: U) -> GenerateResult<U> {
        GenerateResult {
            response: self.response,
            tool_results: self.tool_results,
            steps: self.steps,
            total_usage: self.total_usage,
            messages: self.messages,
            output,
        }
    }
}
