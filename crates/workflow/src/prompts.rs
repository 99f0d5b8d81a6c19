//! Messages to the sessions of a task, and the forms of their answers.

use pintle_agent::Count;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::anchor::Anchor;
use crate::contract::{AnchorPlan, CandidatePlan, Contract};
use crate::results::ResultsFormat;

/// Most bytes of a patch in a message.
const MAX_PATCH: usize = 100 << 10;

/// Answer of a session that proposes an anchor.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Proposal {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) results: Option<ResultsFormat>,
    #[serde(default)]
    pub(crate) report: Option<String>,
}

/// Answer of a session that reviews.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Review {
    #[serde(default)]
    pub(crate) findings: Vec<String>,
    #[serde(default)]
    pub(crate) remarks: String,
}

/// Returns the form of a [`Proposal`].
pub(crate) fn proposal_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "Command of the shell that runs the new test, from the root of the repository",
            },
            "results": {
                "enum": ["cargo", "pytest", "junit", "tap", null],
                "description": "Format of its results: output of `cargo test`, output of `pytest -rA`, a file of JUnit XML, output of TAP; null if it has none of them",
            },
            "report": {
                "type": ["string", "null"],
                "description": "File with the results, for junit",
            },
        },
        "required": ["command", "results", "report"],
        "additionalProperties": false,
    })
}

/// Returns the form of a [`Review`].
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

/// Asks for a contract. Messages to one session differ, so that each can be told from those before it.
pub(crate) fn draft(text: &str, number: usize, problems: Option<&str>) -> String {
    if let Some(problems) = problems {
        return format!(
            "Draft {number}. The one before cannot be used:\n{problems}\nAnswer with one that can."
        );
    }
    format!(
        "Draft a contract for this piece of work on the repository that you are in. Read what you need, and change nothing.\n\n\
         {}\n\n\
         Rules:\n\
         - The goal says what is to be reached, with each requirement of the text and none of your own.\n\
         - A check is a command that works here today without a network. Run it before you name it. Leave out what fails now for other reasons.\n\
         - Name no check that only repeats another one.\n",
        text.trim()
    )
}

/// Asks for a test that fails until the goal is reached. Messages to one session differ, as those of [`draft`].
pub(crate) fn anchor(contract: &Contract, number: u32, feedback: Option<&str>) -> String {
    let mut text = numbered("Proposal", number);
    text.push_str(&format!(
        "Write a test that fails now and passes once this goal is reached. Do not work on the goal itself.\n\n\
         {}\n\
         Rules:\n\
         - Add to test files only: a new file, or new lines in one. Change and remove nothing that is there.\n\
         - It must come to its assertion and fail there. An error of compilation, of an import or of what prepares the test does not count, and neither does a time-out.\n\
         - It must fail in the same way each time, without a network and without the time of day.\n\
         - If the project has no tests, write a script below `tests/` that exits with 1 while the goal is not reached, and with 0 afterwards.\n\
         - Your answer names the command that runs the new test and as little else as possible.\n",
        goal(contract)
    ));
    if let Some(feedback) = feedback {
        text.push_str(&format!("\nAn earlier proposal was refused:\n{feedback}\n"));
    }
    text
}

/// Asks a session that knows the goal to go on. Messages to one session differ, as those of [`draft`].
pub(crate) fn more_work(number: u32, feedback: Option<&str>) -> String {
    format!(
        "{}The work was judged on a clean copy, and is not finished:\n{}\nGo on until this is mended. The rules are the same.",
        numbered("Attempt", number),
        feedback.unwrap_or_default()
    )
}

/// Asks for the goal. Messages to one session differ, as those of [`draft`].
pub(crate) fn work(
    contract: &Contract,
    plan: &CandidatePlan,
    anchor: Option<&Anchor>,
    number: u32,
    feedback: Option<&str>,
) -> String {
    let mut text = numbered("Attempt", number);
    text.push_str(&format!("Reach this goal in the repository that you are in.\n\n{}\n", goal(contract)));
    text.push_str("It is judged by commands that run on a clean copy of your changes:\n");
    if let Some(anchor) = anchor {
        text.push_str(&format!("- `{}` fails now and has to pass", anchor.command()));
        if !anchor.files().is_empty() {
            text.push_str(&format!(" (its test is in {})", crate::names::named(anchor.files())));
        }
        text.push_str(".\n");
    }
    for check in &contract.checks {
        text.push_str(&format!("- `{}` has to pass", check.command));
        text.push_str(match check.pass {
            crate::contract::Pass::Success => ".\n",
            crate::contract::Pass::NoWorse => " as far as it does now: no test may fail that passes now.\n",
        });
    }
    text.push_str(&rules(contract));
    if let Some(more) = &plan.prompt {
        text.push_str(&format!("\n{more}\n"));
    }
    if let Some(feedback) = feedback {
        text.push_str(&format!("\nThis was said or found before you began:\n{feedback}"));
    }
    text
}

/// Returns the beginning of a message; none for the first of its kind.
fn numbered(kind: &str, number: u32) -> String {
    if number > 1 { format!("{kind} {number}. ") } else { String::new() }
}

/// Asks for a review of a change that has its evidence.
pub(crate) fn review(contract: &Contract, patch: &str, evidence: &str) -> String {
    let shown = patch.get(..floor(patch, MAX_PATCH)).unwrap_or_default();
    let cut = if shown.len() < patch.len() { "\n(The rest is in the working tree.)\n" } else { "" };
    let fence = fence(shown);
    format!(
        "Review this change before it is merged. Somebody else made it; the working tree has it applied. Change nothing.\n\n\
         {}\n\
         This was found by running it:\n{evidence}\n\
         Look for what the tests do not show: parts of the goal that are missing, cases that are treated for the tests alone, faults beside the goal. A matter of taste is a remark and no finding.\n\n\
         {fence}diff\n{shown}\n{fence}\n{cut}",
        goal(contract)
    )
}

fn goal(contract: &Contract) -> String {
    let quoted: String = contract.goal.trim().lines().map(|line| format!("> {line}\n")).collect();
    format!("Goal:\n{quoted}")
}

fn rules(contract: &Contract) -> String {
    let list = |patterns: &[String]| crate::names::named(patterns);
    let scope = &contract.scope;
    let mut text = "\nRules:\n".to_owned();
    if !scope.paths.is_empty() {
        text.push_str(&format!("- Only files in {} may change.\n", list(&scope.paths)));
    }
    if !scope.except.is_empty() {
        text.push_str(&format!("- Files in {} may not.\n", list(&scope.except)));
    }
    text.push_str(
        "- Tests, their configuration, continuous integration and lock files stay as they are; they are compared",
    );
    if scope.unprotected.is_empty() {
        text.push_str(".\n");
    } else {
        text.push_str(&format!(", except {}.\n", list(&scope.unprotected)));
    }
    if !scope.protected.is_empty() {
        text.push_str(&format!("- So do files in {}.\n", list(&scope.protected)));
    }
    text.push_str(&format!("- At most {} may change.\n", Count(scope.max_lines, "line")));
    if let AnchorPlan::None { because } = &contract.anchor {
        text.push_str(&format!("- No test fails first: {because}.\n"));
    }
    text
}

/// Returns a fence of code that a text does not close.
fn fence(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Returns the largest index up to `most` at which a character begins.
pub(crate) fn floor(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Check, Pass, Scope};

    fn contract() -> Contract {
        let scope = Scope { paths: vec!["src/".to_owned()], ..Scope::default() };
        let check =
            Check::new("tests", "pytest -rA").with_results(ResultsFormat::Pytest).with_pass(Pass::NoWorse);
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
        - At most 5,000 lines may change.

        =====
        Attempt 2. The work was judged on a clean copy, and is not finished:
        - check tests: it exited with 1

        Go on until this is mended. The rules are the same.
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
        - Your answer names the command that runs the new test and as little else as possible.

        An earlier proposal was refused:
        it passes

        =====
        Review this change before it is merged. Somebody else made it; the working tree has it applied. Change nothing.

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
    fn a_session_that_does_not_know_the_goal_is_told_it_with_what_was_said() {
        let text = work(&contract(), &CandidatePlan::default(), None, 2, Some("- use integers\n"));
        assert!(
            text.starts_with("Attempt 2. Reach this goal") && text.contains("> numbers are right."),
            "{text}"
        );
        assert!(text.ends_with("\nThis was said or found before you began:\n- use integers\n"), "{text}");
    }

    #[test]
    fn long_patches_are_cut_between_characters() {
        let patch = "ä".repeat(MAX_PATCH);
        let text = review(&contract(), &patch, "");
        assert!(text.len() < MAX_PATCH + 2_000 && text.contains("The rest is in the working tree"));
    }
}
