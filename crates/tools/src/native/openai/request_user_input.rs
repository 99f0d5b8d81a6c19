//! `request_user_input`: asks the user questions.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::native::questions::{Question, ask};
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Asks the user and ends the run, like [`AskUser`](crate::builtin::AskUser).
    pub struct RequestUserInput;
}

/// The arguments of `request_user_input`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RequestUserInputInput {
    /// One to three questions, best one.
    pub questions: Vec<InputQuestion>,
}

/// One question.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(description = "")]
#[non_exhaustive]
pub struct InputQuestion {
    /// A name in `snake_case`.
    pub id: String,
    /// One or two words.
    pub header: String,
    /// Complete in itself, in one sentence.
    pub question: String,
    /// Two or three answers, the recommended one first. The user may answer something else.
    pub options: Vec<InputOption>,
}

/// An answer to choose.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(description = "")]
#[non_exhaustive]
pub struct InputOption {
    /// The answer, in a few words.
    #[schemars(description = "")]
    pub label: String,
    /// What choosing it means.
    pub description: String,
}

impl Tool for RequestUserInput {
    type Input = RequestUserInputInput;

    tool_properties! {
        name: "request_user_input",
        description: include_str!("../../../prompts/openai/request_user_input.md"),
        // A question has no side effect.
        effect: Effect::Read,
        // The user should not be asked twice.
        repeatable: false,
    }

    async fn call(&self, input: RequestUserInputInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let questions: Vec<Question<'_>> = input.questions.iter().map(InputQuestion::as_question).collect();
        ask(&questions)
    }
}

impl InputQuestion {
    fn as_question(&self) -> Question<'_> {
        let options = self.options.iter().map(|option| (option.label.as_str(), option.description.as_str()));
        Question { text: &self.question, options: options.collect(), multiple: false }
    }
}
