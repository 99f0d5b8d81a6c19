//! Tasks from their contracts to their ends.

#![expect(clippy::wildcard_enum_match_arm, reason = "each test is about some kinds of steps")]

mod comparison;
mod limits;
mod planning;

use proptest::prelude::*;

use super::*;
use crate::contract::{CandidatePlan, ReviewPlan, TaskBudget, TaskCheck};
use crate::tests::facts::{anchor, baseline, evidence, review, successful_output, worked};

fn contract() -> Contract {
    Contract::new("Sums of negative numbers are right.").with_check(TaskCheck::new("tests", "make test"))
}

/// A task, and the steps that it has wanted.
struct PlayedTask {
    task: Task,
    steps: Vec<String>,
}

impl PlayedTask {
    fn new(contract: Contract) -> Self {
        Self { task: Task::new(contract).unwrap(), steps: Vec::new() }
    }

    /// Carries out all steps that are wanted, one after the other, until the task wants a person or has ended.
    fn play(&mut self, mut find: impl FnMut(&TaskStep) -> (StepOutput, f64)) -> &mut Self {
        for _ in 0..200 {
            let Some(step) = self.task.pending().steps.into_iter().next() else { return self };
            self.steps.push(step.id.to_string());
            let (output, usd) = find(&step);
            self.finish(step.id, output, usd);
        }
        panic!("{:?} goes on without end", self.steps);
    }

    fn finish(&mut self, step: StepId, output: StepOutput, usd: f64) {
        self.task.apply(TaskInput::StepStarted(step.clone()));
        let spent = WorkCost { usd, tokens: 10, millis: 1_000, ..WorkCost::default() };
        assert!(self.task.apply(TaskInput::StepFinished(Box::new(StepResult { step, output, spent }))));
    }

    fn decide(&mut self, gate: DecisionGate, is_approved: bool, words: Option<&str>) -> bool {
        let words = words.map(str::to_owned);
        self.task.apply(TaskInput::Signal(TaskSignal::Decide(GateAnswer { gate, is_approved, words })))
    }

    fn end(&self) -> String {
        match self.task.outcome().unwrap() {
            TaskOutcome::Done(done) => format!("done by {}", done.candidate()),
            outcome => format!("{outcome:?}"),
        }
    }
}

/// Finds what leads to the goal at once.
fn right(step: &TaskStep) -> (StepOutput, f64) {
    (successful_output(step.id.kind), 0.1)
}

#[test]
fn a_task_goes_from_the_baseline_to_its_review() {
    let mut played = PlayedTask::new(contract());
    played.play(right);
    assert_eq!(played.steps, ["baseline-1", "anchor-1", "work-0-1", "evidence-0-1", "review-0-1"]);
    assert_eq!(played.end(), "done by 0");
    let Some(TaskOutcome::Done(done)) = played.task.outcome() else { unreachable!() };
    assert!(done.proof().anchor().is_some() && done.review().is_some());
    assert!((played.task.spent().usd - 0.5).abs() < 1e-9);
    assert_eq!(played.task.pending(), PendingWork::default(), "nothing follows");
}

#[test]
fn a_candidate_is_told_what_is_missing() {
    let mut told = Vec::new();
    let mut played = PlayedTask::new(contract().with_attempts(3));
    played.play(|step| {
        if let StepOrder::Work { feedback, .. } = &step.order {
            told.push(feedback.clone().unwrap_or_default());
        }
        match (step.id.kind, step.id.attempt) {
            (StepKind::Evidence, 1) => (evidence(3, 1), 0.0),
            (StepKind::Evidence, 2) => (StepOutput::failed("the disk is full"), 0.0),
            (StepKind::Review, 3) => (review(&["name it better"]), 0.0),
            _ => right(step),
        }
    });
    assert_eq!(played.end(), "done by 0");
    assert_eq!(
        told,
        [
            "",
            "- check tests: it exited with 1\n",
            "- work: evidence failed: the disk is full\n",
            "- name it better\n"
        ]
    );
}

/// Returns the evidence of a change of a golden file without which the check fails.
fn forced_evidence() -> StepOutput {
    let (StepOutput::Evidence(mut facts), StepOutput::Evidence(with_change)) =
        (evidence(3, 1), evidence(3, 0))
    else {
        unreachable!()
    };
    let restorable = vec!["golden/a.txt".to_owned()];
    facts.judging = Some(crate::judging::JudgingFacts { restorable, ..Default::default() });
    facts.unrestored = Some(with_change);
    StepOutput::Evidence(facts)
}

#[test]
fn a_user_is_asked_once_about_tests_that_the_goal_changes() {
    let mut played = PlayedTask::new(contract().with_attempts(2));
    played.play(|step| match step.id.kind {
        StepKind::Evidence => (forced_evidence(), 0.0),
        _ => right(step),
    });
    // The first attempt is sent back, as any other that changes a test.
    let steps = ["work-0-1", "evidence-0-1", "work-0-2", "evidence-0-2", "review-0-2"];
    assert_eq!(played.steps[2..], steps);
    assert_eq!(played.task.pending().gate, Some(DecisionGate::Result));
    assert!(played.decide(DecisionGate::Result, true, None));
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn the_smaller_diff_of_those_that_are_proved_wins() {
    let mut played = PlayedTask::new(contract().with_candidates(vec![CandidatePlan::default(); 4]));
    played.play(|step| match (step.id.kind, step.id.candidate) {
        (StepKind::Evidence, Some(0)) => (evidence(9, 0), 0.0),
        (StepKind::Evidence, Some(1)) => (evidence(1, 1), 0.0),
        (StepKind::Evidence, Some(2)) => (evidence(5, 0), 0.4),
        (StepKind::Evidence, Some(3)) => (evidence(5, 0), 0.05),
        // The best one is refused for good, and the next one is taken.
        (StepKind::Review, Some(3)) => (review(&["no"]), 0.0),
        _ => right(step),
    });
    assert_eq!(played.end(), "done by 2");
    let outs: Vec<_> =
        played.task.candidates().iter().map(|candidate| candidate.stop_reason().unwrap_or("-")).collect();
    assert_eq!(outs, ["-", "another candidate has its evidence", "-", "the review has faults still"]);
    let reviews: Vec<_> = played.steps.iter().filter(|step| step.starts_with("review")).collect();
    assert_eq!(reviews, ["review-3-1", "review-3-2", "review-2-1"]);
}

#[test]
fn a_candidate_that_failed_waits_while_another_one_is_proved() {
    let two = contract().with_candidates(vec![CandidatePlan::default(); 2]);
    let wrong_then = |reviews: fn(&TaskStep) -> StepOutput| {
        let mut played = PlayedTask::new(two.clone());
        played.play(move |step| match (step.id.kind, step.id.candidate, step.id.attempt) {
            (StepKind::Evidence, Some(1), 1) => (evidence(3, 1), 0.0),
            (StepKind::Review, Some(0), _) => (reviews(step), 0.0),
            _ => right(step),
        });
        played
    };
    let accepted = wrong_then(|_| review(&[]));
    assert_eq!(accepted.steps[2..].join(" "), "work-0-1 evidence-0-1 work-1-1 evidence-1-1 review-0-1");
    assert_eq!(accepted.task.candidates()[1].stop_reason(), Some("another candidate has its evidence"));
    // It goes on once the other one has to.
    let refused = wrong_then(|_| review(&["no"]));
    assert_eq!(
        refused.steps[6..].join(" "),
        "review-0-1 work-0-2 evidence-0-2 review-0-2 work-1-2 evidence-1-2 review-1-2"
    );
    assert_eq!(refused.end(), "done by 1");
    // A cancelled task has no candidates that wait.
    let mut gated = PlayedTask::new(two.with_gate(DecisionGate::Result));
    gated.play(|step| match (step.id.kind, step.id.candidate) {
        (StepKind::Evidence, Some(1)) => (evidence(3, 1), 0.0),
        _ => right(step),
    });
    assert!(gated.task.is_waiting(1));
    gated.task.apply(TaskInput::Signal(TaskSignal::Cancel { reason: "enough".to_owned() }));
    assert!(!gated.task.is_waiting(1));
    // A step that has begun stays wanted, even after another candidate is proved.
    let mut late = PlayedTask::new(contract().with_candidates(vec![CandidatePlan::default(); 2]));
    let until = |late: &mut PlayedTask, last: &str| {
        while late.steps.last().is_none_or(|step| step != last) {
            let step =
                late.task.pending().steps.into_iter().find(|step| !late.task.has_started(&step.id)).unwrap();
            late.steps.push(step.id.to_string());
            let output = if step.id.to_string() == "evidence-0-1" { evidence(3, 1) } else { right(&step).0 };
            late.finish(step.id, output, 0.0);
        }
    };
    until(&mut late, "evidence-0-1");
    let again = late.task.pending().steps[0].id.clone();
    assert!(late.task.apply(TaskInput::StepStarted(again.clone())));
    until(&mut late, "evidence-1-1");
    assert!(late.task.candidates()[1].proof().is_some() && !late.task.is_waiting(0));
    assert_eq!(late.task.pending().steps.into_iter().map(|step| step.id).collect::<Vec<_>>(), [again]);
}

#[test]
fn work_in_a_loop_is_judged_and_not_retried() {
    let ending = |findings: i32| {
        let mut played = PlayedTask::new(contract().with_attempts(3));
        played.play(|step| match step.id.kind {
            StepKind::Work => (worked(WorkEnd::Loop), 0.0),
            StepKind::Evidence => (evidence(3, findings), 0.0),
            _ => right(step),
        });
        let out = played.task.candidates()[0].stop_reason().unwrap_or("-").to_owned();
        (played.end(), out)
    };
    assert_eq!(ending(0), ("done by 0".to_owned(), "-".to_owned()));
    let stopped = "it repeated the same calls, and was stopped".to_owned();
    assert_eq!(ending(1), ("Blocked(NoCandidate)".to_owned(), stopped));
}

#[test]
fn without_proof_nothing_is_done() {
    let none = |output: fn(&TaskStep) -> StepOutput| {
        let mut played = PlayedTask::new(contract());
        played.play(|step| (output(step), 0.0));
        played.end()
    };
    let said = [
        none(|step| if step.id.kind == StepKind::Anchor { anchor(0) } else { right(step).0 }),
        none(|step| if step.id.kind == StepKind::Evidence { evidence(3, 1) } else { right(step).0 }),
        none(|step| {
            if step.id.kind == StepKind::Work {
                StepOutput::failed("there is no model")
            } else {
                right(step).0
            }
        }),
        none(|step| {
            if step.id.kind == StepKind::Baseline {
                StepOutput::failed("there is no git")
            } else {
                right(step).0
            }
        }),
        // A step that found something else has found nothing.
        none(|step| match step.id.kind {
            StepKind::Evidence => review(&[]),
            StepKind::Work if step.id.attempt > 1 => StepOutput::failed("it is over"),
            _ => right(step).0,
        }),
    ];
    insta::assert_snapshot!(said.join("\n"), @r#"
    Blocked(NoAnchor([["it passes before anything was done; expected that it fails"], ["it passes before anything was done; expected that it fails"], ["it passes before anything was done; expected that it fails"]]))
    Blocked(NoCandidate)
    Blocked(NoCandidate)
    Failed { step: StepId { kind: Baseline, candidate: None, attempt: 1, round: 0 }, reason: "there is no git" }
    Blocked(NoCandidate)
    "#);
}

/// Returns a failure that neither a proposal nor a candidate has caused.
fn external(reason: &str) -> StepOutput {
    StepOutput::Failed { reason: reason.to_owned(), is_external: true }
}

#[test]
fn an_error_of_a_provider_ends_the_task_as_failed() {
    let ended = |candidates: usize, find: &dyn Fn(&TaskStep) -> Option<StepOutput>| {
        let plans = vec![CandidatePlan::default(); candidates];
        let mut played = PlayedTask::new(contract().with_candidates(plans).with_attempts(2));
        played.play(|step| (find(step).unwrap_or_else(|| right(step).0), 0.0));
        assert_eq!(played.task.proposals().len(), 0, "it says nothing about an anchor");
        (played.end(), played.steps.join(" "))
    };
    for (kind, candidates, step, steps) in [
        (StepKind::Anchor, 1, "kind: Anchor, candidate: None, attempt: 1", "anchor-1"),
        // Each candidate has its attempts.
        (
            StepKind::Work,
            2,
            "kind: Work, candidate: Some(0), attempt: 2",
            "work-0-1 work-0-2 work-1-1 work-1-2",
        ),
        (
            StepKind::Review,
            1,
            "kind: Review, candidate: Some(0), attempt: 1",
            "work-0-1 evidence-0-1 review-0-1",
        ),
    ] {
        let failing = |step: &TaskStep| (step.id.kind == kind).then(|| external("401: no key"));
        let (end, all) = ended(candidates, &failing);
        assert_eq!(end, format!("Failed {{ step: StepId {{ {step}, round: 0 }}, reason: \"401: no key\" }}"));
        assert!(all.ends_with(steps), "{all}");
    }
    // Another candidate reaches the goal, or was judged.
    let first = |step: &TaskStep| {
        (step.id.kind == StepKind::Work && step.id.candidate == Some(0)).then(|| external("overloaded"))
    };
    assert_eq!(ended(2, &first).0, "done by 1");
    let wrong = |step: &TaskStep| match step.id.kind {
        StepKind::Evidence => Some(evidence(3, 1)),
        _ => first(step),
    };
    assert_eq!(ended(2, &wrong).0, "Blocked(NoCandidate)");
}

#[test]
fn an_error_of_a_provider_is_no_finding_for_the_model() {
    let mut told = Vec::new();
    let mut played = PlayedTask::new(contract().with_attempts(4));
    played.play(|step| {
        if let StepOrder::Work { feedback, .. } = &step.order {
            told.push(feedback.clone());
        }
        match (step.id.kind, step.id.attempt) {
            (StepKind::Work, 1 | 3) => (external("overloaded"), 0.0),
            (StepKind::Evidence, 2) => (evidence(3, 1), 0.0),
            _ => right(step),
        }
    });
    assert_eq!(played.end(), "done by 0");
    let missing = Some("- check tests: it exited with 1\n".to_owned());
    assert_eq!(told, [None, None, missing.clone(), missing]);
}

/// Older versions recorded no cause of a failure.
#[test]
fn failures_of_older_records_are_of_the_proposal() {
    let output: StepOutput = serde_json::from_str(r#"{"failed": {"reason": "no"}}"#).unwrap();
    assert_eq!(output, StepOutput::failed("no"));
    assert_eq!(serde_json::to_string(&output).unwrap(), r#"{"failed":{"reason":"no"}}"#);
    let text = serde_json::to_string(&external("no")).unwrap();
    assert_eq!(serde_json::from_str::<StepOutput>(&text).unwrap(), external("no"));
}

#[test]
fn a_candidate_has_one_state_in_words() {
    let two = contract().with_candidates(vec![CandidatePlan::default(); 2]);
    let mut played = PlayedTask::new(two.with_attempts(1).with_review(ReviewPlan { rounds: 0, model: None }));
    let states = |task: &Task| {
        assert_eq!(task.candidate_state(2), None);
        [0, 1].map(|candidate| task.candidate_state(candidate).unwrap()).join(" | ")
    };
    let mut seen = Vec::new();
    played.play(|step| match (step.id.kind, step.id.candidate) {
        (StepKind::Work, Some(1)) => (external("overloaded"), 0.0),
        _ => right(step),
    });
    seen.push(states(&played.task));
    let mut going = PlayedTask::new(contract().with_candidates(vec![CandidatePlan::default(); 2]));
    for output in [baseline(), anchor(1), worked(WorkEnd::Finished)] {
        seen.push(states(&going.task));
        going.finish(going.task.pending().steps[0].id.clone(), output, 0.0);
    }
    seen.push(states(&going.task));
    going.finish(going.task.pending().steps[0].id.clone(), evidence(3, 0), 0.0);
    let second = StepId { kind: StepKind::Work, candidate: Some(1), attempt: 1, round: 0 };
    going.finish(second.clone(), worked(WorkEnd::Finished), 0.0);
    going.finish(StepId { kind: StepKind::Evidence, ..second }, evidence(3, 1), 0.0);
    seen.push(states(&going.task));
    going.task.apply(TaskInput::Signal(TaskSignal::Cancel { reason: "enough".to_owned() }));
    seen.push(states(&going.task));
    insta::assert_snapshot!(seen.join("\n"), @r"
    reached the goal | work failed: overloaded
    works on attempt 1 | works on attempt 1
    works on attempt 1 | works on attempt 1
    works on attempt 1 | works on attempt 1
    attempt 1 is judged | works on attempt 1
    has its evidence | waits: another candidate has its evidence
    has its evidence | stopped
    ");
}

#[test]
fn words_reach_the_attempt_that_begins_next_and_change_none_that_has_begun() {
    let said = |task: &Task| match &task.pending().steps[0].order {
        StepOrder::Work { feedback, .. } => feedback.clone(),
        order => panic!("{order:?}"),
    };
    let steer = |task: &mut Task, text: &str| {
        task.apply(TaskInput::Signal(TaskSignal::Steer { candidate: Some(0), text: text.to_owned() }));
    };
    let mut played = PlayedTask::new(contract().with_attempts(4));
    steer(&mut played.task, "early");
    for output in [baseline(), anchor(1)] {
        played.finish(played.task.pending().steps[0].id.clone(), output, 0.0);
    }
    let step = played.task.pending().steps[0].id.clone();
    played.task.apply(TaskInput::StepStarted(step.clone()));
    steer(&mut played.task, "late");
    assert_eq!(said(&played.task).unwrap(), "- early\n", "the message stays that which was sent");
    played.finish(step, StepOutput::failed("the disk is full"), 0.0);
    let first = "- work: work failed: the disk is full\n- early\n- late\n";
    assert_eq!(said(&played.task).unwrap(), first, "a session may never have read them");
    assert!(!played.task.candidates()[0].has_worked());
    played.finish(played.task.pending().steps[0].id.clone(), worked(WorkEnd::Finished), 0.0);
    assert!(played.task.candidates()[0].has_worked());
    steer(&mut played.task, "between");
    played.finish(played.task.pending().steps[0].id.clone(), evidence(3, 1), 0.0);
    assert_eq!(said(&played.task).unwrap(), "- check tests: it exited with 1\n- between\n");
}

#[test]
fn a_refusal_of_a_person_leaves_the_review_its_rounds() {
    let mut played = PlayedTask::new(contract().with_gate(DecisionGate::Result));
    played.play(right);
    assert!(played.decide(DecisionGate::Result, false, Some("shorter")));
    played.play(|step| match (step.id.kind, step.id.attempt) {
        (StepKind::Review, 2) => (review(&["a fault"]), 0.0),
        _ => right(step),
    });
    assert!(played.decide(DecisionGate::Result, true, None));
    assert_eq!(played.end(), "done by 0");
    assert_eq!(played.task.candidates()[0].attempts().len(), 3);
}

#[test]
fn people_decide_steer_and_cancel() {
    let gates = contract().with_gate(DecisionGate::Anchor).with_gate(DecisionGate::Result);
    let mut played = PlayedTask::new(gates.clone());
    assert!(!played.decide(DecisionGate::Anchor, true, None), "nobody was asked");
    played.play(right);
    assert_eq!(played.task.pending().gate, Some(DecisionGate::Anchor));
    assert!(!played.decide(DecisionGate::Result, true, None), "it is about something else");
    assert!(played.decide(DecisionGate::Anchor, false, Some("test zero as well")));
    let [step] = &played.task.pending().steps[..] else { unreachable!() };
    assert_eq!(
        step.order,
        StepOrder::Anchor { feedback: Some("test zero as well".to_owned()), limits: WorkLimits::default() }
    );
    played.play(right);
    assert!(played.decide(DecisionGate::Anchor, true, None));
    assert!(
        played
            .task
            .apply(TaskInput::Signal(TaskSignal::Steer { candidate: None, text: "use integers".to_owned() }))
    );
    let [step] = &played.task.pending().steps[..] else { unreachable!() };
    assert!(
        matches!(&step.order, StepOrder::Work { feedback: Some(said), .. } if said == "- use integers\n"),
        "{step:?}"
    );
    played.play(right);
    assert_eq!((played.task.pending().gate, played.task.outcome()), (Some(DecisionGate::Result), None));
    assert!(played.decide(DecisionGate::Result, false, Some("shorter")));
    played.play(right);
    assert!(played.decide(DecisionGate::Result, true, None));
    assert_eq!(played.end(), "done by 0");
    assert!(!played.decide(DecisionGate::Result, true, None), "it is over");

    let mut refused = PlayedTask::new(gates.clone());
    refused.play(right);
    refused.decide(DecisionGate::Anchor, false, None);
    assert_eq!(refused.end(), "Blocked(Refused { gate: Anchor, words: None })");
    let mut cancelled = PlayedTask::new(gates);
    cancelled.task.apply(TaskInput::Signal(TaskSignal::Cancel { reason: "enough".to_owned() }));
    assert_eq!(cancelled.end(), r#"Aborted { reason: "enough" }"#);
    assert_eq!(cancelled.task.pending(), PendingWork::default());
}

/// Returns something that a step of this kind might find, by number.
fn anything(kind: StepKind, number: u8) -> StepOutput {
    match (kind, number % 8) {
        (_, 0) => StepOutput::Failed { reason: "no".to_owned(), is_external: number > 100 },
        // It is no answer to this step.
        (_, 1) => worked(WorkEnd::Finished),
        (StepKind::Baseline, _) => baseline(),
        (StepKind::Anchor, number) => anchor(i32::from(number > 3)),
        (StepKind::Work, 2) => worked(WorkEnd::Limit),
        (StepKind::Work, _) => worked(WorkEnd::Finished),
        (StepKind::Evidence, number @ 2..5) => evidence(u64::from(number), 0),
        (StepKind::Evidence, number) => evidence(1, i32::from(number)),
        (StepKind::Review, 2..5) => review(&[]),
        (StepKind::Review, 5) => StepOutput::AtLimit { session: "s".to_owned() },
        (StepKind::Review, _) => review(&["a fault"]),
        (StepKind::Plan, _) => StepOutput::failed("there is no plan"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if pintle_test_conditions::is_full() { 512 } else { 64 }))]

    #[test]
    fn every_task_ends_and_done_means_proved(
        output in proptest::collection::vec((0..=u8::MAX, 0..4_usize, 0.0..0.3_f64), 400),
        candidates in 1..4_usize,
        attempts in 1..4_u32,
        rounds in 0..3_u32,
        usd in proptest::option::of(0.1..3.0_f64),
    ) {
        let contract = contract()
            .with_attempts(attempts)
            .with_candidates(vec![CandidatePlan::default(); candidates])
            .with_review(ReviewPlan { rounds, ..ReviewPlan::default() })
            .with_budget(TaskBudget { usd, ..TaskBudget::default() });
        let mut task = Task::new(contract).unwrap();
        let (mut inputs, mut sum) = (Vec::new(), 0.0);
        for (number, at, cost) in output {
            let steps = task.pending().steps;
            let Some(step) = steps.get(at % steps.len().max(1)) else { break };
            let output = anything(step.id.kind, number);
            let spent = WorkCost { usd: cost, ..WorkCost::default() };
            sum += cost;
            let (began, id) = (TaskInput::StepStarted(step.id.clone()), step.id.clone());
            let finished = TaskInput::StepFinished(Box::new(StepResult { step: id, output, spent }));
            task.apply(began.clone());
            prop_assert!(task.apply(finished.clone()));
            prop_assert!(!task.apply(TaskInput::StepFinished(Box::new(StepResult {
                step: step.id.clone(), output: right(step).0, spent: WorkCost::default(),
            }))), "a step counts once");
            inputs.extend([began, finished]);
        }
        prop_assert!(task.outcome().is_some(), "{:?}", task.pending());
        prop_assert!((task.spent().usd - sum).abs() < 1e-9);
        if let Some(TaskOutcome::Done(done)) = task.outcome() {
            let candidate = &task.candidates()[done.candidate()];
            prop_assert_eq!(candidate.proof(), Some(done.proof()));
            prop_assert!(rounds == 0 || candidate.review().is_some_and(|review| review.findings.is_empty()));
        }
        // The same inputs lead to the same end.
        let mut again = Task::new(task.contract().clone()).unwrap();
        let text = serde_json::to_string(&inputs).unwrap();
        for input in serde_json::from_str::<Vec<TaskInput>>(&text).unwrap() {
            again.apply(input);
        }
        prop_assert_eq!(again.outcome(), task.outcome());
    }
}
