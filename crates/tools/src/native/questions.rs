//! Questions to the user.

use crate::error::ToolError;
use crate::tool::ToolOutput;

/// A question with proposed answers.
pub(super) struct Question<'a> {
    pub(super) text: &'a str,
    /// The labels of the answers, each with its meaning.
    pub(super) options: Vec<(&'a str, &'a str)>,
    /// Whether several answers may be chosen.
    pub(super) multiple: bool,
}

/// Returns the result that asks the questions and ends the run.
pub(super) fn ask(questions: &[Question<'_>]) -> Result<ToolOutput, ToolError> {
    let invalid = |message: String| Err(ToolError::invalid_arguments(message));
    if questions.is_empty() {
        return invalid("questions is empty; give at least one".to_owned());
    }
    for (number, question) in (1..).zip(questions) {
        if question.text.trim().is_empty() {
            return invalid(format!(
                "question {number} has no text; say what the user should decide or tell"
            ));
        }
        if question.options.iter().any(|(label, _)| label.trim().is_empty()) {
            return invalid(format!("an option of question {number} has no label"));
        }
    }
    let all = questions.len();
    let shown: Vec<String> =
        (1..).zip(questions).map(|(number, question)| format_question(question, number, all)).collect();
    let noun = if all == 1 { "question was" } else { "questions were" };
    let output = format!("The {noun} put to the user. The answer comes as the next message of the user.");
    Ok(ToolOutput::new(output).with_question(shown.join("\n\n")))
}

/// Formats a question for the user, with its options numbered below, and with its own number if there are several.
fn format_question(question: &Question<'_>, number: usize, all: usize) -> String {
    let mut text = if all > 1 { format!("({number}/{all}) ") } else { String::new() };
    text.push_str(question.text.trim());
    if question.multiple {
        text.push_str(" (several may be chosen)");
    }
    for (number, (label, meaning)) in (1..).zip(&question.options) {
        let label = label.trim();
        text.push_str(&match meaning.trim() {
            "" => format!("\n{number}. {label}"),
            meaning => format!("\n{number}. {label}: {meaning}"),
        });
    }
    text
}
