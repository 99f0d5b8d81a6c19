//! Messages to the sessions of a task, and the schemas of their answers.

mod plan;

use pintle_agent::Count;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use self::plan::{PlanAnswer, PlanRequest, plan, plan_schema, step, step_report_schema};
use crate::anchor::Anchor;
use crate::contract::{AnchorPlan, CandidatePlan, Contract, PassCondition, TaskScope, notes_schema};
use crate::results::ResultsFormat;

/// Longest note of a session, in bytes.
const MAX_NOTE: usize = 300;

/// Answer of a session that proposes an anchor.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AnchorProposal {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) results: Option<ResultsFormat>,
    #[serde(default)]
    pub(crate) report: Option<String>,
    #[serde(default)]
    pub(crate) regression: Vec<String>,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// Answer of a session that reviews.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ReviewAnswer {
    #[serde(default)]
    pub(crate) findings: Vec<String>,
    #[serde(default)]
    pub(crate) remarks: String,
    /// Findings about single candidates of a comparison.
    #[serde(default)]
    pub(crate) candidates: Vec<CandidateFindings>,
    /// Candidates of a comparison, the best one first.
    #[serde(default)]
    pub(crate) ranking: Vec<usize>,
}

/// Findings about one candidate of a comparison.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CandidateFindings {
    pub(crate) candidate: usize,
    #[serde(default)]
    pub(crate) findings: Vec<String>,
}

/// A change in a comparison.
#[derive(Clone, Debug)]
pub(crate) struct ComparedChange {
    pub(crate) candidate: usize,
    pub(crate) patch: String,
    pub(crate) evidence: String,
}

/// Returns the JSON Schema of an [`AnchorProposal`].
pub(crate) fn proposal_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "Command of the shell that runs the new test, from the directory in which you started",
            },
            "results": {
                "enum": ["cargo", "pytest", "junit", "tap", null],
                "description": "Format of its results: output of `cargo test`, output of `pytest -rA`, a file of JUnit XML, output of TAP; null if it has none of them",
            },
            "report": {
                "type": ["string", "null"],
                "description": "File with the results, for junit",
            },
            "regression": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Names of existing tests that matter for the goal",
            },
            "notes": notes_schema(),
        },
        "required": ["command", "results", "report"],
        "additionalProperties": false,
    })
}

/// Returns the JSON Schema of a [`ReviewAnswer`] about one change.
pub(crate) fn review_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "findings": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Faults that have to be mended before this is merged, each with its place; none if there are none",
            },
            "remarks": { "type": "string", "description": "Anything else, in a few sentences" },
        },
        "required": ["findings", "remarks"],
        "additionalProperties": false,
    })
}

/// Returns the JSON Schema of a [`ReviewAnswer`] about several candidates.
pub(crate) fn comparison_schema() -> Value {
    let findings = |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
    json!({
        "type": "object",
        "properties": {
            "findings": findings("Faults that all candidates have, each with its place; empty without such faults"),
            "candidates": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "candidate": { "type": "integer", "description": "Its number" },
                        "findings": findings("Faults that have to be mended before it is merged, each with its place"),
                    },
                    "required": ["candidate", "findings"],
                    "additionalProperties": false,
                },
            },
            "ranking": {
                "type": "array",
                "items": { "type": "integer" },
                "description": "Numbers of all candidates, the best one first",
            },
            "remarks": { "type": "string", "description": "Anything else, in a few sentences" },
        },
        "required": ["findings", "remarks"],
        "additionalProperties": false,
    })
}

/// Returns a request for a contract. Messages to one session differ, so that each is distinct from the previous ones.
pub(crate) fn draft(text: &str, number: usize, problems: Option<&str>) -> String {
    match problems {
        None => format!(include_str!("../prompts/draft.md"), text = text.trim()),
        Some(problems) => {
            let again =
                format!(include_str!("../prompts/draft_again.md"), number = number, problems = problems);
            again.trim_ascii_end().to_owned()
        }
    }
}

/// Returns a request for a test that fails until the goal is reached. Messages to one session differ, as for [`draft`].
pub(crate) fn anchor(contract: &Contract, number: u32, feedback: Option<&str>) -> String {
    let mut text = format!(
        include_str!("../prompts/anchor.md"),
        attempt = numbered("Proposal", number),
        goal = goal(contract)
    );
    if let Some(feedback) = feedback {
        text.push_str(&format!(include_str!("../prompts/anchor_refused.md"), feedback = feedback));
    }
    text
}

/// Returns a request to continue, for a session that knows the goal. Messages to one session differ, as for [`draft`].
pub(crate) fn more_work(number: u32, feedback: Option<&str>) -> String {
    let text = format!(
        include_str!("../prompts/more_work.md"),
        attempt = numbered("Attempt", number),
        feedback = feedback.unwrap_or_default()
    );
    text.trim_ascii_end().to_owned()
}

/// Returns a request to reach the goal. Messages to one session differ, as for [`draft`].
pub(crate) fn work(
    contract: &Contract,
    plan: &CandidatePlan,
    anchor: Option<&Anchor>,
    number: u32,
    feedback: Option<&str>,
) -> String {
    let scope = &contract.scope;
    let mut text = format!(
        include_str!("../prompts/work.md"),
        attempt = numbered("Attempt", number),
        goal = goal(contract),
        checks = checks(contract, anchor),
        paths = paths(scope),
        unprotected = listed(&scope.unprotected, |files| format!(", except {files}")),
        protected = protected(scope),
        lines = Count(scope.max_lines, "line")
    );
    if let AnchorPlan::None { because } = &contract.anchor {
        text.push_str(&format!("- No test fails first: {because}.\n"));
    }
    if let Some(more) = &plan.prompt {
        text.push_str(&format!("\n{more}\n"));
    }
    if let Some(feedback) = feedback {
        text.push_str(&format!("\nThis was said or found before you began:\n{feedback}"));
    }
    text
}

/// Returns the beginning of a message. Empty for the first message of its kind.
fn numbered(kind: &str, number: u32) -> String {
    if number > 1 { format!("{kind} {number}. ") } else { String::new() }
}

/// Returns a request for a review of a change that has its evidence. The patch fits a message.
pub(crate) fn review(contract: &Contract, patch: &str, evidence: &str) -> String {
    format!(
        include_str!("../prompts/review.md"),
        goal = goal(contract),
        evidence = evidence,
        fence = fence(patch),
        patch = patch
    )
}

/// Returns a request for a comparison of changes. `directory` has their whole patches.
pub(crate) fn compare(contract: &Contract, directory: &str, changes: &[ComparedChange]) -> String {
    let mut text =
        format!(include_str!("../prompts/compare.md"), goal = goal(contract), directory = directory);
    for ComparedChange { candidate, patch, evidence } in changes {
        text.push_str(&format!(
            include_str!("../prompts/compared_change.md"),
            candidate = candidate,
            evidence = evidence,
            fence = fence(patch),
            patch = patch
        ));
    }
    text
}

/// Returns a request for a review of an anchor. `output` has the last lines of its run on the base.
pub(crate) fn anchor_review(contract: &Contract, command: &str, patch: &str, output: &[String]) -> String {
    let output: String =
        output.iter().map(|line| format!("> {}\n", crate::names::escape_name(line))).collect();
    format!(
        include_str!("../prompts/anchor_review.md"),
        goal = goal(contract),
        command = crate::names::escape_name(command),
        output = output,
        fence = fence(patch),
        patch = patch
    )
}

/// Returns a request for a test that no candidate sees.
pub(crate) fn hidden_anchor(contract: &Contract) -> String {
    format!(include_str!("../prompts/hidden_anchor.md"), goal = goal(contract))
}

/// Returns the hidden test for a reviewer.
pub(crate) fn hidden_test(patch: &str) -> String {
    format!(include_str!("../prompts/hidden_test.md"), fence = fence(patch), patch = patch)
}

/// Returns the excerpt of a file for a session, with the path of the file.
pub(crate) fn handed_file(path: &str, excerpt: &str) -> String {
    format!(include_str!("../prompts/handed_file.md"), path = path, excerpt = excerpt)
}

/// Returns the notes of earlier sessions as a list. Empty without notes.
pub(crate) fn notes<'a>(notes: impl Iterator<Item = &'a String>) -> String {
    let lines: String = notes
        .map(|note| {
            let note = crate::names::escape_name(note.trim());
            format!("- {}\n", note.get(..floor_char_boundary(&note, MAX_NOTE)).unwrap_or_default())
        })
        .collect();
    if lines.is_empty() { lines } else { format!("{}{lines}", include_str!("../prompts/notes.md")) }
}

/// Returns the excerpt of an anchor.
pub(crate) fn anchor_excerpt(patch: &str) -> String {
    if patch.is_empty() {
        return String::new();
    }
    format!(include_str!("../prompts/anchor_excerpt.md"), fence = fence(patch), patch = patch)
}

fn goal(contract: &Contract) -> String {
    let quoted: String = contract.goal.trim().lines().map(|line| format!("> {line}\n")).collect();
    format!("Goal:\n{quoted}")
}

/// Returns the lines of the commands that judge the work.
fn checks(contract: &Contract, anchor: Option<&Anchor>) -> String {
    let mut text = String::new();
    if let Some(anchor) = anchor {
        text.push_str(&format!("- `{}` fails now and has to pass", anchor.command()));
        text.push_str(&listed(anchor.files(), |files| format!(" (its test is in {files})")));
        text.push_str(".\n");
    }
    for check in &contract.checks {
        text.push_str(&format!("- `{}` has to pass", check.command));
        text.push_str(match check.pass {
            PassCondition::Success => ".\n",
            PassCondition::NoWorse => " as far as it does now: no test may fail that passes now.\n",
        });
    }
    text
}

/// Returns the lines of the paths that may change.
fn paths(scope: &TaskScope) -> String {
    let only = listed(&scope.paths, |files| format!("- Only files in {files} may change.\n"));
    only + &listed(&scope.except, |files| format!("- Files in {files} may not.\n"))
}

/// Returns the line of the files that the contract protects.
fn protected(scope: &TaskScope) -> String {
    listed(&scope.protected, |files| format!("- So do files in {files}.\n"))
}

/// Returns the text about these files or patterns. Empty for an empty list.
fn listed(names: &[String], text: impl Fn(String) -> String) -> String {
    if names.is_empty() { String::new() } else { text(crate::names::list_names(names)) }
}

/// Returns a code fence that the text does not close.
fn fence(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Returns the largest index up to `most` at which a character starts.
pub(crate) fn floor_char_boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::TaskCheck;

    fn contract() -> Contract {
        let scope = TaskScope { paths: vec!["src/".to_owned()], ..TaskScope::default() };
        let check = TaskCheck::new("tests", "pytest -rA")
            .with_results(ResultsFormat::Pytest)
            .with_pass(PassCondition::NoWorse);
        Contract::new("Sums of negative\nnumbers are right.").with_check(check).with_scope(scope)
    }

    #[test]
    fn sessions_are_told_what_counts() {
        let plan = CandidatePlan::default();
        let messages = [
            work(&contract(), &plan, None, 1, None),
            more_work(2, Some("- check tests: it exited with 1\n")),
            anchor(&contract(), 2, Some("it passes")),
            review(&contract(), "+a\n", "- The check passes.\n"),
        ];
        insta::assert_snapshot!(messages.join("\n=====\n"), @r#"
        Reach this goal in the repository that you are in.

        Goal:
        > Sums of negative
        > numbers are right.

        It is judged by commands that run on a clean copy of your changes:
        - `pytest -rA` has to pass as far as it does now: no test may fail that passes now.

        Rules:
        - Only files in `src/` may change.
        - Tests, their configuration, continuous integration and lock files stay as they are; they are compared.
        - New test files are kept, and are not judged. In manifests and build files, dependencies and lists of sources may change.
        - At most 5,000 lines may change.

        =====
        Attempt 2. The work was judged on a clean copy, and is not finished:
        - check tests: it exited with 1

        Continue until this is fixed. The rules are the same.
        =====
        Proposal 2. Write a test that fails now and passes once this goal is reached. Do not work on the goal itself.

        Goal:
        > Sums of negative
        > numbers are right.

        Rules:
        - Add to test files only: a new file, or new lines in one. Change and remove nothing that is there.
        - It must come to its assertion and fail there. An error of compilation, of an import or of what prepares the test does not count, and neither does a time-out.
        - It must fail in the same way each time, without a network and without the time of day.
        - If the project has no tests, write a script below `tests/` that exits with 1 while the goal is not reached, and with 0 afterwards.
        - If the goal is about two directions, such as writing and reading, test a value that goes through both.
        - Add no configuration of tests, such as `conftest.py`.
        - Your answer names the command that runs the new test and as little else as possible.
        - It also names the existing tests that matter for the goal.

        An earlier proposal was refused:
        it passes

        =====
        Review this change before it is merged. Another author made it; the working tree has it applied. Change nothing.

        Goal:
        > Sums of negative
        > numbers are right.

        This was found by running it:
        - The check passes.

        Look for what the tests do not show: parts of the goal that are missing, cases that are treated for the tests alone, faults beside the goal. A matter of taste is a remark and no finding.

        ```diff
        +a

        ```
        "#);
    }

    #[test]
    fn drafts_have_the_text_or_the_problems() {
        insta::assert_snapshot!(draft(" Add a cache.\n", 1, None), @"
        Draft a contract for this piece of work on the repository that you are in. Read what you need, and change nothing.

        Add a cache.

        Rules:
        - The goal says what is to be reached, with each requirement of the text and no others.
        - A check is a command that works here today without a network. Run it before you name it. Leave out what fails now for other reasons.
        - Name no check that only repeats another one.
        ");
        assert_eq!(
            draft("Add a cache.", 2, Some("no goal")),
            "Draft 2. The previous draft cannot be used:\nno goal\nAnswer with one that can."
        );
        assert!(draft("a", 1, None).ends_with("only repeats another one.\n"));
        assert!(more_work(2, None).ends_with("The rules are the same."));
    }

    #[test]
    fn work_names_every_exception_of_the_scope() {
        let mut contract = contract();
        contract.scope.except = vec!["src/old/".to_owned()];
        contract.scope.unprotected = vec!["Cargo.lock".to_owned()];
        contract.scope.protected = vec!["docs/".to_owned()];
        contract.anchor = AnchorPlan::None { because: "it is a text".to_owned() };
        let text = work(&contract, &CandidatePlan::default(), None, 1, None);
        let (_, rules) = text.split_once("\nRules:\n").unwrap();
        assert_eq!(
            rules,
            "- Only files in `src/` may change.\n\
             - Files in `src/old/` may not.\n\
             - Tests, their configuration, continuous integration and lock files stay as they are; they are compared, except \
             `Cargo.lock`.\n\
             - So do files in `docs/`.\n\
             - New test files are kept, and are not judged. In manifests and build files, dependencies and lists of sources \
             may change.\n\
             - At most 5,000 lines may change.\n\
             - No test fails first: it is a text.\n"
        );
    }

    #[test]
    fn a_session_that_does_not_know_the_goal_is_told_it_with_what_was_said() {
        let text = work(&contract(), &CandidatePlan::default(), None, 2, Some("- use integers\n"));
        assert!(
            text.starts_with("Attempt 2. Reach this goal") && text.contains("> numbers are right."),
            "{text}"
        );
        assert!(text.ends_with("\nThis was said or found before you began:\n- use integers\n"), "{text}");
    }
}
