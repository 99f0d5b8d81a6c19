//! Reports: how a task ended, what proves it, and what it cost.

mod html;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde::Serialize;

pub use self::html::ShownDiff;
use crate::anchor::Anchor;
use crate::contract::{AnchorPlan, Contract};
use crate::diff::Diff;
use crate::evidence::{Finding, Proof};
use crate::task::{Attempt, BlockedBy, Candidate, LimitKind, Outcome, ReviewFacts, Spent, Task};

/// Version of the report as JSON.
const VERSION: u32 = 1;

/// Report about a task, ended or not. [`to_json`](Self::to_json) is for programs, [`to_markdown`](Self::to_markdown) and
/// [`to_html`](Self::to_html) for people.
#[derive(Clone, Debug, Serialize)]
pub struct Report<'a> {
    version: u32,
    contract: &'a Contract,
    outcome: Option<&'a Outcome>,
    anchor: Option<&'a Anchor>,
    proposals: &'a [Vec<String>],
    remarks: &'a [String],
    candidates: Vec<CandidateReport<'a>>,
    spent: &'a Spent,
}

#[derive(Clone, Debug, Serialize)]
struct CandidateReport<'a> {
    model: Option<&'a str>,
    effort: Option<&'a str>,
    out: Option<&'a str>,
    attempts: Vec<AttemptReport<'a>>,
    spent: &'a Spent,
}

#[derive(Clone, Debug, Serialize)]
struct AttemptReport<'a> {
    session: Option<&'a str>,
    diff: Option<&'a Diff>,
    proof: Option<&'a Proof>,
    findings: &'a [Finding],
    review: Option<&'a ReviewFacts>,
    sent_back: &'a [String],
}

impl<'a> Report<'a> {
    /// Reports about a task as it is now.
    #[must_use]
    pub fn of(task: &'a Task) -> Self {
        let plans = task.contract().candidates.iter();
        let candidates = plans.zip(task.candidates()).map(|(plan, state)| CandidateReport {
            model: plan.model.as_deref(),
            effort: plan.effort.as_deref(),
            out: state.out(),
            attempts: state.attempts().iter().map(AttemptReport::of).collect(),
            spent: Candidate::spent(state),
        });
        Self {
            version: VERSION,
            contract: task.contract(),
            outcome: task.outcome(),
            anchor: task.anchor(),
            proposals: task.proposals(),
            remarks: task.baseline().map(|baseline| baseline.remarks.as_slice()).unwrap_or_default(),
            candidates: candidates.collect(),
            spent: task.spent(),
        }
    }

    /// Returns the report as one JSON object.
    ///
    /// # Errors
    ///
    /// As for [`serde_json::to_string_pretty`], which does not fail for these types.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Returns the report as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.title(), self.ending());
        let _ = write!(text, "\n## Goal\n\n{}\n", quoted(&self.contract.goal));
        if let Some(Outcome::Done(done)) = self.outcome {
            let _ = write!(text, "\n## Evidence\n\n{}", evidence(self.contract, done.proof()));
            if let Some(review) = done.review() {
                let _ = write!(text, "\n## Review\n\n{}\n", said_by_reviewer(review));
            }
        }
        if self.anchor.is_none() && !self.proposals.is_empty() {
            text.push_str("\n## Proposals that were no anchor\n\n");
            for (number, problems) in (1..).zip(self.proposals) {
                let _ = writeln!(text, "{number}. {}", plain(&problems.join("; ")));
            }
        }
        text.push_str("\n## Candidates\n\n| candidate | model | attempts | result | lines | cost |\n|---|---|---|---|---|---|\n");
        for (number, candidate) in self.candidates.iter().enumerate() {
            text.push_str(&candidate.row(number));
        }
        for (number, candidate) in self.candidates.iter().enumerate() {
            text.push_str(&candidate.findings(number));
        }
        if !self.remarks.is_empty() {
            text.push_str("\n## Remarks\n\n");
            self.remarks.iter().for_each(|remark| text.push_str(&format!("* {}\n", plain(remark))));
        }
        let _ = write!(text, "\n## Bill\n\n{}\n", bill(self.spent));
        text
    }

    fn title(&self) -> &'static str {
        match self.outcome {
            None => "Under way",
            Some(Outcome::Done(_)) => "Done",
            Some(Outcome::Blocked(_)) => "Blocked",
            Some(Outcome::Limit { .. }) => "At its limit",
            Some(Outcome::Aborted { .. }) => "Cancelled",
            Some(Outcome::Failed { .. }) => "Failed",
        }
    }

    /// Returns how the task ended, in a sentence.
    fn ending(&self) -> String {
        match self.outcome {
            None => "The task has not ended.".to_owned(),
            Some(Outcome::Done(done)) => format!("Candidate {} reached the goal.", done.candidate()),
            Some(Outcome::Blocked(BlockedBy::NoAnchor(_))) => {
                "Nothing was found that fails before the goal is reached, so nothing would prove that it is."
                    .to_owned()
            }
            Some(Outcome::Blocked(BlockedBy::NoCandidate)) => "No candidate reached the goal.".to_owned(),
            Some(Outcome::Blocked(BlockedBy::Refused { words, .. })) => match words {
                Some(words) => format!("A person refused it: {}", plain(words)),
                None => "A person refused it.".to_owned(),
            },
            Some(Outcome::Limit { limit, best }) => {
                let limit = match limit {
                    LimitKind::Usd => "dollars",
                    LimitKind::Tokens => "tokens",
                    LimitKind::Minutes => "minutes",
                };
                let best =
                    best.map(|best| format!(" Candidate {best} has its evidence, and was not reviewed."));
                format!("The budget of {limit} is used up.{}", best.unwrap_or_default())
            }
            Some(Outcome::Aborted { reason }) => format!("It was cancelled: {}", plain(reason)),
            Some(Outcome::Failed { step, reason }) => format!("The step {step} failed: {}", plain(reason)),
        }
    }
}

impl<'a> AttemptReport<'a> {
    fn of(attempt: &'a Attempt) -> Self {
        let verdict = attempt.verdict.as_ref();
        Self {
            session: attempt.work.as_ref().map(|work| work.session.as_str()),
            diff: attempt.facts.as_ref().map(|facts| &facts.diff),
            proof: verdict.and_then(|verdict| verdict.as_ref().ok()),
            findings: verdict
                .and_then(|verdict| verdict.as_ref().err())
                .map(Vec::as_slice)
                .unwrap_or_default(),
            review: attempt.review.as_ref(),
            sent_back: &attempt.sent_back,
        }
    }
}

impl CandidateReport<'_> {
    fn row(&self, number: usize) -> String {
        let newest = self.attempts.last();
        let result = match (self.out, newest.is_some_and(|attempt| attempt.proof.is_some())) {
            (Some(out), _) => out,
            (None, true) => "has its evidence",
            (None, false) => "under way",
        };
        let lines =
            newest.and_then(|attempt| attempt.diff).map_or("–".to_owned(), |diff| diff.lines().to_string());
        let model = [self.model, self.effort].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let model = if model.is_empty() { "–".to_owned() } else { plain(&model) };
        let cost = dollars(self.spent);
        format!("| {number} | {model} | {} | {result} | {lines} | {cost} |\n", self.attempts.len())
    }

    fn findings(&self, number: usize) -> String {
        let mut text = String::new();
        for (attempt, report) in (1..).zip(&self.attempts) {
            let said = report.findings.iter().map(Finding::to_string);
            let sent_back = report.sent_back.iter().map(|words| format!("sent back: {words}"));
            let all: Vec<String> =
                said.chain(sent_back).map(|line| format!("* {}\n", plain(&line))).collect();
            if !all.is_empty() {
                let _ = write!(text, "\n### Candidate {number}, attempt {attempt}\n\n{}", all.concat());
            }
        }
        text
    }
}

/// Returns what proves a result, as a list in Markdown.
pub(crate) fn evidence(contract: &Contract, proof: &Proof) -> String {
    let mut text = match (proof.anchor(), &contract.anchor) {
        (Some(anchor), _) => {
            let tests: Vec<String> = anchor.tests().iter().cloned().collect();
            let what =
                if tests.is_empty() { String::new() } else { format!(" ({})", crate::anchor::named(&tests)) };
            format!("* Anchor: {}{what} failed three times before, and passes now.\n", code(anchor.command()))
        }
        (None, AnchorPlan::None { because }) => {
            format!("* There is no anchor: {}. The checks alone are the evidence.\n", plain(because))
        }
        (None, _) => String::new(),
    };
    for check in proof.checks() {
        let _ = write!(text, "* Check {}: {} passes", code(&check.name), code(&check.command));
        if check.passed > 0 {
            let _ = write!(text, ", with {} tests", check.passed);
        }
        if !check.failing_before.is_empty() {
            let _ = write!(
                text,
                "; {} failed before and fails still",
                crate::anchor::named(&check.failing_before)
            );
        }
        if !check.flaky.is_empty() {
            let _ =
                write!(text, "; {} was flaky before and proves nothing", crate::anchor::named(&check.flaky));
        }
        text.push_str(".\n");
    }
    let diff = proof.diff();
    let (added, removed) =
        diff.files.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    let _ = writeln!(
        text,
        "* Diff: {}, {} added, {removed} removed; protected files are as they were.",
        counted(diff.files.len() as u64, "file"),
        counted(added, "line")
    );
    text
}

fn said_by_reviewer(review: &ReviewFacts) -> String {
    let remarks = if review.remarks.is_empty() { "No remarks." } else { &review.remarks };
    format!("The reviewer found no fault.\n\n{}", quoted(remarks))
}

fn bill(spent: &Spent) -> String {
    let unknown = if spent.is_price_unknown {
        " The price of a model is not known; its calls are not counted."
    } else {
        ""
    };
    let seconds = spent.millis / 1_000;
    format!(
        "{} in {} tokens, for all candidates and reviews. The steps took {} min {} s.{unknown}",
        dollars(spent),
        spent.tokens,
        seconds / 60,
        seconds % 60
    )
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn dollars(spent: &Spent) -> String {
    let at_least = if spent.is_price_unknown { "≥ " } else { "" };
    format!("{at_least}${:.2}", spent.usd)
}

/// Returns text of a model or a person as one line that formats nothing but code.
fn plain(text: &str) -> String {
    let shown = |character: char| match character {
        '<' => "&lt;".to_owned(),
        '|' => "\\|".to_owned(),
        _ if character.is_control() => " ".to_owned(),
        _ => character.to_string(),
    };
    text.trim().chars().map(shown).collect()
}

fn quoted(text: &str) -> String {
    text.trim().lines().map(|line| format!("> {}", plain(line))).collect::<Vec<_>>().join("\n")
}

fn code(text: &str) -> String {
    format!("`{}`", crate::anchor::shown(text))
}
