//! A task as a state machine. Its inputs are results and signals; its outputs are the steps to carry out. It does no I/O
//! and reads no clock, so that the same inputs lead to the same outcome in every process, with every host.
//!
//! ```text
//!  baseline ─► anchor ─► candidate 0: work ─► evidence ─┬─► all of them: review ──► done
//!                 ▲  │   candidate 1: work ─► evidence ─┤                  │
//!                 └──┘                ▲           │     │                  │
//!                                     └───────────┘     │                  │
//!                                     ▲                 │                  │
//!                                     └─────────────────┴──── findings ◄───┘
//! ```

mod candidate;
mod costs;
mod outcome;
mod plan;
mod planning;
mod review;
mod status;
mod step;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pintle_agent::{Limits, Money};
use pintle_evidence::anchor::{Anchor, AnchorProblem};
use pintle_evidence::proof::{Baseline, Finding, ProofStep, judge, judge_unrestored};
use pintle_evidence::ranking::{ProvedCandidate, rank_candidates};
pub use pintle_evidence::step_proof::{OwnCheck, StepFacts, StepProof};

pub use self::candidate::{CandidateAttempt, ExternalFailure, TaskCandidate};
pub use self::costs::StepCost;
pub use self::outcome::{AcceptedCandidate, BlockReason, LimitKind, TaskOutcome};
pub(crate) use self::plan::EDITED_STEPS;
pub use self::plan::{
    Confidence, MAX_STEP_GOAL, PlanFacts, PlanRound, PlannedStep, RoundEnd, StepCandidate, StepReport,
    StepSize, StepSnapshot, TaskPlan,
};
pub use self::status::{STATE_UNDER_WAY, STATE_WAITING};
pub use self::step::{
    ComparedCandidate, GateAnswer, ReviewFacts, StepId, StepKind, StepOrder, StepOutput, StepResult,
    TaskSignal, TaskStep, WorkEnd, WorkFacts,
};
use crate::contract::{AnchorPlan, Contract, ContractError, DecisionGate, OnWeakEvidence, PathRules};
pub use crate::work_cost::{ModelCost, WorkCost};

/// Maximum number of anchors that a model may propose.
pub const ANCHOR_ATTEMPTS: u32 = 3;

/// Input of a task. A host records each input before the machine takes it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskInput {
    /// A step is about to start. From now on the task waits for it, whatever the other steps cost.
    #[serde(rename = "began")]
    StepStarted(StepId),
    /// A step has ended.
    #[serde(rename = "finished")]
    StepFinished(Box<StepResult>),
    /// A signal of a user.
    #[serde(rename = "said")]
    Signal(TaskSignal),
}

/// Steps and decisions that a task waits for.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PendingWork {
    /// Steps to carry out concurrently. Running steps are included, and continue.
    pub steps: Vec<TaskStep>,
    /// Gate at which the task waits for a user.
    pub gate: Option<DecisionGate>,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    contract: Contract,
    rules: PathRules,
    baseline: Option<Baseline>,
    anchor: Option<Anchor>,
    /// Second anchor, which ranks candidates and which they never see.
    hidden_anchor: Option<Anchor>,
    hidden_problem: Option<String>,
    /// Problems of each refused proposal.
    proposals: Vec<Vec<String>>,
    /// Decisions of users about the anchor and the result.
    decisions: BTreeMap<DecisionGate, bool>,
    candidates: Vec<TaskCandidate>,
    plan: TaskPlan,
    /// Steps that have started.
    started: BTreeSet<StepId>,
    /// Shares of the budget that are reserved for running steps.
    reserved: BTreeMap<StepId, Limits>,
    spent: WorkCost,
    /// Costs of each step that has ended, in order.
    costs: Vec<StepCost>,
    outcome: Option<TaskOutcome>,
}

impl Task {
    /// Creates a task.
    ///
    /// # Errors
    ///
    /// [`ContractError`] if the contract is invalid.
    pub fn new(contract: Contract) -> Result<Self, ContractError> {
        contract.check()?;
        let rules = PathRules::in_directory(&contract.scope, contract.directory())
            .map_err(|error| ContractError::Wrong(vec![format!("scope: {error}")]))?;
        let candidates = contract.candidates.iter().map(|_| TaskCandidate::default()).collect();
        let spent = contract.drafted.as_ref().map(|drafted| drafted.spent.clone()).unwrap_or_default();
        Ok(Self {
            contract,
            rules,
            baseline: None,
            anchor: None,
            hidden_anchor: None,
            hidden_problem: None,
            proposals: Vec::new(),
            decisions: BTreeMap::new(),
            candidates,
            plan: TaskPlan::default(),
            started: BTreeSet::new(),
            reserved: BTreeMap::new(),
            spent,
            costs: Vec::new(),
            outcome: None,
        })
    }

    /// Returns the contract.
    #[must_use]
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Returns the rules of the contract about files.
    #[must_use]
    pub fn rules(&self) -> &PathRules {
        &self.rules
    }

    /// Returns the runs on the base, once they are recorded.
    #[must_use]
    pub fn baseline(&self) -> Option<&Baseline> {
        self.baseline.as_ref()
    }

    /// Returns the anchor, once there is one.
    #[must_use]
    pub fn anchor(&self) -> Option<&Anchor> {
        self.anchor.as_ref()
    }

    /// Returns the second anchor, which ranks candidates and which they never see, if there is one.
    #[must_use]
    pub fn hidden_anchor(&self) -> Option<&Anchor> {
        self.hidden_anchor.as_ref()
    }

    /// Returns whether the hidden anchor is doubtful, because all candidates with a proof fail it.
    #[must_use]
    pub fn is_hidden_doubtful(&self) -> bool {
        let mut proofs = self.candidates.iter().filter_map(TaskCandidate::newest_proof).peekable();
        proofs.peek().is_some() && proofs.all(|proof| proof.passes_hidden() == Some(false))
    }

    /// Returns the problems of each refused proposal of an anchor.
    #[must_use]
    pub fn proposals(&self) -> &[Vec<String>] {
        &self.proposals
    }

    /// Returns the candidates.
    #[must_use]
    pub fn candidates(&self) -> &[TaskCandidate] {
        &self.candidates
    }

    /// Returns the costs of all steps.
    #[must_use]
    pub fn spent(&self) -> &WorkCost {
        &self.spent
    }

    /// Returns the outcome, once the task has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<&TaskOutcome> {
        self.outcome.as_ref()
    }

    /// Returns whether a step has started.
    #[must_use]
    pub fn has_started(&self, step: &StepId) -> bool {
        self.started.contains(step)
    }

    /// Applies an input. For an unexpected result, such as a second result of the same step, returns `false` and changes only
    /// the costs.
    pub fn apply(&mut self, input: TaskInput) -> bool {
        match input {
            TaskInput::StepStarted(step) => self.start_step(step),
            TaskInput::StepFinished(result) => {
                self.reserved.remove(&result.step);
                let is_wanted = self.pending().steps.iter().any(|step| step.id == result.step);
                self.add_plan_cost(&result.step, &result.spent);
                let candidate = result.step.payer().and_then(|index| self.candidates.get_mut(index));
                candidate
                    .into_iter()
                    .for_each(|candidate| candidate.add_cost(result.step.kind, &result.spent));
                self.spent.add(&result.spent);
                self.costs.push(StepCost { step: result.step.clone(), spent: result.spent.clone() });
                if is_wanted {
                    self.apply_result(*result);
                }
                is_wanted
            }
            TaskInput::Signal(signal) => self.apply_signal(signal),
        }
    }

    fn start_step(&mut self, id: StepId) -> bool {
        let Some(step) = self.pending().steps.into_iter().find(|wanted| wanted.id == id) else {
            return false;
        };
        if !self.started.insert(id.clone()) {
            return false;
        }
        if id.round > 0 {
            self.start_planned(id.kind);
        } else if let StepOrder::Work { .. } = step.order {
            let candidate = id.candidate.and_then(|index| self.candidates.get_mut(index));
            candidate.into_iter().for_each(TaskCandidate::start_attempt);
        }
        if let Some(limits) = step.order.limits() {
            self.reserved.insert(id, limits);
        }
        true
    }

    /// Returns the steps or the gate that are due now. Empty once the task has ended.
    #[must_use]
    pub fn pending(&self) -> PendingWork {
        let only_steps = |steps: Vec<TaskStep>| PendingWork { steps, gate: None };
        if self.outcome.is_some() {
            return PendingWork::default();
        }
        if self.baseline.is_none() {
            return only_steps(vec![TaskStep::new(StepKind::Baseline, None, 1, StepOrder::Baseline)]);
        }
        if self.needs_anchor() {
            let attempt = u32::try_from(self.proposals.len()).unwrap_or(u32::MAX).saturating_add(1);
            let feedback = self.proposals.last().map(|problems| problems.join("\n"));
            let mut step = TaskStep::new(StepKind::Anchor, None, attempt, StepOrder::Baseline);
            step.order = StepOrder::Anchor { feedback, limits: self.step_limits(&step.id, 1) };
            return only_steps(vec![step]);
        }
        if let Some(gate) = self.open_gate(DecisionGate::Anchor) {
            return PendingWork { steps: Vec::new(), gate: Some(gate) };
        }
        if let Some(step) = self.planning_step() {
            return only_steps(vec![step]);
        }
        let steps = self.candidate_steps();
        if !steps.is_empty() {
            return only_steps(steps);
        }
        if let Some(candidate) = self.candidate_to_review() {
            return only_steps(vec![self.review_step(candidate)]);
        }
        match self.best_candidate() {
            Some(best) => PendingWork { steps: Vec::new(), gate: self.result_gate(best) },
            None => PendingWork::default(),
        }
    }

    fn needs_anchor(&self) -> bool {
        self.anchor.is_none() && !matches!(self.contract.anchor, AnchorPlan::None { .. })
    }

    fn open_gate(&self, gate: DecisionGate) -> Option<DecisionGate> {
        (self.contract.gates.contains(&gate) && !self.decisions.contains_key(&gate)).then_some(gate)
    }

    /// Returns the gate of the result if the contract has it, if it asks about weak evidence of this candidate, or if the
    /// evidence holds only with changes of files that judge.
    fn result_gate(&self, candidate: usize) -> Option<DecisionGate> {
        let proof = self.candidates.get(candidate).and_then(TaskCandidate::proof);
        let asks_weak = self.contract.evidence.on_weak == OnWeakEvidence::Ask;
        let asks = proof.is_some_and(|proof| asks_weak && proof.is_weak() || !proof.forced().is_empty());
        let is_decided = self.decisions.contains_key(&DecisionGate::Result);
        if asks && !is_decided {
            return Some(DecisionGate::Result);
        }
        self.open_gate(DecisionGate::Result)
    }

    /// Returns the steps of candidates that are neither proved nor stopped.
    fn candidate_steps(&self) -> Vec<TaskStep> {
        let active = self.candidates.iter().enumerate();
        let active: Vec<_> =
            active.filter(|(index, candidate)| candidate.is_active() && !self.is_waiting(*index)).collect();
        let default = Limits::default();
        let steps: Vec<TaskStep> = active
            .into_iter()
            .filter_map(|(index, candidate)| candidate.next_step(index, &default))
            .collect();
        let shares = steps.iter().filter(|step| !self.reserved.contains_key(&step.id)).count().max(1);
        let with_limits = |mut step: TaskStep| {
            if let StepOrder::Work { limits, .. } = &mut step.order {
                *limits = self.step_limits(&step.id, shares);
            }
            step
        };
        steps.into_iter().map(with_limits).collect()
    }

    /// Returns the reserved share of the budget for a running step. For another step, returns one of `shares` parts of the
    /// budget that is neither spent nor reserved.
    fn step_limits(&self, step: &StepId, shares: usize) -> Limits {
        if let Some(reserved) = self.reserved.get(step) {
            return *reserved;
        }
        let budget = &self.contract.budget;
        let shares = u64::try_from(shares).unwrap_or(u64::MAX);
        let held = |of: fn(&Limits) -> Option<u64>| {
            self.reserved.values().filter_map(of).fold(0, u64::saturating_add)
        };
        let share = |budget: u64, spent: u64, of: fn(&Limits) -> Option<u64>| {
            budget.saturating_sub(spent).saturating_sub(held(of)) / shares.max(1)
        };
        let mut limits = Limits::default();
        limits.cost = budget.cost.map(|cost| {
            let of = |limits: &Limits| limits.cost.map(Money::micros);
            Money::from_micros(share(cost.micros(), self.spent.cost.micros(), of))
        });
        limits.tokens = budget.tokens.map(|tokens| share(tokens, self.spent.tokens, |limits| limits.tokens));
        limits.wall_time = budget.minutes.map(|minutes| {
            let of = |limits: &Limits| limits.wall_time.map(|time| time.as_secs());
            Duration::from_secs(share(minutes.saturating_mul(60), self.spent.millis / 1_000, of))
        });
        self.limit_to_share(step.kind, limits, shares)
    }

    /// Returns the limit of which the largest part is used up, if the budget has limits.
    fn nearest_limit(&self) -> Option<LimitKind> {
        let (budget, spent) = (&self.contract.budget, &self.spent);
        #[expect(clippy::cast_precision_loss, reason = "parts are compared, and need no precision")]
        let part = |spent: u64, budget: u64| spent as f64 / budget as f64;
        let parts = [
            (LimitKind::Usd, budget.cost.map(|cost| part(spent.cost.micros(), cost.micros()))),
            (LimitKind::Tokens, budget.tokens.map(|tokens| part(spent.tokens, tokens))),
            (
                LimitKind::Minutes,
                budget.minutes.map(|minutes| part(spent.millis, minutes.saturating_mul(60_000))),
            ),
        ];
        let known = parts.into_iter().filter_map(|(kind, part)| Some((kind, part?)));
        known.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(kind, _)| kind)
    }

    /// Returns the limit that was reached, if any.
    fn reached_limit(&self) -> Option<LimitKind> {
        let (budget, spent) = (&self.contract.budget, &self.spent);
        let limits = [LimitKind::Usd, LimitKind::Tokens, LimitKind::Minutes];
        limits.into_iter().find(|limit| limit.is_reached(budget, spent) == Some(true))
    }

    /// Returns the best of the proved candidates.
    #[must_use]
    pub fn best_candidate(&self) -> Option<usize> {
        self.ranked_candidates().first().copied()
    }

    /// Returns the proved candidates, the best one first.
    #[must_use]
    pub fn ranked_candidates(&self) -> Vec<usize> {
        let proved = self.candidates.iter().enumerate().filter_map(|(candidate, state)| {
            let compared = state.review().and_then(|review| review.rank);
            let cost = state.known_work_cost();
            Some(ProvedCandidate { candidate, proof: state.proof()?, compared, cost })
        });
        rank_candidates(proved.collect())
    }

    /// Returns whether a task continues after a refusal with a message at this gate. Otherwise it ends, as it does without a
    /// message: an anchor of the contract is not rewritten.
    #[must_use]
    pub fn is_changed_by_words(&self, gate: DecisionGate) -> bool {
        match gate {
            DecisionGate::Anchor => self.contract.anchor.is_test(),
            DecisionGate::Result => true,
        }
    }

    fn apply_result(&mut self, result: StepResult) {
        let StepResult { step, output, .. } = result;
        let output = if output.is_output_of(&step) {
            output
        } else {
            StepOutput::failed(format!("a step of {} found something else", step.kind))
        };
        if step.round > 0 {
            self.apply_planned(&step, output);
            return self.settle();
        }
        match (step.kind, output) {
            (StepKind::Baseline, StepOutput::Baseline(baseline)) => self.baseline = Some(baseline),
            (StepKind::Anchor, StepOutput::Anchor(facts)) => match facts
                .judge(self.contract.anchor.is_test(), &self.rules)
            {
                Ok(anchor) => {
                    let hidden = facts.hidden.as_ref();
                    self.hidden_problem.clone_from(&facts.hidden_problem);
                    self.hidden_anchor = hidden.and_then(|hidden| hidden.judge(true, &self.rules).ok());
                    self.anchor = Some(anchor);
                }
                Err(problems) => self.refuse_anchor(problems.iter().map(AnchorProblem::to_string).collect()),
            },
            (StepKind::Anchor, StepOutput::Failed { reason, is_external: false }) => {
                self.refuse_anchor(vec![reason]);
            }
            (StepKind::Anchor | StepKind::Review, StepOutput::AtLimit { .. }) => {
                self.outcome =
                    Some(TaskOutcome::Limit { limit: self.session_limit(), best: self.best_candidate() });
            }
            (StepKind::Baseline | StepKind::Anchor | StepKind::Review, StepOutput::Failed { reason, .. }) => {
                self.outcome = Some(TaskOutcome::Failed { step, reason });
            }
            (_, output) => self.apply_candidate_output(&step, output),
        }
        self.settle();
    }

    fn apply_candidate_output(&mut self, step: &StepId, output: StepOutput) {
        let (contract, rules, anchor) = (&self.contract, &self.rules, self.anchor.as_ref());
        let Some(candidate) = step.candidate.and_then(|index| self.candidates.get_mut(index)) else { return };
        match output {
            StepOutput::Work(facts) => candidate.record_work(facts),
            StepOutput::Evidence(facts) => {
                let baseline = self.baseline.clone().unwrap_or_default();
                let verdict = judge(&contract.checks, rules, anchor, &baseline, &facts)
                    .map(|proof| proof.with_hidden(self.hidden_anchor.as_ref(), &facts.hidden));
                let forced = judge_unrestored(&contract.checks, rules, anchor, &baseline, &facts);
                candidate.record_verdict(*facts, verdict, forced, contract);
            }
            StepOutput::Review(facts) => self.record_review(step, facts),
            StepOutput::Failed { reason, is_external } => {
                let finding =
                    Finding { step: ProofStep::Work, what: format!("{} failed: {reason}", step.kind) };
                let failure = is_external.then(|| ExternalFailure { step: step.clone(), reason });
                candidate.record_failure(finding, failure, contract);
            }
            StepOutput::Baseline(_)
            | StepOutput::Anchor(_)
            | StepOutput::AtLimit { .. }
            | StepOutput::Plan(_)
            | StepOutput::StepEvidence(_) => {}
        }
    }

    fn refuse_anchor(&mut self, problems: Vec<String>) {
        self.proposals.push(problems);
        let is_fixed = matches!(self.contract.anchor, AnchorPlan::Command { .. });
        if is_fixed || self.proposals.len() >= ANCHOR_ATTEMPTS as usize {
            self.outcome = Some(TaskOutcome::Blocked(BlockReason::NoAnchor(self.proposals.clone())));
        }
    }

    fn apply_signal(&mut self, signal: TaskSignal) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        match signal {
            TaskSignal::Cancel { reason } => self.outcome = Some(TaskOutcome::Aborted { reason }),
            // The host sends it to a running session. Here it is kept for the next session.
            TaskSignal::Steer { candidate, text } => {
                // The steps of a plan are the change of the first candidate.
                let candidate = candidate.filter(|_| self.plan.rounds.is_empty());
                for (_, state) in self
                    .candidates
                    .iter_mut()
                    .enumerate()
                    .filter(|(index, _)| candidate.is_none_or(|wanted| wanted == *index))
                {
                    state.words.push(text.clone());
                }
            }
            TaskSignal::Decide(GateAnswer { gate, is_approved, words }) => {
                if self.pending().gate != Some(gate) {
                    return false;
                }
                self.apply_answer(gate, is_approved, words);
            }
            TaskSignal::Plan { backlog } => return self.edit_backlog(backlog),
        }
        self.settle();
        true
    }

    fn apply_answer(&mut self, gate: DecisionGate, is_approved: bool, words: Option<String>) {
        if is_approved {
            self.decisions.insert(gate, true);
            return;
        }
        match (gate, words) {
            (DecisionGate::Anchor, Some(words)) if self.is_changed_by_words(gate) => {
                (self.anchor, self.hidden_anchor) = (None, None);
                self.refuse_anchor(vec![words]);
            }
            (DecisionGate::Result, Some(words)) if self.best_candidate().is_some() => {
                let best = self.best_candidate().and_then(|best| self.candidates.get_mut(best));
                best.into_iter().for_each(|candidate| candidate.send_back(words.clone(), &self.contract));
            }
            (gate, words) => self.outcome = Some(TaskOutcome::Blocked(BlockReason::Refused { gate, words })),
        }
    }

    /// Ends the task if nothing more can be done.
    fn settle(&mut self) {
        if self.outcome.is_some() {
            return;
        }
        self.end_plan_at_cap();
        if let Some(limit) = self.reached_limit() {
            self.stop_at(limit);
        }
        if self.outcome.is_some() || !self.pending().steps.is_empty() || self.pending().gate.is_some() {
            return;
        }
        let done = self.best_candidate().and_then(|best| Some((best, self.candidates.get(best)?)));
        self.outcome =
            Some(match done.and_then(|(best, state)| Some((best, state.proof()?, state.review()))) {
                Some((candidate, proof, review)) => {
                    let done = AcceptedCandidate::new(candidate, proof.clone(), review.cloned());
                    for candidate in self.candidates.iter_mut().filter(|candidate| candidate.is_active()) {
                        candidate.stop("another candidate has its evidence");
                    }
                    TaskOutcome::Done(Box::new(done))
                }
                None => match self.reached_limit().or_else(|| self.candidate_limit()) {
                    Some(limit) => TaskOutcome::Limit { limit, best: None },
                    None => {
                        self.candidate_failure().unwrap_or(TaskOutcome::Blocked(BlockReason::NoCandidate))
                    }
                },
            });
    }

    /// Returns the failure of the task if the newest attempt of each candidate ended with an external failure.
    fn candidate_failure(&self) -> Option<TaskOutcome> {
        let failures: Option<Vec<_>> = self.candidates.iter().map(TaskCandidate::external_failure).collect();
        let ExternalFailure { step, reason } = failures?.into_iter().next()?.clone();
        Some(TaskOutcome::Failed { step, reason })
    }

    /// Returns the limit at which candidates have stopped.
    fn candidate_limit(&self) -> Option<LimitKind> {
        self.candidates.iter().any(TaskCandidate::is_at_limit).then(|| self.session_limit())
    }

    /// Returns the limit at which a session has stopped. A session stops before a call that exceeds its share, so part of
    /// the budget may be left.
    fn session_limit(&self) -> LimitKind {
        self.reached_limit().or_else(|| self.nearest_limit()).unwrap_or(LimitKind::Session)
    }

    /// Starts no further step that costs money. Steps that have started continue, and finished work is still judged.
    fn stop_at(&mut self, limit: LimitKind) {
        let started = &self.started;
        for step in self.pending().steps.into_iter().filter(|step| !started.contains(&step.id)) {
            match (step.id.kind, step.id.candidate) {
                (StepKind::Work, _) if step.id.round > 0 => {
                    self.outcome = Some(TaskOutcome::Limit { limit, best: None });
                }
                (StepKind::Work, Some(candidate)) => {
                    let state = self.candidates.get_mut(candidate);
                    state.into_iter().for_each(|candidate| candidate.stop("the budget is used up"));
                }
                (StepKind::Anchor | StepKind::Review | StepKind::Plan, _) => {
                    self.outcome = Some(TaskOutcome::Limit { limit, best: self.best_candidate() });
                }
                (StepKind::Baseline | StepKind::Evidence | StepKind::Work, _) => {}
            }
        }
    }
}
