//! Reports: the outcome of a task, its evidence, and its costs.

mod decision;
mod html;
mod plan;
mod pull_request;
mod run_facts;
mod strength;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use pintle_agent::{Count, SessionId};
use pintle_evidence::anchor::Anchor;
use pintle_evidence::diff::Diff;
use pintle_evidence::judging::{JudgingFacts, JudgingList};
use pintle_evidence::names::{MAX_NAMES, escape_name};
use pintle_evidence::proof::{FailedOutput, Finding, Proof, failed_outputs};
use pintle_store::StoreError;
use serde::Serialize;

use self::decision::{PendingDecision, ProvedResult};
pub use self::html::{CandidateDiff, escape_markup};
use self::plan::PlanReport;
use self::run_facts::RunFacts;
use crate::contract::{AnchorPlan, Contract};
use crate::local::RecordedInput;
use crate::task::{
    BlockReason, CandidateAttempt, LimitKind, ReviewFacts, StepCost, Task, TaskCandidate, TaskOutcome,
    WorkCost,
};

/// Version of the report as JSON.
const VERSION: u32 = 1;

/// Report about a task, ended or not. [`to_json`](Self::to_json) is for programs, [`to_markdown`](Self::to_markdown) and
/// [`to_html`](Self::to_html) for users.
#[derive(Clone, Debug, Serialize)]
pub struct TaskReport<'a> {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// State, from [`Task::state`].
    state: &'static str,
    contract: &'a Contract,
    outcome: Option<&'a TaskOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<PendingDecision>,
    #[serde(skip)]
    result: Option<ProvedResult<'a>>,
    anchor: Option<&'a Anchor>,
    /// Patch that adds the test of the anchor.
    #[serde(skip)]
    anchor_patch: Option<String>,
    proposals: &'a [Vec<String>],
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judges: Option<&'a JudgingList>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<PlanReport<'a>>,
    candidates: Vec<CandidateReport<'a>>,
    spent: &'a WorkCost,
    /// Costs of each step that has ended, in order.
    steps: &'a [StepCost],
    /// Dates, from the inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct CandidateReport<'a> {
    /// State, from [`Task::candidate_state`].
    state: String,
    /// Model of the contract, or the models that were called.
    model: Option<String>,
    effort: Option<&'a str>,
    out: Option<&'a str>,
    /// Whether it waits because another candidate has its evidence.
    waits: bool,
    attempts: Vec<AttemptReport<'a>>,
    /// Its newest change.
    #[serde(skip)]
    change: Option<&'a Diff>,
    spent: &'a WorkCost,
}

#[derive(Clone, Debug, Serialize)]
struct AttemptReport<'a> {
    session: Option<&'a str>,
    diff: Option<&'a Diff>,
    proof: Option<&'a Proof>,
    findings: &'a [Finding],
    /// End of the output of its failed commands, if it has findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<FailedOutput>,
    review: Option<&'a ReviewFacts>,
    sent_back: &'a [String],
}

impl<'a> TaskReport<'a> {
    /// Creates a report about the current state of a task.
    #[must_use]
    pub fn from_task(task: &'a Task) -> Self {
        let (plans, work) = (task.contract().candidates.iter(), task.contract().models.work.as_ref());
        let states = task.candidates().iter().enumerate();
        let candidates = plans.zip(states).map(|(plan, (number, state))| CandidateReport {
            state: task.candidate_state(number).unwrap_or_default(),
            waits: task.is_waiting(number),
            model: plan.model.clone().or_else(|| work?.model.clone()).or_else(|| state.called_models()),
            effort: plan.effort.as_deref().or(work.and_then(|work| work.effort.as_deref())),
            out: state.stop_reason(),
            attempts: state.attempts().iter().map(AttemptReport::from_attempt).collect(),
            change: task.newest_change(number),
            spent: TaskCandidate::spent(state),
        });
        let decision = PendingDecision::from_task(task);
        Self {
            version: VERSION,
            id: None,
            state: task.state(),
            contract: task.contract(),
            outcome: task.outcome(),
            decision,
            result: ProvedResult::from_task(task, decision),
            anchor: task.anchor(),
            anchor_patch: None,
            proposals: task.proposals(),
            remarks: strength::remarks(task),
            judges: task.baseline().map(|baseline| &baseline.judges).filter(|judges| !judges.is_empty()),
            plan: PlanReport::from_task(task),
            candidates: candidates.collect(),
            spent: task.spent(),
            steps: task.step_costs(),
            run: None,
            damage: None,
        }
    }

    /// Adds the damage of the journal, if it has any. The task is its state before the damage.
    #[must_use]
    pub fn with_damage(mut self, damage: Option<&StoreError>) -> Self {
        self.damage = damage.map(ToString::to_string);
        self
    }

    /// Adds the id of the task, which the contract does not contain. The report names the base and the models then.
    #[must_use]
    pub fn with_id(mut self, id: &'a SessionId) -> Self {
        self.id = Some(id.as_str());
        self
    }

    /// Adds the patch with the test of the anchor, which a task that is not done shows.
    #[must_use]
    pub fn with_anchor_patch(mut self, patch: Option<String>) -> Self {
        self.anchor_patch = patch;
        self
    }

    /// Adds the dates of the task and the costs of its steps, which its inputs have.
    #[must_use]
    pub fn with_inputs(mut self, inputs: &'a [RecordedInput]) -> Self {
        self.run = RunFacts::from_inputs(inputs);
        self
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
        let blocks = self.head_blocks().into_iter().chain(self.body_blocks());
        blocks.map(|block| block.to_markdown()).collect::<Vec<_>>().join("\n")
    }

    fn head_blocks(&self) -> [ReportBlock; 2] {
        [ReportBlock::Heading(1, self.title()), ReportBlock::Text(self.describe_outcome())]
    }

    fn goal_blocks(&self) -> Vec<ReportBlock> {
        vec![ReportBlock::Heading(2, "Goal".to_owned()), ReportBlock::Quote(self.contract.goal.clone())]
    }

    /// Returns the evidence and the review of the chosen candidate, once there is one.
    fn evidence_blocks(&self) -> Vec<ReportBlock> {
        let heading = |title: &str| ReportBlock::Heading(2, title.to_owned());
        let mut blocks = Vec::new();
        if let Some(ProvedResult { proof, review }) = self.result {
            let lines = evidence_lines(self.contract, proof);
            blocks.extend([heading("Evidence"), ReportBlock::List(lines)]);
            if let Some(review) = review {
                let remarks = if review.remarks.is_empty() { "No remarks." } else { &review.remarks };
                let found = ReportBlock::Text("The reviewer found no fault.".to_owned());
                blocks.extend([heading("Review"), found, ReportBlock::Quote(remarks.to_owned())]);
            }
        }
        blocks
    }

    fn body_blocks(&self) -> Vec<ReportBlock> {
        let heading = |title: &str| ReportBlock::Heading(2, title.to_owned());
        let mut blocks = Vec::new();
        let run = self.run_lines();
        if !run.is_empty() {
            blocks.extend([heading("Task"), ReportBlock::List(run)]);
        }
        if let Some(damage) = &self.damage {
            let text = format!("The rest of the record cannot be read: {damage}");
            blocks.extend([heading("Damage"), ReportBlock::Text(text)]);
        }
        blocks.extend(self.decision_blocks());
        blocks.extend(self.goal_blocks());
        blocks.extend(self.evidence_blocks());
        blocks.extend(self.anchor_blocks());
        if self.anchor.is_none() && !self.proposals.is_empty() {
            let proposals = self.proposals.iter().map(|problems| ReportItem::from_text(&problems.join("; ")));
            blocks.extend([
                heading("Proposals that were no anchor"),
                ReportBlock::Numbered(proposals.collect()),
            ]);
        }
        blocks.extend(self.plan.iter().flat_map(PlanReport::blocks));
        blocks.extend(self.plan_hint());
        let rows = self.candidates.iter().enumerate().map(|(number, candidate)| candidate.row(number));
        let head = &["candidate", "model", "attempts", "result", "lines", "cost"];
        let (name, rows) = ("Candidates", rows.collect());
        let table = ReportTable { name, head, rows, has_names: true, has_numbers: false };
        blocks.extend([heading("Candidates"), ReportBlock::Table(table)]);
        for (number, candidate) in self.candidates.iter().enumerate() {
            blocks.extend(candidate.findings(number));
        }
        if let Some(judges) = self.judges.filter(|judges| !judges.by_command.is_empty()) {
            let line = ReportItem::default()
                .text("Commands name or include ")
                .names(&judges.by_command)
                .text(". They have to stay as they are.");
            blocks.extend([heading("Files that judge"), ReportBlock::List(vec![line])]);
        }
        if !self.remarks.is_empty() {
            let remarks = self.remarks.iter().map(|remark| ReportItem::from_text(remark));
            blocks.extend([heading("Remarks"), ReportBlock::List(remarks.collect())]);
        }
        blocks.extend([heading("Bill"), ReportBlock::Text(render_bill(self.spent))]);
        for table in self.cost_tables() {
            blocks.extend([ReportBlock::Heading(3, table.name.to_owned()), ReportBlock::Table(table)]);
        }
        blocks
    }

    /// Returns the costs of each step and of each model. Empty if there are none.
    fn cost_tables(&self) -> Vec<ReportTable> {
        let row = |name: String, spent: &WorkCost| {
            vec![name, spent.dollars(), spent.tokens.to_string(), html::format_duration(spent.millis)]
        };
        let drafted = self.contract.drafted.iter().map(|drafted| row("draft".to_owned(), &drafted.spent));
        let steps = self.steps.iter().map(|StepCost { step, spent }| row(step.to_string(), spent));
        let models = self.spent.models.iter();
        let models = models
            .map(|(model, cost)| vec![model.clone(), cost.dollars(), cost.tokens.to_string()])
            .collect();
        let by_step = ReportTable {
            name: "Bill by step",
            head: &["step", "cost", "tokens", "time"],
            rows: drafted.chain(steps).collect(),
            has_names: true,
            has_numbers: true,
        };
        let by_model = ReportTable {
            name: "Bill by model",
            head: &["model", "cost", "tokens"],
            rows: models,
            has_names: true,
            has_numbers: true,
        };
        [by_step, by_model].into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    /// Returns the state of the task, with a capital letter.
    fn title(&self) -> String {
        let (first, rest) = self.state.split_at(self.state.len().min(1));
        first.to_ascii_uppercase() + rest
    }

    /// Returns the outcome of the task as a sentence.
    #[must_use]
    pub fn describe_outcome(&self) -> String {
        match self.outcome {
            None => match self.decision {
                Some(decision) => decision.describe(),
                None => "The task has not ended.".to_owned(),
            },
            Some(TaskOutcome::Done(done)) => format!("Candidate {} reached the goal.", done.candidate()),
            Some(TaskOutcome::Blocked(BlockReason::NoAnchor(_))) => {
                "Nothing was found that fails before the goal is reached, so nothing would prove that it is."
                    .to_owned()
            }
            Some(TaskOutcome::Blocked(BlockReason::NoCandidate)) => {
                "No candidate reached the goal.".to_owned()
            }
            Some(TaskOutcome::Blocked(BlockReason::Refused { words, .. })) => match words {
                Some(words) => format!("A person refused it: {}", words.trim()),
                None => "A person refused it.".to_owned(),
            },
            Some(TaskOutcome::Blocked(BlockReason::NoPlan(answers))) => {
                let problems = answers.last().map(|problems| problems.join("; ")).unwrap_or_default();
                format!("No next step was found: {problems}")
            }
            Some(TaskOutcome::Blocked(BlockReason::Rounds { rounds, backlog })) => {
                let left = match backlog.len() {
                    0 => ", and the change lacks evidence.".to_owned(),
                    left => format!(". Still planned: {}.", Count(left as u64, "step")),
                };
                format!("The plan has reached its limit of {}{left}", Count(u64::from(*rounds), "step"))
            }
            Some(TaskOutcome::Limit { limit, best }) => self.describe_limit(*limit, *best),
            Some(TaskOutcome::Aborted { reason }) => format!("It was cancelled: {}", reason.trim()),
            Some(TaskOutcome::Failed { step, reason }) => {
                format!("The step {step} failed: {}", reason.trim())
            }
        }
    }

    fn describe_limit(&self, limit: LimitKind, best: Option<usize>) -> String {
        let budget = match limit {
            LimitKind::Usd => "budget of dollars",
            LimitKind::Tokens => "budget of tokens",
            LimitKind::Minutes => "budget of minutes",
            LimitKind::Session => "budget of its sessions",
        };
        let best = best.map(|best| format!(" Candidate {best} has its evidence, and was not reviewed."));
        let is_reached = limit.is_reached(&self.contract.budget, self.spent);
        // A session stops before a call that it cannot pay for.
        let end = match is_reached.unwrap_or_else(|| self.spent.has_calls()) {
            true => "is used up",
            false => "does not cover the next call",
        };
        format!("The {budget} {end}.{}", best.unwrap_or_default())
    }
}

impl<'a> AttemptReport<'a> {
    fn from_attempt(attempt: &'a CandidateAttempt) -> Self {
        let verdict = attempt.verdict.as_ref();
        let facts = attempt.facts.as_ref().filter(|_| matches!(verdict, Some(Err(_))));
        Self {
            session: attempt.work.as_ref().map(|work| work.session.as_str()),
            diff: attempt.facts.as_ref().map(|facts| &facts.diff),
            proof: verdict.and_then(|verdict| verdict.as_ref().ok()),
            findings: verdict
                .and_then(|verdict| verdict.as_ref().err())
                .map(Vec::as_slice)
                .unwrap_or_default(),
            outputs: facts.map(failed_outputs).unwrap_or_default(),
            review: attempt.review.as_ref(),
            sent_back: &attempt.sent_back,
        }
    }
}

impl CandidateReport<'_> {
    fn row(&self, number: usize) -> Vec<String> {
        let newest = self.attempts.last();
        let diff = newest.and_then(|attempt| attempt.diff).or(self.change);
        let lines = diff.map_or("–".to_owned(), |diff| diff.lines().to_string());
        let model = [self.model.as_deref(), self.effort].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let model = if model.is_empty() { "–".to_owned() } else { model };
        let attempts = self.attempts.len().to_string();
        vec![number.to_string(), model, attempts, self.state.clone(), lines, self.spent.dollars()]
    }

    fn findings(&self, number: usize) -> Vec<ReportBlock> {
        let mut blocks = Vec::new();
        for (attempt, report) in (1..).zip(&self.attempts) {
            let said = report.findings.iter().map(Finding::to_string);
            let sent_back = report.sent_back.iter().map(|words| format!("sent back: {words}"));
            let all: Vec<ReportItem> =
                said.chain(sent_back).map(|line| ReportItem::from_text(&line)).collect();
            if !all.is_empty() {
                let heading = format!("Candidate {number}, attempt {attempt}");
                blocks.extend([ReportBlock::Heading(3, heading), ReportBlock::List(all)]);
            }
            for output in &report.outputs {
                let lines = output.lines.join("\n");
                blocks.extend([ReportBlock::Text(output.describe()), ReportBlock::Output(lines)]);
            }
        }
        blocks
    }
}

/// Part of a report. The Markdown and the HTML page are both generated from it, so that neither parses the other.
#[derive(Debug)]
enum ReportBlock {
    Heading(usize, String),
    Text(String),
    Quote(String),
    /// Lines of output, verbatim.
    Output(String),
    List(Vec<ReportItem>),
    Numbered(Vec<ReportItem>),
    Table(ReportTable),
}

#[derive(Debug)]
struct ReportTable {
    /// Accessible name, for readers that do not see the heading above it.
    name: &'static str,
    head: &'static [&'static str],
    rows: Vec<Vec<String>>,
    /// Whether the first cell of a row names it.
    has_names: bool,
    /// Whether the other cells are numbers.
    has_numbers: bool,
}

/// Item of a list.
#[derive(Debug, Default)]
struct ReportItem(Vec<TextSpan>);

#[derive(Debug)]
enum TextSpan {
    /// Text in which backticks mark code.
    Text(String),
    /// Name or command, verbatim.
    Code(String),
}

impl ReportBlock {
    fn to_markdown(&self) -> String {
        match self {
            Self::Heading(level, title) => format!("{} {title}\n", "#".repeat(*level)),
            Self::Text(text) => format!("{}\n", single_line(text)),
            Self::Quote(text) => format!("{}\n", quote(text)),
            Self::Output(lines) => lines.lines().map(|line| format!("    {}\n", printable(line))).collect(),
            Self::List(lines) => lines.iter().map(|line| format!("* {}\n", line.to_markdown())).collect(),
            Self::Numbered(lines) => {
                let numbered = (1..).zip(lines);
                numbered.map(|(number, line)| format!("{number}. {}\n", line.to_markdown())).collect()
            }
            Self::Table(table) => table.to_markdown(),
        }
    }
}

impl ReportTable {
    fn to_markdown(&self) -> String {
        let mut text = format!("| {} |\n|{}\n", self.head.join(" | "), "---|".repeat(self.head.len()));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| single_line(cell)).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }
}

impl ReportItem {
    fn from_text(words: &str) -> Self {
        Self::default().text(words.trim())
    }

    fn text(mut self, text: impl Into<String>) -> Self {
        self.0.push(TextSpan::Text(text.into()));
        self
    }

    fn code(mut self, code: &str) -> Self {
        self.0.push(TextSpan::Code(code.to_owned()));
        self
    }

    /// Appends the first names, and the number of the others.
    fn names(mut self, names: &[String]) -> Self {
        for (index, name) in names.iter().take(MAX_NAMES).enumerate() {
            self = if index == 0 { self.code(name) } else { self.text(", ").code(name) };
        }
        if names.len() > MAX_NAMES {
            self = self.text(format!(" and {} more", names.len() - MAX_NAMES));
        }
        self
    }

    fn to_markdown(&self) -> String {
        let piece = |piece: &TextSpan| match piece {
            TextSpan::Text(text) => escape_markdown(text),
            TextSpan::Code(code) => format!("`{}`", escape_name(code)),
        };
        self.0.iter().map(piece).collect()
    }
}

/// Returns the evidence of a result as a Markdown list.
pub(crate) fn evidence(contract: &Contract, proof: &Proof) -> String {
    ReportBlock::List(evidence_lines(contract, proof)).to_markdown()
}

fn evidence_lines(contract: &Contract, proof: &Proof) -> Vec<ReportItem> {
    let mut lines: Vec<ReportItem> = anchor_line(contract, proof).into_iter().collect();
    lines.extend(strength::strength_lines(proof));
    for check in proof.checks() {
        let mut line = ReportItem::default()
            .text("Check ")
            .code(&check.name)
            .text(": ")
            .code(&check.command)
            .text(" passes");
        if check.passed > 0 {
            line = line.text(format!(", with {} tests", check.passed));
        } else if !check.has_tests {
            line = line.text(", by exit code only");
        }
        if !check.failing_before.is_empty() {
            line = line.text("; ").names(&check.failing_before).text(" failed before and fails still");
        }
        if !check.removed.is_empty() {
            line = line.text("; ").names(&check.removed).text(" passed before and was removed");
        }
        if !check.flaky.is_empty() {
            line = line.text("; ").names(&check.flaky).text(" was flaky before and proves nothing");
        }
        lines.push(line.text("."));
    }
    let diff = proof.diff();
    let (added, removed) =
        diff.files.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    let protected = if proof.forced().is_empty() { "protected" } else { "other protected" };
    lines.push(ReportItem::from_text(&format!(
        "Diff: {}, {} added, {removed} removed; {protected} files are as they were.",
        Count(diff.files.len() as u64, "file"),
        Count(added, "line")
    )));
    if !proof.forced().is_empty() {
        let line = ReportItem::default().text("Changed: ").names(proof.forced());
        lines.push(line.text(
            ", which judges. The checks fail with the original files, so a person decides about the changes.",
        ));
    }
    lines.extend(judging_lines(proof.judging()));
    lines.extend(diff.describe_dropped().map(|dropped| ReportItem::from_text(&format!("Diff: {dropped}."))));
    lines
}

/// Returns the lines about changed files that may judge.
fn judging_lines(judging: &JudgingFacts) -> Vec<ReportItem> {
    let JudgingFacts { in_scope, apart, unaffected, .. } = judging;
    let named = [
        (in_scope, ", which a command names and the scope contains."),
        (unaffected, ", but no part that judges."),
        (apart, ". It is new, and was left out of the clones in which the change was judged."),
    ];
    let lines = named.into_iter().filter(|(files, _)| !files.is_empty());
    lines.map(|(files, text)| ReportItem::default().text("Changed: ").names(files).text(text)).collect()
}

fn anchor_line(contract: &Contract, proof: &Proof) -> Option<ReportItem> {
    match (proof.anchor(), &contract.anchor) {
        (Some(anchor), _) => {
            let tests: Vec<String> = anchor.tests().iter().cloned().collect();
            let line = ReportItem::default().text("Anchor: ").code(anchor.command());
            let line = if tests.is_empty() { line } else { line.text(" (").names(&tests).text(")") };
            let by = if tests.is_empty() { ", by exit code only" } else { "" };
            Some(line.text(format!(" failed three times before, and passes now{by}.")))
        }
        (None, AnchorPlan::None { because }) => {
            let because = because.trim();
            Some(ReportItem::from_text(&format!(
                "There is no anchor: {because}. The checks alone are the evidence."
            )))
        }
        (None, _) => None,
    }
}

fn render_bill(spent: &WorkCost) -> String {
    let unknown = if spent.is_price_unknown {
        " The price of a model is not known; its calls are not counted."
    } else {
        ""
    };
    let seconds = spent.millis / 1_000;
    format!(
        "{} in {} tokens, for all candidates and reviews. The steps took {} min {} s.{unknown}",
        spent.dollars(),
        spent.tokens,
        seconds / 60,
        seconds % 60
    )
}

/// Returns text of a model or a user as one line in which only code is formatted.
fn single_line(text: &str) -> String {
    escape_markdown(text.trim())
}

fn escape_markdown(text: &str) -> String {
    let shown = |character: char| match character {
        '<' => "&lt;".to_owned(),
        '|' => "\\|".to_owned(),
        _ if character.is_control() => " ".to_owned(),
        _ => character.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Returns a line of output without control characters.
fn printable(line: &str) -> String {
    line.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn quote(text: &str) -> String {
    text.trim().lines().map(|line| format!("> {}", single_line(line))).collect::<Vec<_>>().join("\n")
}
