//! Decisions as text, for plain mode.

use pintle_agent::{ApprovalRequest, Decision};
use pintle_tools::SandboxSide;

use super::{Approvals, Decided, denial, details, in_one_line, once, rules};
use crate::approve;
use crate::render::{Face, Line};

/// Width at which details are broken. The terminal breaks lines itself.
const COLUMNS: usize = 1 << 20;

/// Meaning of a line while a call is pending.
#[derive(Debug)]
pub(crate) enum Answer {
    Decided(Box<Decided>),
    /// The word is known, but it cannot decide this call. Contains the reason.
    Unfit(&'static str),
    /// The line is not a decision.
    Other,
}

impl Approvals {
    /// Returns the question about the shown call.
    pub(crate) fn question(&self) -> Vec<Line> {
        let Some(request) = self.shown() else { return Vec::new() };
        let count = match self.pending.len() {
            1 => String::new(),
            count => format!(" [1 of {count}]"),
        };
        let (title, reason) = (in_one_line(&approve::title(request)), in_one_line(&request.reason));
        let head = Line::plain(format!("approval: {title} ({reason}){count}"));
        let mut lines = vec![head];
        lines.extend(details(request, COLUMNS));
        lines.push(Line::new(choices(request), Face::BOLD));
        lines
    }

    /// Parses a line as an answer to the question.
    pub(crate) fn answer(&self, line: &str) -> Answer {
        let Some(request) = self.shown() else { return Answer::Other };
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let words = rest.trim();
        let decided = |decision| Answer::Decided(Box::new(once(request, decision)));
        match word.to_lowercase().trim_end_matches(',') {
            "no" | "n" => decided(denial(words)),
            // More than one word is a message, not an answer.
            _ if !words.is_empty() => Answer::Other,
            "yes" | "y" => decided(Decision::Approve),
            "session" | "s" if request.suggested_rules.is_empty() => {
                Answer::Unfit("no rule names such calls: answer yes or no")
            }
            "session" | "s" => {
                let rules = request.suggested_rules.clone();
                Answer::Decided(Box::new(Decided { rules, ..once(request, Decision::Approve) }))
            }
            "inside" | "i" if request.sandbox == Some(SandboxSide::Outside) => {
                decided(Decision::Change { arguments: approve::inside(&request.arguments) })
            }
            "inside" | "i" => Answer::Unfit("the call does not ask to leave the sandbox: answer yes or no"),
            _ => Answer::Other,
        }
    }
}

/// Returns the possible answers.
fn choices(request: &ApprovalRequest) -> String {
    let side = request.sandbox.map_or_else(String::new, |side| format!(" ({})", side.as_words()));
    let mut choices = vec![format!("yes{side}")];
    if request.sandbox == Some(SandboxSide::Outside) {
        choices.push("inside".to_owned());
    }
    if !request.suggested_rules.is_empty() {
        choices.push(format!("session ({})", rules(request)));
    }
    format!("answer {}, no, or no with words", choices.join(", "))
}
