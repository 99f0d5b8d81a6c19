//! Reports of tasks with each kind of end.

use pintle_agent::Money;
use proptest::prelude::*;

use super::*;
use crate::contract::{CandidatePlan, DecisionGate, TaskBudget, TaskCheck};
use crate::local::RecordedInput;
use crate::task::{StepId, StepKind, StepOutput, StepResult, TaskInput, TaskSignal, TaskStep};
use crate::testing::{failing_output, successful_output};

fn contract() -> Contract {
    Contract::new("Sums of <b>negative</b> numbers\nare right.")
        .with_check(TaskCheck::new("tests", "make test"))
        .with_candidates([
            CandidatePlan { model: Some("small".to_owned()), ..CandidatePlan::default() },
            CandidatePlan { effort: Some("high".to_owned()), ..CandidatePlan::default() },
        ])
}

fn played(contract: Contract, find: impl Fn(&TaskStep) -> StepOutput) -> Task {
    let mut task = Task::new(contract).unwrap();
    while let Some(step) = task.pending().steps.into_iter().next() {
        let spent = WorkCost {
            cost: Money::from_dollars(0.25),
            tokens: 1_000,
            millis: 30_500,
            ..WorkCost::default()
        };
        let result = StepResult { output: find(&step), step: step.id, spent };
        assert!(task.apply(TaskInput::StepFinished(Box::new(result))));
    }
    task
}

#[test]
fn a_report_says_what_proves_the_result_and_what_it_cost() {
    let task = played(contract(), |step| match (step.id.kind, step.id.candidate) {
        (StepKind::Evidence, Some(0)) => failing_output(),
        _ => successful_output(step.id.kind),
    });
    insta::assert_snapshot!(TaskReport::from_task(&task).to_markdown(), @r#"
    # Done

    Candidate 1 reached the goal.

    ## Goal

    > Sums of &lt;b>negative&lt;/b> numbers
    > are right.

    ## Evidence

    * Anchor: `make anchor` (`new`) failed three times before, and passes now.
    * Weak control: no variant of the anchor can be run, so its result is not controlled.
    * Check `tests`: `make test` passes, by exit code only.
    * Diff: 1 file, 3 lines added, 0 removed; protected files are as they were.

    ## Review

    The reviewer found no fault.

    > No remarks.

    ## Candidates

    | candidate | model | attempts | result | lines | cost |
    |---|---|---|---|---|---|
    | 0 | small | 2 | two attempts have the same faults | 3 | $1.00 |
    | 1 | high | 1 | reached the goal | 3 | $0.75 |

    ### Candidate 0, attempt 1

    * check tests: it exited with 1

    ### Candidate 0, attempt 2

    * check tests: it exited with 1

    ## Bill

    $2.25 in 9000 tokens, for all candidates and reviews. The steps took 4 min 34 s.

    ### Bill by step

    | step | cost | tokens | time |
    |---|---|---|---|
    | baseline-1 | $0.25 | 1000 | 0 min 30.5 s |
    | anchor-1 | $0.25 | 1000 | 0 min 30.5 s |
    | work-0-1 | $0.25 | 1000 | 0 min 30.5 s |
    | evidence-0-1 | $0.25 | 1000 | 0 min 30.5 s |
    | work-0-2 | $0.25 | 1000 | 0 min 30.5 s |
    | evidence-0-2 | $0.25 | 1000 | 0 min 30.5 s |
    | work-1-1 | $0.25 | 1000 | 0 min 30.5 s |
    | evidence-1-1 | $0.25 | 1000 | 0 min 30.5 s |
    | review-1-1 | $0.25 | 1000 | 0 min 30.5 s |
    "#);
    let json: serde_json::Value =
        serde_json::from_str(&TaskReport::from_task(&task).to_json().unwrap()).unwrap();
    assert_eq!(json["outcome"]["done"]["candidate"], 1);
    assert_eq!(json["candidates"][0]["attempts"][0]["findings"][0]["what"], "it exited with 1");
    assert_eq!(json["spent"]["tokens"], 9_000);
    assert_eq!(json["steps"][2]["step"]["kind"], "work");
    assert_eq!(json["steps"][2]["spent"]["tokens"], 1_000);
}

/// The report has values that cannot be parsed, such as proofs: the fixture has the names of their members.
#[test]
fn names_in_the_report_are_those_of_the_fixture() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/serialised/report.json"));
    let mut expected: serde_json::Value = serde_json::from_str(text).unwrap();
    let outcomes = expected["outcomes"].take();
    let step = StepId { kind: StepKind::Work, candidate: Some(0), attempt: 2, round: 0 };
    let found = [
        TaskOutcome::Blocked(BlockReason::NoAnchor(vec![vec!["no test".to_owned()]])),
        TaskOutcome::Blocked(BlockReason::NoCandidate),
        TaskOutcome::Blocked(BlockReason::Refused {
            gate: DecisionGate::Result,
            words: Some("no".to_owned()),
        }),
        TaskOutcome::Limit { limit: LimitKind::Usd, best: Some(0) },
        TaskOutcome::Limit { limit: LimitKind::Tokens, best: None },
        TaskOutcome::Limit { limit: LimitKind::Minutes, best: None },
        TaskOutcome::Limit { limit: LimitKind::Session, best: None },
        TaskOutcome::Aborted { reason: "enough".to_owned() },
        TaskOutcome::Failed { step, reason: "disk full".to_owned() },
    ];
    assert_eq!(serde_json::to_value(found).unwrap(), outcomes);

    let task = played(contract(), |step| successful_output(step.id.kind));
    let id = SessionId::new("t");
    let report = serde_json::to_value(TaskReport::from_task(&task).with_id(&id)).unwrap();
    let done = &report["outcome"]["done"];
    let objects = [
        ("report", &report),
        ("candidate", &report["candidates"][0]),
        ("attempt", &report["candidates"][0]["attempts"][0]),
        ("done", done),
        ("proof", &done["proof"]),
        ("anchor", &done["proof"]["anchor"]),
        ("passed check", &done["proof"]["checks"][0]),
    ];
    for (name, object) in objects {
        let mut names: Vec<&String> = object.as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(serde_json::to_value(names).unwrap(), expected[name], "{name}");
    }
}

#[test]
fn every_end_is_a_sentence() {
    let ended = |task: &Task| {
        let text = TaskReport::from_task(task).to_markdown();
        text.lines().take(3).collect::<Vec<_>>().join(" ") + "\n"
    };
    let at_limit = |kind: StepKind| {
        move |step: &TaskStep| match step.id.kind == kind {
            true => StepOutput::AtLimit { session: "s".to_owned() },
            false => successful_output(step.id.kind),
        }
    };
    let failing = |kind: StepKind| {
        move |step: &TaskStep| match step.id.kind == kind {
            true => StepOutput::failed("the | disk\nis <full>"),
            false => successful_output(step.id.kind),
        }
    };
    let mut cancelled = Task::new(contract()).unwrap();
    let open = ended(&cancelled);
    cancelled.apply(TaskInput::Signal(TaskSignal::Cancel { reason: "enough".to_owned() }));
    let budget = TaskBudget { cost: Some(Money::from_dollars(1.3)), ..TaskBudget::default() };
    let said = [
        open,
        ended(&cancelled),
        ended(&played(contract(), failing(StepKind::Baseline))),
        ended(&played(contract(), failing(StepKind::Anchor))),
        ended(&played(contract(), failing(StepKind::Work))),
        ended(&played(contract().with_budget(budget), |step| successful_output(step.id.kind))),
        ended(&played(contract(), at_limit(StepKind::Anchor))),
        ended(&played(
            contract()
                .with_budget(TaskBudget { cost: Some(Money::from_dollars(9.0)), ..TaskBudget::default() }),
            at_limit(StepKind::Anchor),
        )),
    ];
    insta::assert_snapshot!(said.concat(), @r#"
    # Under way  The task has not ended.
    # Cancelled  It was cancelled: enough
    # Failed  The step baseline-1 failed: the \| disk is &lt;full>
    # Blocked  Nothing was found that fails before the goal is reached, so nothing would prove that it is.
    # Blocked  No candidate reached the goal.
    # At its limit  The budget of dollars is used up. Candidate 0 has its evidence, and was not reviewed.
    # At its limit  The budget of its sessions is used up.
    # At its limit  The budget of dollars does not cover the next call.
    "#);
}

/// Strings of others on a page.
struct Hostile<'a> {
    goal: &'a str,
    /// Command of a check, reason of a failure and finding of a reviewer.
    found: &'a str,
    patch: &'a str,
    /// Words of a person.
    said: &'a str,
}

/// Returns the page of a task that reached its goal.
fn page_of_success(hostile: &Hostile<'_>) -> String {
    let mut contract = contract();
    contract.checks = vec![TaskCheck::new("tests", hostile.found)];
    contract.goal = hostile.goal.to_owned();
    let task = played(contract, |step| match step.id.kind {
        StepKind::Review => StepOutput::Review(ReviewFacts::new("r", Vec::new(), hostile.said)),
        kind @ (StepKind::Baseline
        | StepKind::Anchor
        | StepKind::Work
        | StepKind::Evidence
        | StepKind::Plan) => successful_output(kind),
    });
    let patch = hostile.patch.to_owned();
    TaskReport::from_task(&task).to_html(&[CandidateDiff { candidate: 1, patch }], &[])
}

/// Returns the page of a task that did not reach it, and in which others wrote these strings wherever they can write.
fn page_of(hostile: &Hostile<'_>) -> String {
    let mut contract = contract().with_check(TaskCheck::new(format!("c{}", hostile.found), hostile.found));
    contract.goal = hostile.goal.to_owned();
    let task = played(contract, |step| match (step.id.kind, step.id.candidate) {
        (StepKind::Work, Some(0)) => StepOutput::failed(hostile.found),
        (StepKind::Review, _) => crate::testing::review(&[hostile.found]),
        _ => successful_output(step.id.kind),
    });
    let step = StepId { kind: StepKind::Work, candidate: Some(1), attempt: 2, round: 0 };
    let spent = WorkCost { cost: Money::from_dollars(0.5), tokens: 7, millis: 61_250, ..WorkCost::default() };
    let inputs = [
        TaskInput::Signal(TaskSignal::Steer { candidate: Some(1), text: hostile.said.to_owned() }),
        TaskInput::Signal(TaskSignal::Cancel { reason: hostile.said.to_owned() }),
        TaskInput::StepStarted(step.clone()),
        TaskInput::StepFinished(Box::new(StepResult {
            step,
            output: StepOutput::failed(hostile.found),
            spent,
        })),
    ];
    let patch = hostile.patch.to_owned();
    TaskReport::from_task(&task).to_html(&[CandidateDiff { candidate: 1, patch }], &record_inputs(inputs))
}

fn record_inputs(inputs: impl IntoIterator<Item = TaskInput>) -> Vec<RecordedInput> {
    let at = pintle_agent::Timestamp::from_millis(1_795_000_000_000);
    (1..).zip(inputs).map(|(seq, input)| RecordedInput { seq, at, posted: None, by: None, input }).collect()
}

fn finished(kind: StepKind, candidate: Option<usize>, dollars: f64) -> TaskInput {
    let step = StepId { kind, candidate, attempt: 1, round: 0 };
    let spent =
        WorkCost { cost: Money::from_dollars(dollars), tokens: 10, millis: 1_500, ..WorkCost::default() };
    TaskInput::StepFinished(Box::new(StepResult { step, output: successful_output(kind), spent }))
}

/// Elements that have no end.
const VOID: &[&str] = &[
    "!doctype html",
    "meta charset=\"utf-8\"",
    "meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"",
    "meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"",
    "meta name=\"color-scheme\" content=\"light dark\"",
];

/// Other elements of a page, with all their attributes.
const ELEMENTS: &[&str] = &[
    "html lang=\"en\"",
    "head",
    "title",
    "style",
    "body",
    "header",
    "main",
    "h1",
    "h2",
    "h3",
    "p",
    "code",
    "pre role=\"region\" aria-label=\"Diff of candidate 1\" tabindex=\"0\"",
    "blockquote",
    "ul",
    "ol",
    "li",
    "div class=\"wide\" role=\"region\" aria-label=\"Candidates\" tabindex=\"0\"",
    "div class=\"wide\" role=\"region\" aria-label=\"Bill by step\" tabindex=\"0\"",
    "div class=\"wide\" role=\"region\" aria-label=\"Bill by model\" tabindex=\"0\"",
    "div class=\"wide\" role=\"region\" aria-label=\"Bill by kind of step\" tabindex=\"0\"",
    "div class=\"wide\" role=\"region\" aria-label=\"Bill by candidate\" tabindex=\"0\"",
    "div class=\"wide\" role=\"region\" aria-label=\"Timeline\" tabindex=\"0\"",
    "table",
    "table class=\"numbers\"",
    "thead",
    "tbody",
    "tr",
    "th scope=\"col\"",
    "th scope=\"row\"",
    "td",
    "ins",
    "del",
];

/// Returns the first part of a page that is neither an element of ours, properly nested, nor plain text.
fn foreign(page: &str) -> Option<&str> {
    let mut open = Vec::new();
    for part in page.split('<').skip(1) {
        let Some((tag, text)) = part.split_once('>') else { return Some(part) };
        let is_ours = match tag.strip_prefix('/') {
            Some(name) => open.pop() == Some(name),
            None if VOID.contains(&tag) => true,
            None => {
                open.extend(tag.split(' ').next());
                ELEMENTS.contains(&tag)
            }
        };
        if !is_ours || text.contains(['>', '"', '\'']) || text.chars().any(is_unseen) {
            return Some(part);
        }
    }
    open.pop()
}

fn is_unseen(character: char) -> bool {
    let hidden = [
        0x61c..=0x61c,
        0x200b..=0x200f,
        0x2028..=0x202e,
        0x2060..=0x2064,
        0x2066..=0x2069,
        0xfeff..=0xfeff,
        0xe0000..=0xe007f,
    ];
    let is_control = character.is_control() && !matches!(character, '\n' | '\t');
    is_control || hidden.iter().any(|range| range.contains(&u32::from(character)))
}

/// Returns the content of the first element with this start tag.
fn content<'a>(page: &'a str, tag: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<{tag}>")).unwrap();
    let name = tag.split(' ').next().unwrap();
    rest.split_once(&format!("</{name}>")).unwrap().0.trim_start_matches('\n')
}

fn page_with_diff(patch: &str) -> String {
    let task = played(contract(), |step| successful_output(step.id.kind));
    TaskReport::from_task(&task).to_html(&[CandidateDiff { candidate: 0, patch: patch.to_owned() }], &[])
}

/// A page shows hostile text as text: its elements are ours, and so are their attributes.
#[test]
fn a_page_formats_nothing_that_others_wrote() {
    let hostile =
        "</code></pre><script>alert(1)</script><img src=x onerror=\"alert(2)\">'`|\u{1b}[31m\u{202e}";
    let page = page_of(&Hostile {
        goal: &format!("{hostile}\n# {hostile}\n* {hostile}\n| a | b |"),
        found: hostile,
        patch: &format!("--- a/x\n+++ b/{hostile}\n-{hostile}\n+{hostile}\n"),
        said: hostile,
    });
    assert_eq!(foreign(&page), None);
    assert!(!page.contains("onerror=\""));
    for expected in [
        "<ins>+&lt;/code&gt;",
        "<td>candidate 1</td><td>work, attempt 2 begins</td>",
        "<td>1 min 1.2 s</td><td>$0.50</td>",
        "2026-11-18T",
        "a person wrote: &lt;/code&gt;",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

/// Strings of markup, of our own formats and of any characters.
fn hostile() -> impl Strategy<Value = String> {
    let fragments = vec![
        "<script>",
        "</pre>",
        "</title>",
        "</style>",
        "<!--",
        "-->",
        "]]>",
        "<br>",
        "\" onclick=\"x",
        "' x='",
        "&",
        "&lt;",
        "&#60;",
        "`",
        "``",
        "\\|",
        "|",
        "\\",
        "\n",
        "\r",
        "\t",
        " ",
        "# ",
        "* ",
        "> ",
        "1. ",
        "+",
        "-",
        "--- ",
        "+++ ",
        "\n@@ -1 +1 @@\n",
        "\ndiff --git a/x b/x\n",
        "\nGIT binary patch\n",
        "\0",
        "\u{1b}[31m",
        "\u{85}",
        "\u{61c}",
        "\u{200b}",
        "\u{2028}",
        "\u{202e}",
        "\u{2060}",
        "\u{2067}",
        "\u{feff}",
        "\u{e0041}",
        "ä",
    ];
    let part = prop_oneof![
        3 => proptest::sample::select(fragments).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    // Two tasks are played in each case.
    #![proptest_config(ProptestConfig::with_cases(pintle_test_conditions::cases(32, 64)))]

    #[test]
    fn a_page_has_only_our_elements_and_attributes(
        goal in hostile(), found in hostile(), patch in hostile(), said in hostile(),
    ) {
        // A contract has no goal and no command without a letter.
        let (goal, found) = (format!("{goal}g"), format!("{found}f"));
        let hostile = Hostile { goal: &goal, found: &found, patch: &patch, said: &said };
        let (blocked, done) = (page_of(&hostile), page_of_success(&hostile));
        prop_assert_eq!(foreign(&blocked), None);
        prop_assert_eq!(foreign(&done), None);
        prop_assert!(done.contains("<h1>Done</h1>"));
    }
}

#[test]
fn a_page_shows_exactly_what_was_said() {
    let command = "grep 'a\\|b' x | sed s/&lt;/</ > `date`";
    let mut contract = contract();
    contract.checks.clear();
    let mut contract = contract.with_check(TaskCheck::new("tests", command));
    contract.goal = "Print `a\\|b`, &lt; and ``c`` | d\n  # not a title".to_owned();
    let task = played(contract, |step| successful_output(step.id.kind));
    let report = TaskReport::from_task(&task);
    assert!(report.to_markdown().contains("`grep 'a\\|b' x | sed s/&lt;/</ > 'date'`"));
    let page = report.to_html(&[], &[]);
    insta::assert_snapshot!(content(&page, "ul"), @r"
    <li>Anchor: <code>make anchor</code> (<code>new</code>) failed three times before, and passes now.</li>
    <li>Weak control: no variant of the anchor can be run, so its result is not controlled.</li>
    <li>Check <code>tests</code>: <code>grep &#39;a\|b&#39; x | sed s/&amp;lt;/&lt;/ &gt; `date`</code> passes, by exit code only.</li>
    <li>Diff: 1 file, 3 lines added, 0 removed; protected files are as they were.</li>
    ");
    insta::assert_snapshot!(content(&page, "blockquote"), @r"
    <p>Print <code>a\|b</code>, &amp;lt; and ``c`` | d
      # not a title</p>
    ");
}

#[test]
fn a_diff_marks_lines_by_their_sign_after_the_head_of_a_file() {
    let page = page_with_diff(
        "diff --git a/x.sql b/x.sql\n--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1,3 @@\n x\n--- old\n+++ new\n+y\n\
         diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +0,0 @@\n-z\n",
    );
    let tag = "pre role=\"region\" aria-label=\"Diff of candidate 0\" tabindex=\"0\"";
    insta::assert_snapshot!(content(&page, tag), @"
    diff --git a/x.sql b/x.sql
    --- a/x.sql
    +++ b/x.sql
    @@ -1,3 +1,3 @@
     x
    <del>--- old</del><ins>+++ new</ins><ins>+y</ins>diff --git a/y b/y
    --- a/y
    +++ b/y
    @@ -1 +0,0 @@
    <del>-z</del>
    ");
}

#[test]
fn a_diff_has_one_line_for_a_binary_file() {
    let page = page_with_diff(
        "diff --git a/x.png b/x.png\nindex 00..11 100644\nGIT binary patch\nliteral 2\nJcmZQzU|?VX\n\nliteral 0\nHcmV?d00001\n\n\
         diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -0,0 +1 @@\n+GIT binary patch\n+z\n",
    );
    let tag = "pre role=\"region\" aria-label=\"Diff of candidate 0\" tabindex=\"0\"";
    insta::assert_snapshot!(content(&page, tag), @"
    diff --git a/x.png b/x.png
    index 00..11 100644
    The file is binary; its content is not shown.
    diff --git a/y b/y
    --- a/y
    +++ b/y
    @@ -0,0 +1 @@
    <ins>+GIT binary patch</ins><ins>+z</ins>
    ");
}

#[test]
fn a_page_replaces_characters_that_are_not_seen() {
    let hidden = "a\u{61c}\u{200b}\u{200f}\u{2028}\u{2029}\u{202a}\u{2060}\u{2064}\u{2066}\u{feff}\u{e0000}\u{e007f}\u{7}b";
    let page = page_with_diff(&format!("+{hidden}\n+c\td\u{a0}\u{301}\n"));
    assert!(page.contains(&format!("<ins>+a{}b</ins>", "\u{fffd}".repeat(13))), "{page}");
    assert!(page.contains("<ins>+c\td\u{a0}\u{301}</ins>"), "{page}");
}

#[test]
fn the_bill_adds_up_and_says_which_candidates_were_not_chosen() {
    let task = played(contract(), |step| match (step.id.kind, step.id.candidate) {
        (StepKind::Evidence, Some(0)) => failing_output(),
        _ => successful_output(step.id.kind),
    });
    let inputs = [
        finished(StepKind::Work, Some(10), 0.25),
        finished(StepKind::Baseline, None, 0.0),
        finished(StepKind::Work, Some(1), 1.0),
        finished(StepKind::Evidence, Some(1), 0.0),
        finished(StepKind::Work, Some(2), 0.5),
    ];
    let page = TaskReport::from_task(&task).to_html(&[], &record_inputs(inputs.clone()));
    let bill = |name: &str| {
        let tag = format!("div class=\"wide\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\"");
        content(&page, &tag).to_owned()
    };
    insta::assert_snapshot!(bill("Bill by kind of step"), @r#"
    <table class="numbers">
    <thead><tr><th scope="col">step</th><th scope="col">cost</th><th scope="col">tokens</th><th scope="col">time</th></tr></thead>
    <tbody>
    <tr><th scope="row">baseline</th><td>$0.00</td><td>10</td><td>0 min 1.5 s</td></tr>
    <tr><th scope="row">work</th><td>$1.75</td><td>30</td><td>0 min 4.5 s</td></tr>
    <tr><th scope="row">evidence</th><td>$0.00</td><td>10</td><td>0 min 1.5 s</td></tr>
    <tr><th scope="row">total</th><td>$1.75</td><td>50</td><td>0 min 7.5 s</td></tr>
    </tbody>
    </table>
    "#);
    insta::assert_snapshot!(bill("Bill by candidate"), @r#"
    <table class="numbers">
    <thead><tr><th scope="col">for</th><th scope="col">cost</th><th scope="col">tokens</th><th scope="col">time</th></tr></thead>
    <tbody>
    <tr><th scope="row">task</th><td>$0.00</td><td>10</td><td>0 min 1.5 s</td></tr>
    <tr><th scope="row">candidate 1, which was chosen</th><td>$1.00</td><td>20</td><td>0 min 3.0 s</td></tr>
    <tr><th scope="row">candidate 2, which was not chosen</th><td>$0.50</td><td>10</td><td>0 min 1.5 s</td></tr>
    <tr><th scope="row">candidate 10, which was not chosen</th><td>$0.25</td><td>10</td><td>0 min 1.5 s</td></tr>
    <tr><th scope="row">total</th><td>$1.75</td><td>50</td><td>0 min 7.5 s</td></tr>
    </tbody>
    </table>
    "#);
    let open = Task::new(contract()).unwrap();
    assert!(!TaskReport::from_task(&open).to_html(&[], &record_inputs(inputs)).contains("chosen"));
}

#[test]
fn a_page_has_landmarks_and_the_keyboard_reaches_what_scrolls() {
    let page = page_of(&Hostile { goal: "g", found: "f", patch: "+p\n", said: "s" });
    let header = content(&page, "header");
    assert_eq!(header.matches("<h1>").count(), 1);
    assert!(header.contains("<p>No candidate reached the goal.</p>"), "{header}");
    assert_eq!((page.matches("<h1>").count(), page.matches("<main>").count()), (1, 1));
    let regions: Vec<&str> = page
        .split("role=\"region\" aria-label=\"")
        .skip(1)
        .map(|region| region.split_once("\" tabindex=\"0\">").unwrap().0)
        .collect();
    let scrolling = page.matches("<pre ").count() + page.matches("class=\"wide\"").count();
    assert_eq!(regions.len(), scrolling);
    let expected = [
        "Candidates",
        "Bill by step",
        "Bill by kind of step",
        "Bill by candidate",
        "Diff of candidate 1",
        "Timeline",
    ];
    assert_eq!(regions, expected);
    assert!(page.contains("<tr><th scope=\"row\">1</th><td>high</td>"), "{page}");
}

#[test]
fn a_long_diff_is_cut_and_the_page_says_so() {
    let page = page_with_diff(&format!("+{}\n", "ä".repeat(600 << 10)));
    assert!(page.contains("The diff has 1228802 bytes of text; 524287 of them are shown."));
    assert!(page.contains("<h2>Diff of candidate 0, which was chosen</h2>"));
    assert!(page.len() < 540 << 10);
}

#[test]
fn the_bill_has_the_models_and_the_draft() {
    let mut spent = WorkCost::default();
    spent.add_model(
        "large",
        crate::task::ModelCost { cost: Money::from_dollars(0.5), tokens: 20, ..Default::default() },
    );
    spent.add_model(
        "local",
        crate::task::ModelCost { is_price_unknown: true, tokens: 3, ..Default::default() },
    );
    let mut contract = contract();
    let drafted = crate::contract::DraftingSession::new("t-draft");
    contract.drafted = Some(crate::contract::DraftingSession { spent, ..drafted });
    let task = Task::new(contract).unwrap();
    let text = TaskReport::from_task(&task).to_markdown();
    for expected in
        ["| draft | ≥ $0.50 | 23 | 0 min 0.0 s |", "| large | $0.50 | 20 |", "| local | unknown cost | 3 |"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
