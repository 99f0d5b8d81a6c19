//! `ask_user`: asks the user a question.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// Maximum number of proposed answers.
const MAX_OPTIONS: usize = 10;

stateless_tool! {
    /// Asks the user a question and ends the run.
    ///
    /// The call returns immediately with [`ToolOutput::question`] set. The session is then in the state
    /// `AWAITING_INPUT`, and the next submitted message is the answer.
    pub struct AskUser;
}

/// The arguments of `ask_user`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AskUserInput {
    /// Complete in itself.
    pub question: String,
    /// At most 10 answers, the recommended one first. The user may answer something else.
    pub options: Option<Vec<String>>,
}

impl Tool for AskUser {
    type Input = AskUserInput;

    tool_properties! {
        name: "ask_user",
        description: include_str!("../../prompts/builtin/ask_user.md"),
        // A question has no side effect.
        effect: Effect::Read,
        // The user should not be asked twice.
        repeatable: false,
    }

    async fn call(&self, input: AskUserInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let options = input.options.unwrap_or_default();
        let invalid = |message: &str| Err(ToolError::invalid_arguments(message));
        if input.question.trim().is_empty() {
            return invalid("question is empty; say what the user should decide or tell");
        }
        if options.iter().any(|option| option.trim().is_empty()) {
            return invalid("an option is empty; leave it out, or leave options out to ask openly");
        }
        if options.len() > MAX_OPTIONS {
            let message = format!("options has {} entries; at most {MAX_OPTIONS} are shown", options.len());
            return invalid(&message);
        }
        let output = "The question was put to the user. The answer comes as the next message of the user.";
        Ok(ToolOutput::new(output).with_question(format_question(&input.question, &options)))
    }
}

/// Returns the question for the user, with its options numbered below.
fn format_question(question: &str, options: &[String]) -> String {
    let numbered = options.iter().enumerate().map(|(at, option)| format!("\n{}. {}", at + 1, option.trim()));
    question.trim().to_owned() + &numbered.collect::<String>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::harness::Harness;

    #[tokio::test]
    async fn a_question_is_part_of_the_result() {
        let harness = Harness::new();
        let arguments = json!({"question": " Which port?\n", "options": ["8080", " 9090 "]});
        let execution = harness.execute(AskUser::new(), &arguments.to_string()).await;
        assert_eq!(execution.question.as_deref(), Some("Which port?\n1. 8080\n2. 9090"));
        insta::assert_snapshot!(execution.result.text(), @"The question was put to the user. The answer comes as the next message of the user.");
        let execution = harness.execute(AskUser::new(), r#"{"question": "Why?"}"#).await;
        assert_eq!(execution.question.as_deref(), Some("Why?"));
    }

    #[tokio::test]
    async fn unanswerable_questions_are_refused() {
        let harness = Harness::new();
        let many = vec!["x"; MAX_OPTIONS + 1];
        let cases = [
            (json!({"question": " \n"}), "question is empty; say what the user should decide or tell"),
            (
                json!({"question": "a?", "options": ["x", ""]}),
                "an option is empty; leave it out, or leave options out to ask openly",
            ),
            (json!({"question": "a?", "options": many}), "options has 11 entries; at most 10 are shown"),
        ];
        for (arguments, expected) in cases {
            let execution = harness.execute(AskUser::new(), &arguments.to_string()).await;
            assert_eq!(execution.result.text(), format!("Tool error (ask_user): {expected}"));
            assert_eq!((execution.result.is_error, execution.question), (true, None), "{arguments}");
        }
    }
}
