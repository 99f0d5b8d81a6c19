//! Decisions of the user at the terminal in which a task runs.

use pintle_agent::SessionId;
use pintle_host::attendant::Attendant as _;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::sanitize::sanitize;
use pintle_host::sessions::Sessions;
use pintle_tui::approve::Prompter;
use pintle_tui::console;
use pintle_workflow::contract::DecisionGate;
use pintle_workflow::post_signal;
use pintle_workflow::task::{GateAnswer, Task, TaskCandidate, TaskSignal};

/// Prompt below the subject of the decision.
const PROMPT: &str = "[a]pprove, [r]efuse for good, or what to change: ";

/// Prompt for a gate that does not accept change requests.
const SHORT_PROMPT: &str = "[a]pprove or [r]efuse for good: ";

/// Asks about the gate, and posts the answer as `pintle task decide` does. Posts nothing without a terminal, at the end
/// of input, and for an empty line.
///
/// Cancel safe: the prompt ends, and nothing is posted.
pub(super) async fn ask(
    prompter: &Prompter,
    sessions: &Sessions,
    id: &SessionId,
    task: &Task,
    gate: DecisionGate,
) -> Result<(), Failure> {
    let takes_words = task.is_changed_by_words(gate);
    let prompt = if takes_words { PROMPT } else { SHORT_PROMPT };
    let decision = loop {
        let Some(answer) = prompter.ask_now(&describe_gate(task, gate, id), prompt).await else {
            return Ok(());
        };
        let Some(decision) = parse_answer(gate, &answer) else { return Ok(()) };
        if takes_words || decision.words.is_none() {
            break decision;
        }
        console::notice("expected a or r: the contract names the anchor, so that an answer cannot change it");
    };
    let input = SessionId::generate();
    let signal = TaskSignal::Decide(decision);
    post_signal(sessions.store(), id, input.as_str(), &signal, prompter.user())
        .await
        .or_failed("cannot send the signal to the task")?;
    Ok(())
}

/// Returns the name of a gate.
pub(super) fn gate_name(gate: DecisionGate) -> &'static str {
    match gate {
        DecisionGate::Anchor => "anchor",
        DecisionGate::Result => "result",
    }
}

/// Returns the subject of the decision.
pub(super) fn describe_gate(task: &Task, gate: DecisionGate, id: &SessionId) -> String {
    match (gate, task.anchor(), task.best_candidate()) {
        (DecisionGate::Anchor, Some(anchor), _) => {
            let files = anchor.files().join(", ");
            let files = if files.is_empty() { String::new() } else { format!(" It adds to {files}.") };
            let text = format!(
                "The anchor fails as it should: {}.{files} `pintle task report {id}` shows it.",
                anchor.command()
            );
            sanitize(&text).into_owned()
        }
        (DecisionGate::Result, _, Some(best)) => {
            let proof = task.candidates().get(best).and_then(TaskCandidate::proof);
            let forced = proof.map(|proof| proof.forced().join(", ")).filter(|files| !files.is_empty());
            let forced = forced.map(|files| {
                format!(" It changes files that judge, and the checks fail with the original ones: {files}.")
            });
            let forced = sanitize(forced.as_deref().unwrap_or_default()).into_owned();
            format!(
                "Candidate {best} has its evidence.{forced} `pintle task report {id}` shows it, and `pintle task apply {id} --candidate {best} --patch` shows its change."
            )
        }
        (DecisionGate::Anchor | DecisionGate::Result, _, _) => "The task waits for a decision.".to_owned(),
    }
}

/// Returns the decision of an answer; `None` for an empty one.
fn parse_answer(gate: DecisionGate, answer: &str) -> Option<GateAnswer> {
    let (is_approved, words) = match answer.trim() {
        "" => return None,
        "a" | "approve" | "allow" => (true, None),
        "r" | "refuse" => (false, None),
        words => (false, Some(words.to_owned())),
    };
    Some(GateAnswer { gate, is_approved, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_decision() {
        for (answer, expected) in [
            ("a", Some((true, None))),
            (" approve ", Some((true, None))),
            ("allow", Some((true, None))),
            ("r", Some((false, None))),
            ("test zero too", Some((false, Some("test zero too")))),
            ("  ", None),
        ] {
            let decided = parse_answer(DecisionGate::Anchor, answer);
            let decided = decided.as_ref().map(|decision| (decision.is_approved, decision.words.as_deref()));
            assert_eq!(decided, expected, "{answer}");
        }
    }
}
