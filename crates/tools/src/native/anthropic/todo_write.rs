//! `TodoWrite`: accepts the list of tasks.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Accepts the complete list of tasks. The tool does not store it: the model reads the list in the conversation,
    /// and applications read it in the arguments of the call.
    pub struct TodoWrite;
}

/// The arguments of `TodoWrite`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TodoWriteInput {
    /// The whole list, in the order of the work. It takes the place of the one before.
    #[schemars(description = "")]
    pub todos: Vec<Todo>,
}

/// One thing to do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "")]
#[non_exhaustive]
pub struct Todo {
    /// What is to be done, as an order: `Run the tests`.
    #[schemars(description = "")]
    #[schemars(length(min = 1))]
    pub content: String,
    /// How far it is.
    #[schemars(description = "")]
    pub status: TodoStatus,
    /// Such as `Running the tests`.
    #[schemars(length(min = 1))]
    pub active_form: String,
}

/// How far a thing to do is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, description = "")]
#[expect(missing_docs, reason = "doc comments would turn the names in the schema into objects")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl Tool for TodoWrite {
    type Input = TodoWriteInput;

    tool_properties! {
        name: "TodoWrite",
        description: include_str!("../../../prompts/anthropic/todo_write.md"),
        // The list has no side effect.
        effect: Effect::Read,
    }

    async fn call(&self, input: TodoWriteInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let count = |status| input.todos.iter().filter(|todo| todo.status == status).count();
        Ok(ToolOutput::new(format!(
            "The list was taken: {} pending, {} in progress, {} completed. Go on with the work.",
            count(TodoStatus::Pending),
            count(TodoStatus::InProgress),
            count(TodoStatus::Completed)
        )))
    }
}
