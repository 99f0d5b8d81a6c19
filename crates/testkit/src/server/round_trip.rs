//! Whether the client sent back verbatim what the server had sealed.
//!
//! The checkers know the shape of an opaque value only; the server made it and knows it again.

use crate::dialect::Dialect;
use crate::history::{History, SealedReasoning};
use crate::seal::Seal;
use crate::violation::{Violation, ViolationKind};

/// The values that Google documents for function calls that another model had made.
const GEMINI_SKIPS: &[&str] = &["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// What is wrong with the seals of a request.
///
/// `expects_reasoning` says whether this server gave a call with reasoning in front of it.
pub(super) fn violations(
    dialect: Dialect,
    history: &History,
    expects_reasoning: impl Fn(&str, usize) -> bool,
) -> Vec<Violation> {
    let sealed = history.steps.iter().flat_map(|step| &step.reasoning);
    let mut violations: Vec<Violation> = sealed.filter_map(|reasoning| broken(dialect, reasoning)).collect();
    if dialect == Dialect::OpenAiResponses {
        violations.extend(missing(history, expects_reasoning));
    }
    violations
}

fn broken(dialect: Dialect, reasoning: &SealedReasoning) -> Option<Violation> {
    if dialect == Dialect::Gemini && GEMINI_SKIPS.contains(&reasoning.seal.as_str()) {
        return None;
    }
    let seal = Seal::open(&reasoning.seal).filter(|seal| seal.dialect == dialect);
    let problem = match (&seal, &reasoning.text) {
        (None, _) => {
            "found an opaque value that this server did not make, expected it verbatim as it was received"
        }
        (Some(seal), Some(text)) if !seal.binds(text) => {
            "found reasoning text that its signature does not fit, expected both verbatim as they were received"
        }
        (Some(_), _) => return None,
    };
    Some(Violation::new(ViolationKind::Invalid, &reasoning.field, problem))
}

/// In the open turn, reasoning that came before a call must come back with it.
///
/// The id of a call is made of the model's name too, so after a switch of the model nothing is expected.
fn missing(history: &History, expects_reasoning: impl Fn(&str, usize) -> bool) -> Option<Violation> {
    let open = history.steps.iter().enumerate().skip(history.open_from);
    let bare = open.filter(|(_, step)| step.reasoning.is_empty());
    let mut calls = bare.flat_map(|(turn, step)| step.calls.iter().map(move |call| (turn, call)));
    let (_, call) =
        calls.find(|(turn, call)| call.id.as_deref().is_some_and(|id| expects_reasoning(id, *turn)))?;
    let id = call.id.as_deref().unwrap_or_default();
    let message =
        format!("expected the reasoning item that came before the call {id}, with its encrypted_content");
    Some(Violation::new(ViolationKind::Invalid, "input", message))
}
