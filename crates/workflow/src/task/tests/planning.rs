//! Tasks that are carried out in steps.

use std::collections::BTreeMap;

use pintle_evidence::diff::ChangedFile;
use pintle_evidence::proof::CandidateFacts;
use pintle_evidence::testing::{diff, modified, plain};
use proptest::prelude::*;

use super::*;
use crate::contract::{BaseCommit, PlanSettings, TaskScope};
use crate::prompts::{self, PlanRequest};

fn planned(rounds: u32) -> Contract {
    contract().with_plan(PlanSettings::at_most(rounds))
}

/// Returns the answer of a planner: the goals of the next step and of those after it.
fn plan(goals: &[&str]) -> StepOutput {
    let mut goals = goals.iter().copied();
    let next = goals.next().map(PlannedStep::new);
    let remaining = goals.map(str::to_owned).collect();
    StepOutput::Plan(PlanFacts { next, remaining, ..PlanFacts::finished("p") })
}

fn next(step: PlannedStep) -> StepOutput {
    StepOutput::Plan(PlanFacts { next: Some(step), ..PlanFacts::finished("p") })
}

/// Returns work with a patch of this name.
fn work(patch: &str, confidence: Confidence, needs_replan: Option<&str>) -> StepOutput {
    let mut diff = diff([modified("src/sums.py", 1, 1)]);
    diff.patch.hash = patch.to_owned();
    let report = Some(StepReport { confidence, needs_replan: needs_replan.map(str::to_owned) });
    StepOutput::Work(WorkFacts {
        session: "s".to_owned(),
        end: WorkEnd::Finished,
        diff: Some(diff),
        unfit: None,
        report,
    })
}

/// Returns the evidence of a step that changed these files, whose check exits with this code.
fn judged(files: Vec<ChangedFile>, code: i32) -> StepOutput {
    let mut change = CandidateFacts::from_diff(diff(files.clone()));
    change.checks = BTreeMap::from([("tests".to_owned(), vec![plain(code)])]);
    change.anchor = vec![plain(1)];
    StepOutput::StepEvidence(Box::new(StepFacts { change, files, own: Vec::new() }))
}

fn held() -> StepOutput {
    judged(vec![modified("src/sums.py", 1, 1)], 0)
}

fn failed() -> StepOutput {
    judged(vec![modified("src/sums.py", 1, 1)], 1)
}

/// Answers each step of a plan with the first of its answers that is left, and all other steps rightly. Without an answer, the
/// planner has finished, work has the name of its step, and its evidence holds.
fn play(contract: Contract, mut answers: BTreeMap<&str, Vec<StepOutput>>) -> PlayedTask {
    let mut played = PlayedTask::new(contract);
    played.play(|step| {
        let name = step.id.to_string();
        let answer =
            answers.get_mut(name.as_str()).filter(|left| !left.is_empty()).map(|left| left.remove(0));
        let output = answer.unwrap_or_else(|| match (step.id.kind, step.id.round) {
            (StepKind::Plan, _) => plan(&[]),
            (StepKind::Work, 1..) => work(&name, Confidence::High, None),
            (StepKind::Evidence, 1..) => held(),
            _ => right(step).0,
        });
        (output, 0.1)
    });
    played
}

fn task_plan(played: &PlayedTask) -> &TaskPlan {
    played.task.plan().unwrap()
}

fn states(played: &PlayedTask) -> Vec<String> {
    task_plan(played).rounds().iter().map(PlanRound::state).collect()
}

#[test]
fn steps_follow_each_other_and_the_whole_change_is_judged_once() {
    let answers =
        BTreeMap::from([("r1-plan-1", vec![plan(&["one", "two"])]), ("r2-plan-1", vec![plan(&["two"])])]);
    let played = play(planned(5), answers);
    assert_eq!(
        played.steps.join(" "),
        "baseline-1 anchor-1 r1-plan-1 r1-work-0-1 r1-evidence-0-1 r2-plan-1 r2-work-0-1 r2-evidence-0-1 r3-plan-1 \
         evidence-0-1 review-0-1"
    );
    assert_eq!(played.end(), "done by 0");
    let first = &played.task.candidates()[0];
    assert_eq!(first.diff().unwrap().patch.hash, "r2-work-0-1", "the newest snapshot is the change");
    assert!(
        (first.spent().usd - 0.9).abs() < 1e-9,
        "the steps of the plan are its work: {:?}",
        first.spent()
    );
    assert!((task_plan(&played).spent().usd - 0.3).abs() < 1e-9);
    assert!((task_plan(&played).rounds()[1].spent().usd - 0.2).abs() < 1e-9);
    assert_eq!(states(&played), ["holds", "holds"]);
}

#[test]
fn a_goal_without_steps_is_worked_on_as_one() {
    let played = play(planned(5).with_candidates(vec![CandidatePlan::default(); 2]), BTreeMap::new());
    assert_eq!(played.steps[2..4].join(" "), "r1-plan-1 work-0-1");
    assert!(task_plan(&played).is_skipped());
    assert_eq!(played.end(), "done by 0");
    // A goal that is not large has no planner.
    assert!(play(contract(), BTreeMap::new()).steps.iter().all(|step| !step.contains("plan")));
}

#[test]
fn a_failed_step_keeps_the_snapshot_before_it() {
    let answers = BTreeMap::from([
        ("r1-plan-1", vec![plan(&["one"])]),
        ("r2-plan-1", vec![plan(&["two"])]),
        ("r2-evidence-0-1", vec![failed()]),
        ("r2-evidence-1-1", vec![failed()]),
    ]);
    let played = play(planned(5), answers);
    assert_eq!(states(&played), ["holds", "failed"]);
    assert!(played.steps.contains(&"r2-work-1-1".to_owned()), "a second candidate worked on it");
    assert_eq!(played.task.candidates()[0].diff().unwrap().patch.hash, "r1-work-0-1");
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn the_next_candidate_of_a_step_has_the_findings_as_feedback() {
    let mut told = None;
    let mut played = PlayedTask::new(planned(2));
    played.play(|step| {
        if let (StepOrder::Work { feedback, .. }, Some(1)) = (&step.order, step.id.candidate) {
            told.clone_from(feedback);
        }
        let output = match (step.id.to_string().as_str(), step.id.kind) {
            ("r1-plan-1", _) => plan(&["one"]),
            ("r1-evidence-0-1", _) => failed(),
            (_, StepKind::Work) => work("a", Confidence::High, None),
            (_, StepKind::Evidence) if step.id.round > 0 => held(),
            _ => right(step).0,
        };
        (output, 0.0)
    });
    assert_eq!(told.as_deref(), Some("- check tests: it passed before, and exited with 1\n"));
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn a_second_candidate_works_only_after_low_evidence_or_confidence() {
    use Confidence::{High, Low, Medium};
    for (first, second, chosen) in [
        (work("a", High, None), work("b", High, None), "a"),
        (work("a", Medium, None), work("b", High, None), "a"),
        (work("a", Low, None), work("b", Medium, None), "b"),
        // Without a difference, the first one is chosen.
        (work("a", Low, None), work("b", Low, None), "a"),
        // A plan that has to change has no second candidate.
        (work("a", Low, Some("split it")), work("b", High, None), "a"),
    ] {
        let answers = BTreeMap::from([
            ("r1-plan-1", vec![plan(&["one"])]),
            ("r1-work-0-1", vec![first]),
            ("r1-work-1-1", vec![second]),
        ]);
        let played = play(planned(3), answers);
        assert_eq!(played.task.candidates()[0].diff().unwrap().patch.hash, chosen, "{:?}", played.steps);
        assert_eq!(played.end(), "done by 0");
    }
}

#[test]
fn a_report_that_the_plan_has_to_change_is_in_the_backlog() {
    let mut played = PlayedTask::new(planned(3));
    let mut backlogs = Vec::new();
    for _ in 0..20 {
        let Some(step) = played.task.pending().steps.into_iter().next() else { break };
        backlogs.push(task_plan(&played).backlog().join(", "));
        let output = match (step.id.kind, step.id.round) {
            (StepKind::Plan, 1) => plan(&["one", "two"]),
            (StepKind::Work, 1) => work("a", Confidence::High, Some("the parser comes first")),
            (StepKind::Evidence, 1) => held(),
            _ => right(&step).0,
        };
        played.finish(step.id, output, 0.0);
    }
    assert!(backlogs.contains(&"the parser comes first, two".to_owned()), "{backlogs:?}");
    assert_eq!(states(&played), ["holds"], "what holds is kept");
}

#[test]
fn checks_may_be_left_failing_for_two_steps() {
    let leaving =
        |goal: &str| next(PlannedStep { leaves_failing: vec!["tests".to_owned()], ..PlannedStep::new(goal) });
    // The third step has to make them pass.
    let answers = BTreeMap::from([
        ("r1-plan-1", vec![leaving("the interface")]),
        ("r1-evidence-0-1", vec![failed()]),
        ("r2-plan-1", vec![plan(&[]), leaving("callers")]),
        ("r2-evidence-0-1", vec![failed()]),
        ("r3-plan-1", vec![leaving("more callers"), plan(&["the last callers"])]),
    ]);
    // Answers of one round have increasing attempts.
    let mut by_attempt = BTreeMap::new();
    for (name, outputs) in answers {
        for (attempt, output) in (1..).zip(outputs) {
            let name = name.strip_suffix("-1").unwrap();
            by_attempt.insert(format!("{name}-{attempt}"), vec![output]);
        }
    }
    let by_attempt = by_attempt.iter().map(|(name, outputs)| (name.as_str(), outputs.clone())).collect();
    let played = play(planned(6), by_attempt);
    assert_eq!(
        states(&played),
        ["holds for now: tests left failing", "holds for now: tests left failing", "holds"]
    );
    assert!(played.steps.contains(&"r2-plan-2".to_owned()), "a provisional change is not judged");
    assert!(played.steps.contains(&"r3-plan-2".to_owned()), "a third step may not leave them failing");
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn checks_that_fail_for_too_long_undo_their_steps() {
    let leaving =
        next(PlannedStep { leaves_failing: vec!["tests".to_owned()], ..PlannedStep::new("the interface") });
    let answers = BTreeMap::from([
        ("r1-plan-1", vec![plan(&["before"])]),
        ("r2-plan-1", vec![leaving]),
        ("r2-evidence-0-1", vec![failed()]),
        ("r3-plan-1", vec![plan(&["callers"])]),
        ("r3-evidence-0-1", vec![failed()]),
        ("r3-evidence-1-1", vec![failed()]),
        ("r4-plan-1", vec![plan(&["other callers"])]),
        ("r4-evidence-0-1", vec![failed()]),
        ("r4-evidence-1-1", vec![failed()]),
    ]);
    let played = play(planned(6), answers);
    let undone = "failed; the steps that left checks failing are undone";
    assert_eq!(states(&played), ["holds", "holds for now: tests left failing", "failed", undone]);
    assert_eq!(played.task.candidates()[0].diff().unwrap().patch.hash, "r1-work-0-1");
}

#[test]
fn the_planner_may_go_back() {
    let leaving =
        next(PlannedStep { leaves_failing: vec!["tests".to_owned()], ..PlannedStep::new("the interface") });
    let back = StepOutput::Plan(PlanFacts { go_back: true, ..PlanFacts::finished("p") });
    let answers = BTreeMap::from([
        ("r1-plan-1", vec![plan(&["before"])]),
        ("r2-plan-1", vec![leaving]),
        ("r2-evidence-0-1", vec![failed()]),
        ("r3-plan-1", vec![back]),
    ]);
    let played = play(planned(6), answers);
    assert_eq!(played.task.candidates()[0].diff().unwrap().patch.hash, "r1-work-0-1");
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn a_step_that_was_undone_may_be_planned_again() {
    let leaving =
        PlannedStep { leaves_failing: vec!["tests".to_owned()], ..PlannedStep::new("the interface") };
    let again = PlanFacts { next: Some(leaving.clone()), go_back: true, ..PlanFacts::finished("p") };
    let answers = BTreeMap::from([
        ("r1-plan-1", vec![next(leaving)]),
        ("r1-evidence-0-1", vec![failed()]),
        ("r2-plan-1", vec![StepOutput::Plan(again)]),
    ]);
    let played = play(planned(3), answers);
    assert_eq!(states(&played), ["holds for now: tests left failing", "holds"]);
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn missing_evidence_of_the_whole_change_returns_to_the_planner() {
    let mut told = Vec::new();
    let mut played = PlayedTask::new(planned(5));
    played.play(|step| {
        if let StepOrder::Plan { feedback, .. } = &step.order {
            told.push(feedback.clone().unwrap_or_default());
        }
        let output = match (step.id.kind, step.id.round, step.id.attempt) {
            (StepKind::Plan, 1, _) => plan(&["one"]),
            (StepKind::Plan, 2, 1) => plan(&[]),
            // The same change would only be judged again.
            (StepKind::Plan, 2, 2) => plan(&[]),
            (StepKind::Plan, 2, _) => plan(&["two"]),
            (StepKind::Work, round, _) => work(&round.to_string(), Confidence::High, None),
            (StepKind::Evidence, 1.., _) => held(),
            (StepKind::Evidence, 0, 1) => evidence(3, 1),
            _ => right(step).0,
        };
        // The whole change has the patch that was worked on.
        let output = match output {
            StepOutput::Evidence(mut facts) => {
                facts.diff.patch.hash = if step.id.attempt == 1 { "1".to_owned() } else { "2".to_owned() };
                StepOutput::Evidence(facts)
            }
            output => output,
        };
        (output, 0.0)
    });
    assert_eq!(played.end(), "done by 0");
    let missing = "About the whole change:\n- check tests: it exited with 1\n";
    assert_eq!(told[..3], ["", "", missing]);
    assert!(told[3].starts_with("Your last answer cannot be used:\n- next: expected a step"), "{}", told[3]);
    assert!(told[3].ends_with(missing), "{}", told[3]);
}

#[test]
fn a_planner_that_never_ends_is_blocked_at_the_cap_of_rounds() {
    let mut played = PlayedTask::new(planned(3));
    played.play(|step| {
        let round = step.id.round;
        let output = match (step.id.kind, round) {
            (StepKind::Plan, _) => plan(&[&format!("step {round}"), "and more"]),
            (StepKind::Work, 1..) => work("a", Confidence::High, None),
            (StepKind::Evidence, 1..) => held(),
            _ => right(step).0,
        };
        (output, 0.0)
    });
    assert_eq!(played.end(), "Blocked(Rounds { rounds: 3, backlog: [\"and more\"] })");
    assert_eq!(task_plan(&played).rounds().len(), 3);
    // Without remaining steps, the whole change is judged.
    let goals = ["r1-plan-1", "r2-plan-1"].map(|name| (name, vec![plan(&[name])]));
    let played = play(planned(2), BTreeMap::from(goals));
    assert_eq!(played.steps.last().unwrap(), "review-0-1");
    assert_eq!(played.end(), "done by 0");
}

#[test]
fn answers_that_cannot_be_used_are_refused_and_block_the_task() {
    let scope = TaskScope::default().with_paths(["src/"]);
    let one = || PlannedStep::new("one");
    let paths = |paths: &[&str]| PlannedStep {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..PlannedStep::new("two")
    };
    let cases = [
        (next(PlannedStep::new(" \n")), "next.goal: expected a text"),
        (next(PlannedStep::new("One!")), "next.goal: expected another goal than those of the earlier steps"),
        (next(paths(&["docs/a.md"])), "next.paths: `docs/a.md` is outside of the scope"),
        (next(paths(&["**"])), "next.paths: `**` is outside of the scope"),
        (
            next(paths(&["tests/test_sums.py"])),
            "next.paths: `tests/test_sums.py` judges the change; expected files that do not",
        ),
        (next(paths(&["/etc/passwd"])), "next.paths: `/etc/passwd` is no pattern"),
        (
            next(PlannedStep { leaves_failing: vec!["lint".to_owned()], ..PlannedStep::new("two") }),
            "next.leaves_failing: expected names of checks, found `lint`",
        ),
        (
            next(PlannedStep { checks: vec![String::new()], ..PlannedStep::new("two") }),
            "next.checks: expected commands",
        ),
        (
            StepOutput::Plan(PlanFacts { remaining: vec!["two".to_owned()], ..PlanFacts::finished("p") }),
            "next: expected a step, or no remaining steps",
        ),
        (StepOutput::failed("the session named no step"), "the session named no step"),
        (worked(WorkEnd::Finished), "a step of plan found something else"),
    ];
    for (answer, problem) in cases {
        let mut played = PlayedTask::new(planned(5).with_scope(scope.clone()));
        played.play(|step| {
            let output = match (step.id.kind, step.id.round) {
                (StepKind::Plan, 1) => next(one()),
                (StepKind::Plan, _) => answer.clone(),
                (StepKind::Work, 1..) => work("a", Confidence::High, None),
                (StepKind::Evidence, 1..) => held(),
                _ => right(step).0,
            };
            (output, 0.0)
        });
        assert_eq!(played.steps.iter().filter(|step| step.starts_with("r2-plan")).count(), 3, "{problem}");
        assert!(played.end().starts_with("Blocked(NoPlan("), "{}", played.end());
        assert!(played.end().contains(problem), "{problem}: {}", played.end());
    }
}

/// Paths of a change are relative to the root.
#[test]
fn paths_of_a_step_are_relative_to_the_directory_of_the_task() {
    let base = BaseCommit::new("/repository", "1a".repeat(20)).with_directory("apps/a");
    let scope = TaskScope::default().with_paths(["src/"]);
    let anchor = AnchorPlan::None { because: "the check is enough".to_owned() };
    let contract = planned(3).with_base(base).with_scope(scope).with_anchor(anchor);
    let in_path = |path: &str| next(PlannedStep { paths: vec![path.to_owned()], ..PlannedStep::new("one") });
    let answers = BTreeMap::from([
        ("r1-plan-1", vec![in_path("apps/a/src/")]),
        ("r1-plan-2", vec![in_path("src/")]),
        ("r1-evidence-0-1", vec![judged(vec![modified("src/sums.py", 1, 1)], 0)]),
        ("r1-evidence-1-1", vec![judged(vec![modified("apps/a/src/sums.py", 1, 1)], 0)]),
    ]);
    let played = play(contract, answers);
    for step in ["r1-plan-2", "r1-evidence-1-1"] {
        assert!(played.steps.iter().any(|played| played == step), "{step}: {:?}", played.steps);
    }
    assert_eq!(states(&played), ["holds"]);
}

#[test]
fn a_step_is_judged_by_what_it_changes() {
    let at = |path: &str| vec![modified(path, 1, 0)];
    let own = |before: i32, after: i32| {
        let StepOutput::StepEvidence(mut facts) = held() else { unreachable!() };
        let (before, after) = (vec![plain(before)], vec![plain(after)]);
        facts.own = vec![OwnCheck { command: "make one".to_owned(), before, after }];
        StepOutput::StepEvidence(facts)
    };
    let expected: [(StepOutput, Result<usize, &str>); 6] = [
        (own(1, 0), Ok(1)),
        (own(0, 0), Ok(0)),
        (own(1, 1), Err("check make one: it exited with 1")),
        (judged(Vec::new(), 0), Err("diff: the step has changed nothing")),
        (
            judged(at("lib/a.py"), 0),
            Err("scope: `lib/a.py` changed, which is outside of the paths of the step"),
        ),
        (
            judged(at("tests/test_sums.py"), 0),
            Err("protected files: `tests/test_sums.py` changed, which is protected"),
        ),
    ];
    for (output, expected) in expected {
        let step = PlannedStep { paths: vec!["src/".to_owned()], ..PlannedStep::new("one") };
        let answers = BTreeMap::from([
            ("r1-plan-1", vec![next(step)]),
            ("r1-evidence-0-1", vec![output.clone()]),
            ("r1-evidence-1-1", vec![output]),
        ]);
        let played = play(planned(1), answers);
        let verdict = task_plan(&played).rounds()[0].candidates()[0].verdict().unwrap().clone();
        match (verdict, expected) {
            (Ok(proof), Ok(anchored)) => {
                assert_eq!((proof.anchored, proof.reaches_goal), (anchored, Some(false)))
            }
            (Err(findings), Err(finding)) => {
                let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
                assert!(findings.iter().any(|found| found == finding), "{findings:?}");
            }
            (verdict, expected) => panic!("{verdict:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn users_edit_the_backlog_and_steer() {
    let mut played = PlayedTask::new(planned(5));
    let edit = |task: &mut Task, goals: &[&str]| {
        let backlog = goals.iter().map(|goal| (*goal).to_owned()).collect();
        task.apply(TaskInput::Signal(TaskSignal::Plan { backlog }))
    };
    let feedback = |task: &Task| match &task.pending().steps[0].order {
        StepOrder::Plan { feedback, .. } | StepOrder::Work { feedback, .. } => {
            feedback.clone().unwrap_or_default()
        }
        order => panic!("{order:?}"),
    };
    let finish = |played: &mut PlayedTask, output: StepOutput| {
        played.finish(played.task.pending().steps[0].id.clone(), output, 0.0);
    };
    finish(&mut played, baseline());
    finish(&mut played, anchor(1));
    assert!(edit(&mut played.task, &["first the parser"]));
    let told = "A user has edited the remaining steps, which now are:\n- first the parser\n";
    assert_eq!(feedback(&played.task), told);
    let planner = played.task.pending().steps[0].id.clone();
    assert!(played.task.apply(TaskInput::StepStarted(planner.clone())));
    // An edit while the planner works changes neither its message nor is it lost.
    assert!(edit(&mut played.task, &["then the printer"]));
    assert_eq!(feedback(&played.task), told);
    finish(&mut played, plan(&["the parser", "anything"]));
    assert_eq!(task_plan(&played).backlog(), ["then the printer"]);
    let steer = TaskSignal::Steer { candidate: None, text: "use integers".to_owned() };
    assert!(played.task.apply(TaskInput::Signal(steer)));
    assert_eq!(feedback(&played.task), "- use integers\n");
    finish(&mut played, work("a", Confidence::High, None));
    finish(&mut played, held());
    let words = feedback(&played.task);
    let message = prompts::plan(&PlanRequest {
        contract: played.task.contract(),
        plan: task_plan(&played),
        step: &played.task.pending().steps[0].id.clone(),
        feedback: Some(&words),
        context: "",
    });
    assert_eq!(
        message.matches("- then the printer\n").count(),
        1,
        "the edited steps are listed once: {message}"
    );
    finish(&mut played, plan(&[]));
    assert_eq!(played.task.pending().steps[0].id.to_string(), "evidence-0-1", "the edit was sent");
    assert!(!edit(&mut played.task, &["too late"]));
    assert!(!edit(&mut PlayedTask::new(contract()).task, &["there is no plan"]));
}

#[test]
fn failures_of_a_provider_end_a_planned_task_as_failed() {
    for (name, failing) in [("r1-plan-1", "r1-plan"), ("r1-work-1-1", "r1-work")] {
        let mut played = PlayedTask::new(planned(3));
        played.play(|step| match step.id.to_string() {
            id if id.starts_with(failing) => (external("overloaded"), 0.0),
            _ if step.id.kind == StepKind::Plan => (plan(&["one"]), 0.0),
            _ => right(step),
        });
        assert!(
            played.end().contains("overloaded") && played.end().starts_with("Failed"),
            "{}",
            played.end()
        );
        assert_eq!(played.steps.last().unwrap(), name);
    }
    // The budget ends it, too.
    let budget = TaskBudget { usd: Some(0.35), ..TaskBudget::default() };
    let played =
        play(planned(3).with_budget(budget), BTreeMap::from([("r1-plan-1", vec![plan(&["one", "two"])])]));
    assert_eq!(played.end(), "Limit { limit: Usd, best: None }");
}

/// Records of earlier versions have neither a plan nor rounds.
#[test]
fn a_journal_of_an_earlier_version_replays() {
    let contract = r#"{"goal":"Sums are right.","check":[{"name":"tests","command":"make test"}],
        "anchor":{"kind":"none","because":"it is a text"},"candidate":[{}],"attempts":2,"review":{"rounds":0},"gates":[]}"#;
    let inputs = r#"[
        {"began":{"kind":"baseline","attempt":1}},
        {"finished":{"step":{"kind":"baseline","attempt":1},"found":{"baseline":{"checks":{"tests":[{"end":{"exited":0},"millis":1}]}}}}},
        {"began":{"kind":"work","candidate":0,"attempt":1}},
        {"finished":{"step":{"kind":"work","candidate":0,"attempt":1},"found":{"work":{"session":"s","end":"finished"}}}},
        {"began":{"kind":"evidence","candidate":0,"attempt":1}},
        {"finished":{"step":{"kind":"evidence","candidate":0,"attempt":1},"found":{"evidence":{
            "diff":{"patch":{"hash":"00","bytes":1},"files":[{"path":"src/a.py","kind":"modified","added":1,"removed":0}]},
            "checks":{"tests":[{"end":{"exited":0},"millis":1}]}}}}}
    ]"#;
    let mut task = Task::new(serde_json::from_str(contract).unwrap()).unwrap();
    let inputs: Vec<TaskInput> = serde_json::from_str(inputs).unwrap();
    let id = StepId { kind: StepKind::Baseline, candidate: None, attempt: 1, round: 0 };
    assert_eq!(inputs[0], TaskInput::StepStarted(id));
    for input in inputs {
        assert!(task.apply(input.clone()), "{input:?}");
        // It is written as it was.
        assert!(!serde_json::to_string(&input).unwrap().contains("round"));
    }
    assert!(matches!(task.outcome(), Some(TaskOutcome::Done(_))), "{:?}", task.outcome());
    assert!(task.plan().is_none());
}

/// Returns something that a step might find, by number.
fn anything_planned(step: &StepId, number: u8) -> StepOutput {
    let goal = format!("{step} {number}");
    let leaves = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match (step.kind, step.round, number % 8) {
        (StepKind::Plan, _, 0) => StepOutput::Failed { reason: "no".to_owned(), is_external: number > 200 },
        (StepKind::Plan, _, 1) => plan(&[]),
        (StepKind::Plan, _, 2) => plan(&["the same"]),
        (StepKind::Plan, _, 3) => {
            next(PlannedStep { leaves_failing: leaves(&["tests"]), ..PlannedStep::new(goal) })
        }
        (StepKind::Plan, _, 4) => StepOutput::Plan(PlanFacts {
            next: Some(PlannedStep::new(goal)),
            go_back: true,
            ..PlanFacts::finished("p")
        }),
        (StepKind::Plan, _, 5) => plan(&[&goal]),
        (StepKind::Plan, ..) => plan(&[&goal, "more"]),
        (StepKind::Work, 1.., 2) => work(&goal, Confidence::Low, None),
        (StepKind::Work, 1.., 3) => work(&goal, Confidence::High, Some("more")),
        (StepKind::Work, 1.., 4..) => work(&goal, Confidence::Medium, None),
        (StepKind::Evidence, 1.., 2..6) => held(),
        (StepKind::Evidence, 1.., 6..) => failed(),
        _ => anything(step.kind, number),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if pintle_test_conditions::is_full() { 512 } else { 64 }))]

    /// Processes that die start their steps again, so that a start may be recorded without a result; edits of users arrive
    /// at any time.
    #[test]
    fn every_planned_task_ends_and_its_journal_leads_to_the_same_end(
        outputs in proptest::collection::vec((0..=u8::MAX, 0..8_u8), 500),
        candidates in 1..4_usize,
        rounds in 1..6_u32,
        usd in proptest::option::of(0.5..5.0_f64),
    ) {
        let contract = planned(rounds)
            .with_candidates(vec![CandidatePlan::default(); candidates])
            .with_budget(TaskBudget { usd, ..TaskBudget::default() });
        let mut task = Task::new(contract).unwrap();
        let mut inputs = Vec::new();
        for (number, chance) in outputs {
            let steps = task.pending().steps;
            let Some(step) = steps.get(usize::from(number) % steps.len().max(1)) else { break };
            inputs.push(TaskInput::StepStarted(step.id.clone()));
            task.apply(TaskInput::StepStarted(step.id.clone()));
            if chance == 0 {
                // The process dies. Its order is the same for the next one.
                let again = task.pending().steps.into_iter().find(|wanted| wanted.id == step.id);
                prop_assert_eq!(again.as_ref(), Some(step));
                continue;
            }
            if chance == 1 {
                let before = task.pending().steps;
                let edit = TaskInput::Signal(TaskSignal::Plan { backlog: vec!["edited".to_owned()] });
                inputs.push(edit.clone());
                task.apply(edit);
                let message = |steps: &[TaskStep]| steps.iter().find(|one| one.id == step.id).map(|one| {
                    match &one.order {
                        StepOrder::Plan { feedback, .. } | StepOrder::Work { feedback, .. } => feedback.clone(),
                        _ => None,
                    }
                });
                prop_assert_eq!(message(&before), message(&task.pending().steps), "a started message stays");
            }
            let output = anything_planned(&step.id, number);
            let spent = WorkCost { usd: 0.02, ..WorkCost::default() };
            let finished = TaskInput::StepFinished(Box::new(StepResult { step: step.id.clone(), output, spent }));
            prop_assert!(task.apply(finished.clone()));
            prop_assert!(!task.pending().steps.iter().any(|wanted| wanted.id == step.id), "{:?}", step.id);
            inputs.push(finished);
        }
        prop_assert!(task.outcome().is_some(), "{:?}", task.pending());
        prop_assert!(task.plan().unwrap().rounds().len() <= rounds as usize);
        let text = serde_json::to_string(&inputs).unwrap();
        let mut again = Task::new(task.contract().clone()).unwrap();
        for input in serde_json::from_str::<Vec<TaskInput>>(&text).unwrap() {
            again.apply(input);
        }
        prop_assert_eq!(again.outcome(), task.outcome());
        prop_assert_eq!(again.plan(), task.plan());
    }
}
