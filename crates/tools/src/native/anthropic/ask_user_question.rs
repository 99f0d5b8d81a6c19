//! `AskUserQuestion`: asks the user questions.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::native::questions::{Question, ask};
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Asks the user and ends the run, like [`AskUser`](crate::builtin::AskUser).
    pub struct AskUserQuestion;
}

/// The arguments of `AskUserQuestion`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AskUserQuestionInput {
    /// The questions, one to four.
    #[schemars(description = "")]
    #[schemars(length(min = 1, max = 4))]
    pub questions: Vec<UserQuestion>,
}

/// One question.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "")]
#[non_exhaustive]
pub struct UserQuestion {
    /// Complete in itself.
    pub question: String,
    /// One or two words: `Library`, `Approach`.
    pub header: String,
    /// Answers, the recommended one first. The user may answer something else.
    #[schemars(length(min = 2, max = 4))]
    pub options: Vec<QuestionOption>,
    /// Whether several options may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

/// An answer to choose.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(description = "")]
#[non_exhaustive]
pub struct QuestionOption {
    /// The answer, in a few words.
    #[schemars(description = "")]
    pub label: String,
    /// What choosing it means.
    pub description: String,
}

impl Tool for AskUserQuestion {
    type Input = AskUserQuestionInput;

    tool_properties! {
        name: "AskUserQuestion",
        description: include_str!("../../../prompts/anthropic/ask_user_question.md"),
        // A question has no side effect.
        effect: Effect::Read,
        // The user should not be asked twice.
        repeatable: false,
    }

    async fn call(&self, input: AskUserQuestionInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let questions: Vec<Question<'_>> = input.questions.iter().map(UserQuestion::as_question).collect();
        ask(&questions)
    }
}

impl UserQuestion {
    fn as_question(&self) -> Question<'_> {
        let options = self.options.iter().map(|option| (option.label.as_str(), option.description.as_str()));
        Question { text: &self.question, options: options.collect(), multiple: self.multi_select }
    }
}
