//! Decisions as text, for plain mode.

use pintle_agent::ApprovalRequest;

use super::{Approvals, RequestDecision, details, rules};
use crate::approve::{self, CallDecision, Choice};
use crate::render::{Face, StyledLine, UNWRAPPED_COLUMNS};

/// Meaning of a line while a call is pending.
#[derive(Debug)]
pub(crate) enum Answer {
    Decided(Box<RequestDecision>),
    /// The word is known, but it cannot decide this call. Contains the reason.
    Unfit(&'static str),
    /// The line is not a decision.
    Other,
}

impl Approvals {
    /// Returns the question about the shown call.
    pub(crate) fn question(&self) -> Vec<StyledLine> {
        let Some(request) = self.selected_request() else { return Vec::new() };
        let mut lines = self.head(StyledLine::plain("approval: "), request, UNWRAPPED_COLUMNS);
        lines.extend(details(request, UNWRAPPED_COLUMNS));
        lines.push(StyledLine::new(choices(request), Face::BOLD));
        lines
    }

    /// Parses a line as an answer to the question.
    pub(crate) fn answer(&self, line: &str) -> Answer {
        let Some(request) = self.selected_request() else { return Answer::Other };
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let decision = match (Choice::by_name(word.trim_end_matches(',')), rest.trim()) {
            (Some(Choice::No), reason) => Ok(CallDecision::denied(reason)),
            (Some(choice), "") => choice.decide(request),
            // More than one word is a message, not an answer.
            (Some(_) | None, _) => match CallDecision::by_rule(line) {
                Some(decision) => Ok(decision),
                None => return Answer::Other,
            },
        };
        match decision {
            Ok(decision) => Answer::Decided(Box::new(RequestDecision::new(request, decision))),
            Err(reason) => Answer::Unfit(reason),
        }
    }
}

/// Returns the possible answers.
fn choices(request: &ApprovalRequest) -> String {
    let choices = Choice::for_call(request).filter_map(|choice| match choice {
        Choice::Yes => Some(match approve::side(request).trim() {
            "" => choice.word().to_owned(),
            side => format!("{} ({side})", choice.word()),
        }),
        Choice::Inside => Some(choice.word().to_owned()),
        Choice::Session => Some(format!("{} ({})", choice.word(), rules(request))),
        // Last, with its reason.
        Choice::No => None,
    });
    format!("answer {}, no, or no with words", choices.collect::<Vec<_>>().join(", "))
}
