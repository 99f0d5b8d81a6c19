//! Candidates that have their evidence are compared, and ranked by a hidden anchor.

use pintle_evidence::proof::{CandidateFacts, MutantRun};
use pintle_evidence::testing::run;

use super::*;
use crate::contract::EvidencePlan;

fn candidates(number: usize) -> Contract {
    contract().with_attempts(1).with_candidates(vec![CandidatePlan::default(); number])
}

/// A place in a comparison, with findings.
type Place<'a> = (u32, &'a [&'a str]);

/// Returns a comparison with the places of the reviewed candidate and of the others.
fn compared((rank, findings): Place<'_>, others: &[(usize, Place<'_>)]) -> StepOutput {
    let owned = |findings: &[&str]| findings.iter().map(|finding| (*finding).to_owned()).collect();
    let other = |(candidate, (rank, findings)): &(usize, Place<'_>)| ComparedCandidate {
        candidate: *candidate,
        findings: owned(findings),
        rank: *rank,
    };
    let others = others.iter().map(other).collect();
    StepOutput::Review(ReviewFacts { rank: Some(rank), others, ..ReviewFacts::new("r", owned(findings), "") })
}

fn reviews(played: &PlayedTask) -> Vec<&str> {
    played.steps.iter().map(String::as_str).filter(|step| step.starts_with("review")).collect()
}

/// Returns evidence with changes of its facts.
fn changed_evidence(lines: u64, change: impl FnOnce(&mut CandidateFacts)) -> StepOutput {
    let StepOutput::Evidence(mut facts) = evidence(lines, 0) else { unreachable!() };
    change(&mut facts);
    StepOutput::Evidence(facts)
}

#[test]
fn a_review_compares_all_that_are_proved() {
    let mut played = PlayedTask::new(candidates(3));
    played.play(|step| match (step.id.kind, step.id.candidate) {
        (StepKind::Evidence, Some(0)) => (evidence(9, 0), 0.0),
        (StepKind::Evidence, Some(1)) => (evidence(1, 1), 0.0),
        (StepKind::Evidence, Some(2)) => (evidence(1, 0), 0.0),
        (StepKind::Review, _) => (compared((1, &[]), &[(0, (0, &[])), (1, (2, &[]))]), 0.0),
        _ => right(step),
    });
    assert_eq!(played.end(), "done by 0");
    assert_eq!(reviews(&played), ["review-2-1"]);
    let Some(TaskOutcome::Done(done)) = played.task.outcome() else { unreachable!() };
    assert_eq!(done.review().unwrap().rank, Some(0));
    assert_eq!(played.task.candidates()[1].review(), None, "it has no proof");
}

#[test]
fn candidates_with_new_attempts_are_compared_again() {
    let mut played = PlayedTask::new(candidates(2));
    played.play(|step| match (step.id.kind, step.id.candidate, step.id.attempt) {
        (StepKind::Review, Some(0), 1) => (compared((0, &["wrong"]), &[(1, (1, &["wrong"]))]), 0.0),
        (StepKind::Review, Some(0), 2) => (compared((1, &[]), &[(1, (0, &[]))]), 0.0),
        _ => right(step),
    });
    assert_eq!(reviews(&played), ["review-0-1", "review-0-2"]);
    assert_eq!(played.end(), "done by 1");
}

#[test]
fn a_candidate_with_findings_stops_if_another_one_has_none() {
    let mut played = PlayedTask::new(candidates(2));
    played.play(|step| match step.id.kind {
        StepKind::Review => (compared((0, &["wrong"]), &[(1, (1, &[]))]), 0.0),
        _ => right(step),
    });
    assert_eq!((played.end().as_str(), reviews(&played).len()), ("done by 1", 1));
    let stopped = &played.task.candidates()[0];
    assert_eq!(stopped.stop_reason(), Some("the comparison prefers another candidate"));
    assert_eq!(stopped.review().unwrap().findings, ["wrong"]);
}

/// Earlier versions recorded reviews of the best candidate alone.
#[test]
fn a_review_without_a_comparison_accepts_the_best_candidate() {
    let mut played = PlayedTask::new(candidates(2));
    played.play(right);
    assert_eq!(reviews(&played), ["review-0-1"]);
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn weak_evidence_waits_only_if_the_contract_asks() {
    let mutant = MutantRun {
        file: "src/sums.py".to_owned(),
        line: 2,
        from: "+".to_owned(),
        to: "-".to_owned(),
        is_noticed: false,
    };
    let find = |step: &TaskStep| match step.id.kind {
        StepKind::Evidence => (changed_evidence(3, |facts| facts.mutants.push(mutant.clone())), 0.0),
        _ => right(step),
    };
    let mut reporting = PlayedTask::new(candidates(1));
    reporting.play(find);
    assert_eq!(reporting.end(), "done by 0");
    let ask = EvidencePlan { on_weak: OnWeakEvidence::Ask, ..EvidencePlan::default() };
    let mut asking = PlayedTask::new(candidates(1).with_evidence(ask));
    asking.play(find);
    assert_eq!((asking.task.outcome(), asking.task.pending().gate), (None, Some(DecisionGate::Result)));
    assert!(asking.decide(DecisionGate::Result, true, None));
    assert_eq!(asking.end(), "done by 0");
    let mut strong = PlayedTask::new(candidates(1).with_evidence(ask));
    strong.play(right);
    assert_eq!(strong.end(), "done by 0");
}

#[test]
fn a_hidden_anchor_ranks_before_the_size_and_refuses_none() {
    let rounds = ReviewPlan { rounds: 0, ..ReviewPlan::default() };
    for (passing, expected, is_doubtful) in [([false, true], 1, false), ([false, false], 0, true)] {
        let mut played = PlayedTask::new(candidates(2).with_review(rounds.clone()));
        played.play(|step| match (step.id.kind, step.id.candidate) {
            (StepKind::Anchor, _) => {
                let StepOutput::Anchor(mut facts) = anchor(1) else { unreachable!() };
                facts.hidden = Some(facts.clone());
                (StepOutput::Anchor(facts), 0.0)
            }
            (StepKind::Evidence, Some(index)) => {
                let hidden = if passing[index] { run(0, "+new") } else { run(1, "-new") };
                let lines = if index == 0 { 1 } else { 9 };
                (changed_evidence(lines, |facts| facts.hidden.push(hidden)), 0.0)
            }
            _ => right(step),
        });
        assert_eq!(played.end(), format!("done by {expected}"));
        assert_eq!(played.task.is_hidden_doubtful(), is_doubtful);
    }
}
