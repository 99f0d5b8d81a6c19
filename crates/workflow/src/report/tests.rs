//! Reports of tasks with each kind of end.

use super::*;
use crate::contract::{CandidatePlan, Check, TaskBudget};
use crate::facts_for_tests::{found_right, found_wrong};
use crate::task::{Found, Input, Signal, Step, StepKind, StepResult};

fn contract() -> Contract {
    Contract::new("Sums of <b>negative</b> numbers\nare right.")
        .with_check(Check::new("tests", "make test"))
        .with_candidates([
            CandidatePlan { model: Some("small".to_owned()), ..CandidatePlan::default() },
            CandidatePlan { effort: Some("high".to_owned()), ..CandidatePlan::default() },
        ])
}

fn played(contract: Contract, find: impl Fn(&Step) -> Found) -> Task {
    let mut task = Task::new(contract).unwrap();
    while let Some(step) = task.wants().steps.into_iter().next() {
        let spent = Spent { usd: 0.25, tokens: 1_000, millis: 30_500, ..Spent::default() };
        let result = StepResult { found: find(&step), step: step.id, spent };
        assert!(task.take(Input::Finished(Box::new(result))));
    }
    task
}

#[test]
fn a_report_says_what_proves_the_result_and_what_it_cost() {
    let task = played(contract(), |step| match (step.id.kind, step.id.candidate) {
        (StepKind::Evidence, Some(0)) => found_wrong(),
        _ => found_right(step.id.kind),
    });
    insta::assert_snapshot!(Report::of(&task).to_markdown(), @r#"
    # Done

    Candidate 1 reached the goal.

    ## Goal

    > Sums of &lt;b>negative&lt;/b> numbers
    > are right.

    ## Evidence

    * Anchor: `make anchor` (`new`) failed three times before, and passes now.
    * Check `tests`: `make test` passes.
    * Diff: 1 file, 3 lines added, 0 removed; protected files are as they were.

    ## Review

    The reviewer found no fault.

    > No remarks.

    ## Candidates

    | candidate | model | attempts | result | lines | cost |
    |---|---|---|---|---|---|
    | 0 | small | 2 | two attempts have the same faults | 3 | $1.00 |
    | 1 | high | 1 | has its evidence | 3 | $0.75 |

    ### Candidate 0, attempt 1

    * check tests: it exited with 1

    ### Candidate 0, attempt 2

    * check tests: it exited with 1

    ## Bill

    $2.25 in 9000 tokens, for all candidates and reviews. The steps took 4 min 34 s.
    "#);
    let json: serde_json::Value = serde_json::from_str(&Report::of(&task).to_json().unwrap()).unwrap();
    assert_eq!(json["outcome"]["done"]["candidate"], 1);
    assert_eq!(json["candidates"][0]["attempts"][0]["findings"][0]["what"], "it exited with 1");
    assert_eq!(json["spent"]["tokens"], 9_000);
}

#[test]
fn every_end_is_a_sentence() {
    let ended = |task: &Task| {
        let text = Report::of(task).to_markdown();
        text.lines().take(3).collect::<Vec<_>>().join(" ") + "\n"
    };
    let failing = |kind: StepKind| {
        move |step: &Step| match step.id.kind == kind {
            true => Found::Failed { reason: "the | disk\nis <full>".to_owned() },
            false => found_right(step.id.kind),
        }
    };
    let mut cancelled = Task::new(contract()).unwrap();
    let open = ended(&cancelled);
    cancelled.take(Input::Said(Signal::Cancel { reason: "enough".to_owned() }));
    let budget = TaskBudget { usd: Some(1.3), ..TaskBudget::default() };
    let said = [
        open,
        ended(&cancelled),
        ended(&played(contract(), failing(StepKind::Baseline))),
        ended(&played(contract(), failing(StepKind::Anchor))),
        ended(&played(contract(), failing(StepKind::Work))),
        ended(&played(contract().with_budget(budget), |step| found_right(step.id.kind))),
    ];
    insta::assert_snapshot!(said.concat(), @r#"
    # Under way  The task has not ended.
    # Cancelled  It was cancelled: enough
    # Failed  The step baseline-1 failed: the \| disk is &lt;full>
    # Blocked  Nothing was found that fails before the goal is reached, so nothing would prove that it is.
    # Blocked  No candidate reached the goal.
    # At its limit  The budget of dollars is used up. Candidate 0 has its evidence, and was not reviewed.
    "#);
}
