//! Results of generations (client specification, section 4.3).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::{ToolCall, ToolResult};
use crate::history::HistoryItem;
use crate::response::{FinishReason, Response, Warning};
use crate::usage::Usage;

/// A step: a model call and its tool results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepResult {
    /// Response of the model.
    pub response: Arc<Response>,
    /// Results of its tool calls, in order; empty if no tool ran. Calls of tools without a handler have none.
    pub tool_results: Vec<ToolResult>,
}

impl StepResult {
    /// Creates a step.
    #[must_use]
    pub fn new(response: impl Into<Arc<Response>>, tool_results: Vec<ToolResult>) -> Self {
        Self { response: response.into(), tool_results }
    }

    /// Concatenation of all text.
    #[must_use]
    pub fn text(&self) -> String {
        self.response.text()
    }

    /// Readable reasoning.
    #[must_use]
    pub fn reasoning(&self) -> Option<String> {
        self.response.reasoning()
    }

    /// Tool calls of the model, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.response.tool_calls()
    }

    /// Finish reason.
    #[must_use]
    pub fn finish_reason(&self) -> &FinishReason {
        &self.response.finish_reason
    }

    /// Tokens of this step.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.response.usage
    }

    /// Warnings.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.response.warnings
    }
}

/// Result of a generation. Methods with the names of methods of [`StepResult`] refer to the final step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GenerateResult<T = ()> {
    /// Response of the final step.
    pub response: Arc<Response>,
    /// Tool results of the final step: not empty if a stop condition ended the loop, or if other calls of the step have no
    /// handler.
    pub tool_results: Vec<ToolResult>,
    /// All steps, including the final one.
    pub steps: Vec<StepResult>,
    /// Tokens of all steps.
    pub total_usage: Usage,
    /// Messages added to the conversation: responses and tool results, ready for the next request. Includes the results of
    /// the final step if every call has one.
    pub messages: Vec<HistoryItem>,
    /// Parsed object of [`generate_object`](crate::generate_object) and the other object functions.
    pub output: T,
}

impl<T> GenerateResult<T> {
    /// Text of the final step; the raw text of an object.
    #[must_use]
    pub fn text(&self) -> String {
        self.response.text()
    }

    /// Readable reasoning of the final step.
    #[must_use]
    pub fn reasoning(&self) -> Option<String> {
        self.response.reasoning()
    }

    /// Tool calls of the final step: not empty if the caller has to make them, or if the rounds were used up.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.response.tool_calls()
    }

    /// Finish reason of the final step.
    #[must_use]
    pub fn finish_reason(&self) -> &FinishReason {
        &self.response.finish_reason
    }

    /// Tokens of the final step.
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
