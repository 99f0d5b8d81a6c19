//! How much the evidence of a result proves: its controls, its mutants, and the hidden anchor.

use pintle_evidence::control_plan::ControlKind;
use pintle_evidence::proof::{MutantRun, Proof};

use super::ReportItem;
use crate::task::Task;

/// Returns the remarks about the repository, and about a hidden anchor that is missing or that no candidate passes.
pub(super) fn remarks(task: &Task) -> Vec<String> {
    let mut remarks = task.baseline().map(|baseline| baseline.remarks.clone()).unwrap_or_default();
    remarks.extend(task.hidden_problem().map(|problem| format!("there is no hidden anchor: {problem}")));
    if task.is_hidden_doubtful() {
        remarks.push("all candidates fail the hidden anchor, so its test is doubtful".to_owned());
    }
    remarks
}

/// Returns the lines about the strength of a proof. Parts that do not apply have none.
pub(super) fn strength_lines(proof: &Proof) -> Vec<ReportItem> {
    let mut lines = Vec::new();
    if let Some(anchor) = proof.anchor() {
        let kinds: Vec<&str> = anchor.controls().iter().copied().map(ControlKind::describe).collect();
        if !kinds.is_empty() {
            let text = format!("Controls: the test of the anchor fails with {}.", kinds.join(", and with "));
            lines.push(ReportItem::from_text(&text));
        } else {
            let text = match anchor.control() {
                Some(_) => "Weak control: a test that always fails is reported as failed.",
                None => "Weak control: no variant of the anchor can be run, so its result is not controlled.",
            };
            lines.push(ReportItem::from_text(text));
        }
        if !anchor.regression().is_empty() {
            let line = ReportItem::default().text("Existing tests that matter: ").names(anchor.regression());
            lines.push(line.text("."));
        }
    }
    lines.extend(mutants_line(proof));
    lines.extend(proof.passes_hidden().map(|passes| {
        ReportItem::from_text(if passes {
            "Hidden anchor: a second test, which the candidate does not know, passes."
        } else {
            "Hidden anchor: a second test, which the candidate does not know, fails. This refuses nothing alone."
        })
    }));
    lines
}

fn mutants_line(proof: &Proof) -> Option<ReportItem> {
    let mutants = proof.mutants();
    let unnoticed: Vec<&MutantRun> = mutants.iter().filter(|mutant| !mutant.is_noticed).collect();
    if mutants.is_empty() {
        return None;
    }
    if unnoticed.is_empty() {
        let text = format!("Mutants: the tests notice each of {} in changed lines.", mutants.len());
        return Some(ReportItem::from_text(&text));
    }
    let text = format!("Weak evidence: the tests miss {} of {} mutants: ", unnoticed.len(), mutants.len());
    let mut line = ReportItem::default().text(text);
    for (index, MutantRun { file, line: number, from, to, .. }) in unnoticed.into_iter().enumerate() {
        line = if index == 0 { line } else { line.text(", ") };
        line = line.code(from).text(" as ").code(to).text(" in ").code(&format!("{file}:{number}"));
    }
    Some(line.text("."))
}
