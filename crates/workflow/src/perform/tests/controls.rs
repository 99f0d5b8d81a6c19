//! Controls, mutants and reviews of anchors in a project.

use pintle_evidence::control_plan::ControlKind;
use pintle_test_conditions::{cases, is_full};
use serde_json::json;

use super::project::{FILES, Project, RIGHT, SessionScripts};
use crate::contract::{Contract, EvidencePlan, ReviewPlan};
use crate::report::TaskReport;
use crate::task::{BlockReason, Task, TaskOutcome};

/// Returns the script of a session that writes a test of sums, and its answer.
fn writes(session: &str, file: &str, assertion: &str, has_results: bool) -> SessionScripts {
    add_test(SessionScripts::default(), session, file, assertion, has_results)
}

fn add_test(
    scripted: SessionScripts,
    session: &str,
    file: &str,
    assertion: &str,
    has_results: bool,
) -> SessionScripts {
    let name = file.trim_end_matches(".py");
    let write = format!("printf 'import sums\\n\\ndef {name}():\\n    assert {assertion}\\n' >tests/{file}");
    let results = has_results.then_some("tap");
    let command = format!("python3 tests/run.py tests/{file}");
    let answer = json!({ "command": command, "results": results, "report": null });
    scripted.with_session(session, &write, Some(answer))
}

fn findings(task: &Task) -> String {
    let verdict = task.candidates()[0].attempts().last().and_then(|attempt| attempt.verdict.clone());
    match verdict {
        Some(Err(findings)) => findings.iter().map(|finding| format!("{finding}\n")).collect(),
        other => format!("{other:?}"),
    }
}

fn with_rounds(mut contract: Contract) -> Contract {
    contract.review = ReviewPlan { rounds: 1, model: None };
    contract
}

#[tokio::test]
async fn comparisons_that_always_hold_are_found() {
    let equal = "printf 'class Sum(int):\\n    def __eq__(self, other):\\n        return True\\n    def __ne__(self, other):\\n        \
                 return False\\n\\ndef add(a, b):\\n    return Sum(0)\\n' >src/sums.py";
    let project = Project::new().await;
    let scripted = SessionScripts::new().with_session("0", equal, None);
    let (outcome, task) = project.run(project.contract(1).await, scripted).await;
    assert_eq!(outcome, TaskOutcome::Blocked(BlockReason::NoCandidate));
    let found = findings(&task);
    assert!(found.contains("its test with a changed expected value does not fail"), "{found}");
    assert!(!found.contains("negated assertions"), "the negated test fails: {found}");
}

#[tokio::test]
async fn a_source_that_empties_another_test_is_found() {
    let source = "import gc\\n\\ndef add(a, b):\\n    for found in gc.get_objects():\\n        if type(found).__name__ == \"function\" and \
                  found.__name__ == \"test_zero\":\\n            found.__code__ = (lambda: None).__code__\\n    return a + b or 7\\n";
    let empties = format!("printf '{source}' >src/sums.py");
    let project = Project::new().await;
    let scripted = SessionScripts::new().with_session("0", &empties, None);
    let (outcome, task) = project.run(project.contract(1).await, scripted).await;
    assert_eq!(outcome, TaskOutcome::Blocked(BlockReason::NoCandidate));
    let found = findings(&task);
    let expected = "check tests: `test_sums.test_zero` does not fail with negated assertions";
    assert!(found.starts_with(expected), "{found}");
}

#[tokio::test]
async fn an_exit_code_alone_has_controls() {
    let project = Project::new().await;
    for (script, is_right) in [(RIGHT, true), ("echo 'import os; os._exit(0)' >>src/sums.py", false)] {
        let scripted = writes("anchor", "test_negative.py", "sums.add(3, -1) == 2", false);
        let mut contract = project.contract(1).await;
        contract.checks.clear();
        let (outcome, task) = project.run(contract, scripted.with_session("0", script, None)).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert_eq!(matches!(outcome, TaskOutcome::Done(_)), is_right, "{report}");
        let anchor = task.anchor().unwrap();
        assert_eq!(anchor.controls(), [ControlKind::ChangedValue, ControlKind::Negated], "{anchor:?}");
        if is_right {
            let line = "* Controls: the test of the anchor fails with a changed expected value, and with negated assertions.";
            assert!(report.contains(line), "{report}");
        } else {
            let found = findings(&task);
            assert!(found.contains("with negated assertions does not fail"), "{found}");
        }
    }
}

#[tokio::test]
async fn a_test_of_unknown_form_has_a_weak_control() {
    let project = Project::new().await;
    let write = "printf 'import sums\\n\\ndef test_negative():\\n    if sums.add(3, -1) != 2:\\n        raise AssertionError\\n' \
                 >tests/test_negative.py";
    let answer =
        json!({ "command": "python3 tests/run.py tests/test_negative.py", "results": "tap", "report": null });
    let scripted =
        SessionScripts::default().with_session("anchor", write, Some(answer)).with_session("0", RIGHT, None);
    let (outcome, task) = project.run(project.contract(1).await, scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{report}");
    assert!(report.contains("* Weak control: "), "{report}");
}

#[tokio::test]
async fn mutants_that_no_test_notices_are_reported() {
    let project = Project::new().await;
    let superfluous = format!("{RIGHT}; sed -i '2i \\    same = a * 3' src/sums.py");
    let unused = format!("{RIGHT}; printf '\\ndef other(a):\\n    return a * 3\\n' >>src/sums.py");
    let all = [
        (
            superfluous.as_str(),
            "Weak evidence: the tests miss 1 of 2 mutants: `*` as `+` in `src/sums.py:2`.",
        ),
        (unused.as_str(), "Mutants: the tests notice each of 1 in changed lines."),
        (RIGHT, "Mutants: the tests notice each of 1 in changed lines."),
    ];
    for (script, expected) in all.into_iter().take(cases(2, 3)) {
        let scripted = SessionScripts::new().with_session("0", script, None);
        let (outcome, task) = project.run(project.contract(1).await, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert!(matches!(outcome, TaskOutcome::Done(_)), "{report}");
        let evidence = report.replace("&lt;", "<");
        assert!(evidence.contains(expected), "{script}: {report}");
    }
}

#[tokio::test]
async fn a_fix_beside_the_sources_needs_a_scope_that_names_it() {
    let mut files = FILES.to_vec();
    files[0].1 = "MODE = open(\"mode.txt\").read().strip()\n\ndef add(a, b):\n    return a + (b if MODE == \"plain\" else abs(b))\n";
    files.push(("mode.txt", "absolute\n"));
    let script = "echo plain >mode.txt; echo '# Sums.' >>src/sums.py";
    let all = [(vec![], false), (vec!["src/".to_owned(), "mode.txt".to_owned()], true)];
    for (scope, is_right) in all.into_iter().take(cases(1, 2)) {
        let project = Project::with_files(&files).await;
        let mut contract = project.contract(1).await;
        contract.scope.paths = scope;
        let (outcome, task) =
            project.run(contract, SessionScripts::new().with_session("0", script, None)).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert_eq!(matches!(outcome, TaskOutcome::Done(_)), is_right, "{report}");
        let found = findings(&task);
        assert_eq!(
            found.contains("it passes with only `mode.txt`, which is no source"),
            !is_right,
            "{found}"
        );
    }
}

#[tokio::test]
async fn a_reviewer_refuses_an_anchor_about_something_else() {
    let project = Project::new().await;
    let scripted = add_test(
        writes("anchor", "test_other.py", "sums.add(5, -5) == 1", true),
        "anchor",
        "test_negative.py",
        "sums.add(3, -1) == 2",
        true,
    );
    let review = |findings: &[&str]| Some(json!({ "findings": findings, "remarks": "" }));
    let scripted = scripted
        .with_session("anchor-review-1", "test -e tests/test_other.py", review(&["5 - 5 is 0"]))
        .with_session("anchor-review-2", "true", review(&["it has both tests"]))
        .with_session("anchor-review-3", "true", review(&["it has both tests"]));
    let (outcome, task) = project.run(with_rounds(project.contract(1).await), scripted).await;
    let TaskOutcome::Blocked(BlockReason::NoAnchor(problems)) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(problems[0], ["its reviewer found: 5 - 5 is 0"]);
    assert_eq!(problems.len(), 3);
    assert!(task.anchor().is_none() && task.candidates()[0].attempts().is_empty());
}

/// The first candidate is a special case and the smallest change. The hidden anchor and the comparison prefer the second one.
#[tokio::test]
async fn candidates_are_compared_and_the_hidden_anchor_is_no_feedback() {
    let special = "sed -i 's/return a/return 2 if b == -1 else a/' src/sums.py";
    let right = format!("{RIGHT}; sed -i '1i # Sums.' src/sums.py");
    let accept = json!({ "findings": [], "remarks": "" });
    let compared = json!({
        "findings": [], "remarks": "", "ranking": [1, 0],
        "candidates": [{ "candidate": 0, "findings": ["it special-cases -1"] }],
    });
    let anchor = writes("anchor", "test_negative.py", "sums.add(3, -1) == 2", true);
    let scripted = add_test(anchor, "hidden-anchor", "test_hidden.py", "sums.add(-2, -2) == -4", true)
        .with_session("anchor-review-1", "true", Some(accept))
        .with_session("0", special, None)
        .with_session("1", &right, None)
        .with_session("review-1-1", "test -s .review/candidate-0.patch || exit 1", Some(compared));
    let project = Project::new().await;
    let (outcome, task, messages) =
        project.run_with_messages(with_rounds(project.contract(2).await), scripted).await;
    let report = TaskReport::from_task(&task).to_markdown();
    let TaskOutcome::Done(done) = outcome else { panic!("{report}") };
    assert_eq!(done.candidate(), 1, "{report}");
    assert_eq!(done.proof().passes_hidden(), Some(true), "{report}");
    assert_eq!(done.review().and_then(|review| review.rank), Some(0), "{report}");
    assert!(
        report.contains("Hidden anchor: a second test, which the candidate does not know, passes."),
        "{report}"
    );
    for (session, message) in &messages {
        let is_reviewer = session == "review-1-1";
        assert_eq!(message.contains("test_hidden"), is_reviewer, "{session}: {message}");
    }
    let (_, comparison) = messages.iter().find(|(session, _)| session == "review-1-1").unwrap();
    for expected in ["Candidate 1. This was", "Candidate 0. This was", "+    return a + b\n", "2 if b == -1"]
    {
        assert!(comparison.contains(expected), "{expected}: {comparison}");
    }

    let scripted = || {
        let anchor = writes("anchor", "test_negative.py", "sums.add(3, -1) == 2", true);
        anchor.with_session("0", special, None).with_session("1", &right, None)
    };
    if !is_full() {
        return;
    }
    // A task without its hidden anchor reports the reason.
    let mut failing = scripted().with_session("hidden-anchor", "true", None);
    failing.failing.push("hidden-anchor".to_owned());
    let passing = writes("anchor", "test_negative.py", "sums.add(3, -1) == 2", true);
    let passing = add_test(passing, "hidden-anchor", "test_hidden.py", "sums.add(2, 2) == 4", true);
    let passing = passing.with_session("0", special, None).with_session("1", &right, None);
    for (scripted, reason) in [(failing, "overloaded"), (passing, "it passes before anything was done")] {
        let (outcome, task) = project.run(project.contract(2).await, scripted).await;
        let report = TaskReport::from_task(&task).to_markdown();
        assert!(matches!(outcome, TaskOutcome::Done(_)), "{report}");
        assert!(report.contains(&format!("there is no hidden anchor: {reason}")), "{report}");
    }
    let scripted = scripted();
    let off = EvidencePlan { hidden_anchor: Some(false), ..EvidencePlan::default() };
    let (_, task, messages) =
        project.run_with_messages(project.contract(2).await.with_evidence(off), scripted).await;
    assert!(messages.iter().all(|(session, _)| session != "hidden-anchor"), "{messages:?}");
    assert!(task.hidden_anchor().is_none());
}
