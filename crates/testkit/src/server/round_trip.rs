//! Checks that the client returns sealed values verbatim.
//!
//! The checkers know only the form of an opaque value; the server can verify its content.

use crate::dialect::Dialect;
use crate::history::{History, SealedReasoning};
use crate::seal::Seal;
use crate::violation::{Violation, ViolationKind};

/// Documented placeholder signatures for function calls of other models.
const GEMINI_SKIPS: &[&str] = &["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// Returns the violations of the seals in a request.
///
/// `expects_reasoning` returns whether this server sent a call with preceding reasoning.
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
            "found an opaque value that this server did not create, expected it verbatim as received"
        }
        (Some(seal), Some(text)) if !seal.binds(text) => {
            "found reasoning text that does not match its signature, expected both verbatim as received"
        }
        (Some(_), _) => return None,
    };
    Some(Violation::new(ViolationKind::Invalid, &reasoning.field, problem))
}

/// Checks that reasoning is returned with its calls in the open turn.
///
/// Call ids depend on the model name, so nothing is expected after a switch of the model.
fn missing(history: &History, expects_reasoning: impl Fn(&str, usize) -> bool) -> Option<Violation> {
    let open = history.steps.iter().enumerate().skip(history.open_from);
    let bare = open.filter(|(_, step)| step.reasoning.is_empty());
    let mut calls = bare.flat_map(|(turn, step)| step.calls.iter().map(move |call| (turn, call)));
    let (_, call) =
        calls.find(|(turn, call)| call.id.as_deref().is_some_and(|id| expects_reasoning(id, *turn)))?;
    let id = call.id.as_deref().unwrap_or_default();
    let message =
        format!("expected the reasoning item that preceded the call {id}, with its encrypted_content");
    Some(Violation::new(ViolationKind::Invalid, "input", message))
}
