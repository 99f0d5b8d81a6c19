//! Reports of tasks with each kind of end.

use super::*;
use crate::contract::{CandidatePlan, Check, TaskBudget};
use crate::facts_for_tests::{found_right, found_wrong};
use crate::local::Moment;
use crate::task::{Found, Input, Signal, Step, StepId, StepKind, StepResult};

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

/// A page shows hostile text as text: its elements are ours, and so are their attributes.
#[test]
fn a_page_formats_nothing_that_others_wrote() {
    let hostile =
        "</code></pre><script>alert(1)</script><img src=x onerror=\"alert(2)\">'`|\u{1b}[31m\u{202e}";
    let mut contract = contract().with_check(Check::new(format!("c{hostile}"), hostile));
    contract.goal = format!("{hostile}\n# {hostile}\n* {hostile}\n| a | b |");
    let task = played(contract, |step| match (step.id.kind, step.id.candidate) {
        (StepKind::Work, Some(0)) => Found::Failed { reason: hostile.to_owned() },
        (StepKind::Review, _) => crate::facts_for_tests::review(&[hostile]),
        _ => found_right(step.id.kind),
    });
    let at = pintle_agent::Timestamp::from_millis(1_795_000_000_000);
    let said = Signal::Steer { candidate: Some(1), text: hostile.to_owned() };
    let step = StepId { kind: StepKind::Work, candidate: Some(1), attempt: 2 };
    let result = StepResult {
        step: step.clone(),
        found: Found::Failed { reason: hostile.to_owned() },
        spent: Spent { usd: 0.5, tokens: 7, millis: 61_250, ..Spent::default() },
    };
    let inputs = [Input::Said(said), Input::Began(step), Input::Finished(Box::new(result))];
    let moments: Vec<Moment> = (1..).zip(inputs).map(|(seq, input)| Moment { seq, at, input }).collect();
    let patch = format!("--- a/x\n+++ b/{hostile}\n-{hostile}\n+{hostile}\n");
    let page = Report::of(&task).to_html(&[ShownDiff { candidate: 1, patch }], &moments);
    let known = [
        "!doctype",
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "h2",
        "h3",
        "p",
        "code",
        "pre",
        "blockquote",
        "br",
        "ul",
        "ol",
        "li",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ins",
        "del",
    ];
    for tag in page.split('<').skip(1) {
        let (name, _) = tag.split_once(['>', ' ']).unwrap();
        assert!(known.contains(&name.trim_start_matches('/')), "{tag}");
    }
    assert!(!page.contains("onerror=\"") && !page.contains(['\u{1b}', '\u{202e}']));
    assert_eq!((page.matches("<h1>").count(), page.matches("<main>").count()), (1, 1));
    for expected in [
        "<ins>+&lt;/code&gt;",
        "<td>candidate 1</td><td>work, attempt 2 begins</td>",
        "<td>1 min 1.2 s</td><td>$0.50</td>",
        "2026-11-18T",
        "a person said: &lt;/code&gt;",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

#[test]
fn a_long_diff_is_cut_and_the_page_says_so() {
    let task = played(contract(), |step| found_right(step.id.kind));
    let patch = format!("+{}\n", "ä".repeat(600 << 10));
    let page = Report::of(&task).to_html(&[ShownDiff { candidate: 0, patch }], &[]);
    assert!(page.contains("The diff has 1228802 bytes; 524288 of them are shown."));
    assert!(page.contains("<h2>Diff of candidate 0, which was chosen</h2>"));
    assert!(page.len() < 540 << 10);
}
