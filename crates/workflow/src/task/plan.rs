//! The plan of a task: steps, each of which starts from the snapshot of the previous ones, and the steps that remain.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pintle_evidence::command_run::CommandRun;
use pintle_evidence::diff::Diff;
use pintle_evidence::proof::Finding;
use pintle_evidence::step_proof::{StepFacts, StepProof};
use serde::{Deserialize, Serialize};

use super::step::{StepId, StepKind, WorkFacts};
use crate::work_cost::WorkCost;

/// Number of consecutive steps that may leave checks failing.
pub(super) const UNSETTLED_STEPS: u32 = 2;

/// Longest goal of a step, in bytes.
pub const MAX_STEP_GOAL: usize = 8 << 10;

/// Answer of a session that plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanFacts {
    /// Session that planned.
    pub session: String,
    /// The next step. `None` if nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<PlannedStep>,
    /// Goals of the steps after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<String>,
    /// Whether the next step starts from the last snapshot that leaves no check failing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub go_back: bool,
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedStep {
    /// Its goal.
    pub goal: String,
    /// Patterns of the files that it may change. Empty for all files of the scope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Commands that have to pass after it. One that fails before it is the anchor of the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// Its size.
    #[serde(default)]
    pub size: StepSize,
    /// Names of the checks of the contract that it leaves failing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves_failing: Vec<String>,
}

/// Size of a step, as its session estimates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StepSize {
    /// A few lines.
    Small,
    /// Neither small nor large.
    #[default]
    Medium,
    /// Many files.
    Large,
}

/// Confidence of a session in its work. It steers spending, and proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Confidence {
    /// Another candidate works on the step as well.
    Low,
    /// Also without a report.
    #[default]
    Medium,
    /// High.
    High,
}

/// Report of a session about its step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepReport {
    /// Its confidence.
    #[serde(default)]
    pub confidence: Confidence,
    /// Reason why the plan has to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_replan: Option<String>,
}

/// Line of a message to a planner, before the remaining steps that a user has edited.
pub(crate) const EDITED_STEPS: &str = "A user has edited the remaining steps, which now are:\n";

/// State of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPlan {
    pub(super) rounds: Vec<PlanRound>,
    /// Answers of the planner about the next round.
    pub(super) answers: u32,
    /// Problems of the consecutive refused answers.
    pub(super) refused: Vec<Vec<String>>,
    pub(super) backlog: Vec<String>,
    /// Whether a user has edited the backlog since a planner was last started.
    pub(super) is_edited: bool,
    /// Backlog in the message of the started planner, if a user edited it before.
    pub(super) sent_backlog: Option<Vec<String>>,
    pub(super) current: Option<StepSnapshot>,
    /// The newest snapshot that leaves no check failing.
    pub(super) good: Option<StepSnapshot>,
    /// Steps since checks were left failing. 0 if none are.
    pub(super) unsettled: u32,
    /// Whether the planner found that the goal is a single step.
    pub(super) is_skipped: bool,
    /// Costs of the planner.
    pub(super) spent: WorkCost,
}

/// The change up to a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSnapshot {
    /// Session that worked on the step.
    pub(super) session: String,
    pub(super) diff: Diff,
    /// Runs of the checks.
    pub(super) checks: BTreeMap<String, Vec<CommandRun>>,
    /// Checks that it leaves failing.
    pub(super) failing: Vec<String>,
}

/// A round: a step, and the candidates that have worked on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanRound {
    pub(super) step: PlannedStep,
    pub(super) candidates: Vec<StepCandidate>,
    pub(super) end: Option<RoundEnd>,
    pub(super) spent: WorkCost,
}

/// A candidate of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepCandidate {
    pub(super) work: Option<WorkFacts>,
    pub(super) facts: Option<StepFacts>,
    pub(super) verdict: Option<Result<StepProof, Vec<Finding>>>,
}

/// End of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// The work of this candidate is the new snapshot.
    Held {
        /// Number of the candidate.
        candidate: usize,
        /// Whether it leaves checks failing.
        is_provisional: bool,
    },
    /// The snapshot before it stays.
    Failed,
    /// As [`Failed`](Self::Failed), and checks were left failing for too long: the last snapshot without them is back.
    WentBack,
}

impl PlanFacts {
    /// Creates the answer that nothing is left to do.
    #[must_use]
    pub fn finished(session: impl Into<String>) -> Self {
        Self { session: session.into(), next: None, remaining: Vec::new(), go_back: false }
    }
}

impl PlannedStep {
    /// Creates a step with a goal, which may change all files of the scope.
    #[must_use]
    pub fn new(goal: impl Into<String>) -> Self {
        Self { goal: goal.into(), ..Self::default() }
    }
}

impl StepSnapshot {
    /// Returns the changes since the anchor.
    #[must_use]
    pub fn diff(&self) -> &Diff {
        &self.diff
    }

    /// Returns the checks that it leaves failing.
    #[must_use]
    pub fn failing(&self) -> &[String] {
        &self.failing
    }
}

impl StepCandidate {
    /// Returns the end of its work, once it has ended.
    #[must_use]
    pub fn work(&self) -> Option<&WorkFacts> {
        self.work.as_ref()
    }

    /// Returns its evidence, or the findings against it.
    #[must_use]
    pub fn verdict(&self) -> Option<&Result<StepProof, Vec<Finding>>> {
        self.verdict.as_ref()
    }

    /// Returns the reason why the plan has to change, if its session reports one.
    #[must_use]
    pub fn needs_replan(&self) -> Option<&str> {
        self.work.as_ref()?.report.as_ref()?.needs_replan.as_deref()
    }

    fn confidence(&self) -> Confidence {
        let report = self.work.as_ref().and_then(|work| work.report.as_ref());
        report.map(|report| report.confidence).unwrap_or_default()
    }

    /// Returns whether its evidence or its confidence is low, so that another candidate may do better.
    pub(super) fn is_low(&self) -> bool {
        !matches!(self.verdict, Some(Ok(_))) || self.confidence() == Confidence::Low
    }

    pub(super) fn findings(&self) -> &[Finding] {
        match &self.verdict {
            Some(Err(findings)) => findings,
            Some(Ok(_)) | None => &[],
        }
    }
}

impl PlanRound {
    pub(super) fn new(step: PlannedStep) -> Self {
        Self { step, candidates: vec![StepCandidate::default()], ..Self::default() }
    }

    /// Returns its step.
    #[must_use]
    pub fn step(&self) -> &PlannedStep {
        &self.step
    }

    /// Returns its candidates.
    #[must_use]
    pub fn candidates(&self) -> &[StepCandidate] {
        &self.candidates
    }

    /// Returns its end, once it has ended.
    #[must_use]
    pub fn end(&self) -> Option<RoundEnd> {
        self.end
    }

    /// Returns the costs of its candidates.
    #[must_use]
    pub fn spent(&self) -> &WorkCost {
        &self.spent
    }

    /// Returns the best candidate whose evidence holds: by the checks that it leaves failing, its confidence, and the number of
    /// passing tests.
    pub(super) fn best(&self) -> Option<usize> {
        let held = self.candidates.iter().enumerate().filter_map(|(index, candidate)| {
            let proof = candidate.verdict.as_ref()?.as_ref().ok()?;
            Some((Reverse(proof.failing.len()), candidate.confidence(), proof.passed, Reverse(index)))
        });
        held.max().map(|(_, _, _, Reverse(index))| index)
    }

    /// Returns its state as text, for every list and page.
    #[must_use]
    pub fn state(&self) -> String {
        match self.end {
            Some(RoundEnd::Held { is_provisional: false, .. }) => "holds".to_owned(),
            Some(RoundEnd::Held { .. }) => {
                format!("holds for now: {} left failing", self.step.leaves_failing.join(", "))
            }
            Some(RoundEnd::Failed) => "failed".to_owned(),
            Some(RoundEnd::WentBack) => "failed; the steps that left checks failing are undone".to_owned(),
            None => match self.candidates.last() {
                Some(StepCandidate { work: Some(_), .. }) => "is judged".to_owned(),
                Some(_) | None => "is worked on".to_owned(),
            },
        }
    }
}

impl TaskPlan {
    /// Returns the rounds, in order.
    #[must_use]
    pub fn rounds(&self) -> &[PlanRound] {
        &self.rounds
    }

    /// Returns the goals of the remaining steps.
    #[must_use]
    pub fn backlog(&self) -> &[String] {
        &self.backlog
    }

    /// Returns the problems of each of the consecutive answers that were refused.
    #[must_use]
    pub fn refused(&self) -> &[Vec<String>] {
        &self.refused
    }

    /// Returns the snapshot from which the next step starts; `None` for the base with the anchor.
    #[must_use]
    pub fn snapshot(&self) -> Option<&StepSnapshot> {
        self.current.as_ref()
    }

    /// Returns the costs of the planner.
    #[must_use]
    pub fn spent(&self) -> &WorkCost {
        &self.spent
    }

    /// Returns whether the planner found that the goal is a single step.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        self.is_skipped
    }

    /// Returns a round by its number, from 1.
    #[must_use]
    pub fn round(&self, number: u32) -> Option<&PlanRound> {
        self.rounds.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Returns the number of rounds.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.rounds.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn open_round(&self) -> Option<&PlanRound> {
        self.rounds.last().filter(|round| round.end.is_none())
    }

    /// Returns the newest candidate of the open round.
    pub(super) fn open_candidate(&mut self) -> Option<&mut StepCandidate> {
        self.rounds.last_mut().filter(|round| round.end.is_none())?.candidates.last_mut()
    }

    pub(super) fn add_cost(&mut self, step: &StepId, spent: &WorkCost) {
        let index = usize::try_from(step.round).ok().and_then(|round| round.checked_sub(1));
        match index.and_then(|index| self.rounds.get_mut(index)) {
            Some(round) if step.kind != StepKind::Plan => round.spent.add(spent),
            _ => self.spent.add(spent),
        }
    }

    /// Returns to the last snapshot that leaves no check failing.
    pub(super) fn go_back(&mut self) {
        self.current.clone_from(&self.good);
        self.unsettled = 0;
    }

    /// Ends the open round. The best candidate that holds is the new snapshot. Reasons to change the plan are folded into the
    /// backlog.
    pub(super) fn close_round(&mut self) {
        let Some(round) = self.rounds.last_mut() else { return };
        let reasons = round.candidates.iter().filter_map(StepCandidate::needs_replan).map(str::to_owned);
        let reasons: Vec<String> = reasons.collect();
        let best = round.best().and_then(|index| Some((index, round.candidates.get(index)?)));
        let snapshot = best.and_then(|(index, candidate)| {
            let (work, proof) = (candidate.work.as_ref()?, candidate.verdict.as_ref()?.as_ref().ok()?);
            let snapshot = StepSnapshot {
                session: work.session.clone(),
                diff: work.diff.clone()?,
                checks: candidate.facts.as_ref()?.change.checks.clone(),
                failing: proof.failing.clone(),
            };
            Some((index, snapshot))
        });
        let end = match snapshot {
            Some((candidate, snapshot)) if snapshot.failing.is_empty() => {
                (self.good, self.current) = (Some(snapshot.clone()), Some(snapshot));
                self.unsettled = 0;
                RoundEnd::Held { candidate, is_provisional: false }
            }
            Some((candidate, snapshot)) => {
                self.current = Some(snapshot);
                self.unsettled += 1;
                RoundEnd::Held { candidate, is_provisional: true }
            }
            None if self.unsettled >= UNSETTLED_STEPS => RoundEnd::WentBack,
            None => {
                self.unsettled += u32::from(self.unsettled > 0);
                RoundEnd::Failed
            }
        };
        round.end = Some(end);
        if end == RoundEnd::WentBack {
            self.go_back();
        }
        self.backlog.splice(0..0, reasons);
    }
}
