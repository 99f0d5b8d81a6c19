//! Questions to the user in the forms of the reference agents, put as one text.

use crate::error::{ToolError, ToolErrorKind};
use crate::tool::ToolOutput;

/// One question with the answers that are proposed.
pub(super) struct Question<'a> {
    pub(super) text: &'a str,
    /// Each with what it means.
    pub(super) options: Vec<(&'a str, &'a str)>,
    /// Whether several of them may be chosen.
    pub(super) several: bool,
}

/// Puts the questions and gives the turn back to the user.
pub(super) fn ask(questions: &[Question<'_>]) -> Result<ToolOutput, ToolError> {
    let invalid = |message: String| Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
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
        (1..).zip(questions).map(|(number, question)| shown(question, number, all)).collect();
    let noun = if all == 1 { "question was" } else { "questions were" };
    let output = format!("The {noun} put to the user. The answer comes as the next message of the user.");
    Ok(ToolOutput::new(output).with_question(shown.join("\n\n")))
}

/// A question as a person reads it: its options numbered below, and its own number before it if there are more.
fn shown(question: &Question<'_>, number: usize, all: usize) -> String {
    let mut text = if all > 1 { format!("({number}/{all}) ") } else { String::new() };
    text.push_str(question.text.trim());
    if question.several {
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
