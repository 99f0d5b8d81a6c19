//! Rounds of a plan. The planner names a step, candidates work on it, and its evidence decides whether their change is the
//! snapshot from which the next step starts. Once nothing is left, the whole change is judged like that of any candidate.

use std::collections::BTreeMap;

use pintle_evidence::anchor::Anchor;
use pintle_evidence::names::list_names;
use pintle_evidence::proof::{Finding, ProofStep, feedback};
use pintle_evidence::step_proof::{StepContext, StepFacts, judge_step};

use super::outcome::{BlockReason, TaskOutcome};
use super::plan::{
    EDITED_STEPS, MAX_STEP_GOAL, PlanFacts, PlanRound, PlannedStep, RoundEnd, StepCandidate, TaskPlan,
    UNSETTLED_STEPS,
};
use super::step::{StepId, StepKind, StepOrder, StepOutput, TaskStep, WorkEnd, WorkFacts};
use super::{Task, TaskCandidate};
use crate::contract::{MAX_ROUNDS, PathRules, TaskScope};
use crate::work_cost::WorkCost;

/// Consecutive answers of a planner that are refused before the task is blocked.
const PLAN_ATTEMPTS: usize = 3;

/// Candidates of a step, unless the contract has more.
const STEP_CANDIDATES: usize = 2;

/// Maximum number of checks of a step.
const MAX_CHECKS: usize = 5;

impl Task {
    /// Returns the plan, if the task has one.
    #[must_use]
    pub fn plan(&self) -> Option<&TaskPlan> {
        (self.contract.plan_rounds() > 0).then_some(&self.plan)
    }

    /// Returns whether a step of the plan is due. It is not while the whole change is judged and reviewed.
    #[must_use]
    pub fn is_planning(&self) -> bool {
        let is_open = self.outcome.is_none() && self.contract.plan_rounds() > 0 && !self.plan.is_skipped;
        let first = self.candidates.first();
        is_open && first.is_some_and(|first| first.is_active() && !first.is_collecting_evidence())
    }

    /// Returns the due step of the plan.
    pub(super) fn planning_step(&self) -> Option<TaskStep> {
        if !self.is_planning() {
            return None;
        }
        let Some(round) = self.plan.open_round() else { return Some(self.plan_step()) };
        let index = round.candidates.len().checked_sub(1)?;
        let has_worked = round.candidates.get(index)?.work.is_some();
        let kind = if has_worked { StepKind::Evidence } else { StepKind::Work };
        let mut step = TaskStep::new(kind, Some(index), 1, StepOrder::Evidence);
        step.id.round = self.plan.count();
        if kind == StepKind::Work {
            let feedback = self.step_feedback(round, index);
            step.order = StepOrder::Work { feedback, limits: self.step_limits(&step.id, self.plan_shares()) };
        }
        Some(step)
    }

    fn plan_step(&self) -> TaskStep {
        let attempt = self.plan.answers.saturating_add(1);
        let mut step = TaskStep::new(StepKind::Plan, None, attempt, StepOrder::Evidence);
        step.id.round = self.plan.count().saturating_add(1);
        let feedback = self.plan_feedback(self.started.contains(&step.id));
        step.order = StepOrder::Plan { feedback, limits: self.step_limits(&step.id, self.plan_shares()) };
        step
    }

    /// Returns the number of parts of the budget: the next step, the remaining ones, and the whole change.
    fn plan_shares(&self) -> usize {
        self.plan.backlog.len().saturating_add(2)
    }

    /// Returns the problems of the last answer, the missing evidence of the whole change as long as the snapshot is that change,
    /// and input of users.
    fn plan_feedback(&self, has_started: bool) -> Option<String> {
        let mut text = String::new();
        if let Some(problems) = self.plan.refused.last() {
            text.push_str("Your last answer cannot be used:\n");
            problems.iter().for_each(|problem| text.push_str(&format!("- {problem}\n")));
        }
        let first = self.candidates.first();
        let of_change = first.filter(|_| self.is_snapshot_judged()).map(TaskCandidate::missing_evidence);
        if let Some(of_change) = of_change.filter(|missing| !missing.is_empty()) {
            text.push_str("About the whole change:\n");
            text.push_str(&of_change);
        }
        let words = first.map(TaskCandidate::pending_words).unwrap_or_default();
        if !words.is_empty() {
            text.push_str("Messages of users:\n");
            words.iter().for_each(|words| text.push_str(&format!("- {words}\n")));
        }
        let edited = match has_started {
            true => self.plan.sent_backlog.as_ref(),
            false => self.plan.is_edited.then_some(&self.plan.backlog),
        };
        if let Some(backlog) = edited {
            text.push_str(EDITED_STEPS);
            backlog.iter().for_each(|goal| text.push_str(&format!("- {goal}\n")));
        }
        (!text.is_empty()).then_some(text)
    }

    /// Returns the findings against the previous candidate of a step, and messages of users.
    fn step_feedback(&self, round: &PlanRound, index: usize) -> Option<String> {
        let previous = index.checked_sub(1).and_then(|previous| round.candidates.get(previous));
        let mut text = previous.map(|previous| feedback(previous.findings())).unwrap_or_default();
        let words = self.candidates.first().map(TaskCandidate::pending_words).unwrap_or_default();
        words.iter().for_each(|words| text.push_str(&format!("- {words}\n")));
        (!text.is_empty()).then_some(text)
    }

    /// Records the start of a session of the plan. Its message stays the same when it is started again.
    pub(super) fn start_planned(&mut self, kind: StepKind) {
        if kind == StepKind::Evidence {
            return;
        }
        if let Some(first) = self.candidates.first_mut() {
            first.start_attempt();
        }
        if kind == StepKind::Plan {
            self.plan.sent_backlog = self.plan.is_edited.then(|| self.plan.backlog.clone());
            self.plan.is_edited = false;
        }
    }

    /// Applies the output of a step of the plan.
    pub(super) fn apply_planned(&mut self, step: &StepId, output: StepOutput) {
        // Messages that the planner had are for the session that works on its step as well.
        let is_kept = step.kind == StepKind::Plan || matches!(output, StepOutput::Failed { .. });
        match self.candidates.first_mut() {
            Some(first) if is_kept => first.return_words(),
            Some(first) => first.finish_words(),
            None => {}
        }
        match (step.kind, output) {
            (_, StepOutput::AtLimit { .. }) => {
                let limit = self.session_limit();
                self.outcome = Some(TaskOutcome::Limit { limit, best: self.best_candidate() });
            }
            (StepKind::Plan, StepOutput::Plan(facts)) => self.take_plan(facts),
            (StepKind::Plan, StepOutput::Failed { reason, is_external: false }) => {
                self.refuse_plan(vec![reason]);
            }
            (StepKind::Plan, StepOutput::Failed { reason, .. }) => {
                self.outcome = Some(TaskOutcome::Failed { step: step.clone(), reason });
            }
            (_, StepOutput::Work(facts)) => {
                if let Some(candidate) = self.plan.open_candidate() {
                    candidate.work = Some(facts);
                }
            }
            (_, StepOutput::StepEvidence(facts)) => self.take_step_evidence(*facts),
            (_, StepOutput::Failed { reason, is_external }) => {
                self.fail_step(step, reason, is_external);
            }
            (kind, _) => self.fail_step(step, format!("a step of {kind} found something else"), false),
        }
    }

    fn take_plan(&mut self, facts: PlanFacts) {
        let problems = self.find_plan_problems(&facts);
        if !problems.is_empty() {
            return self.refuse_plan(problems);
        }
        let PlanFacts { next, remaining, go_back, .. } = facts;
        self.plan.refused.clear();
        self.plan.answers = self.plan.answers.saturating_add(1);
        if go_back {
            self.plan.go_back();
        }
        // An edit since the planner was started counts more than its answer.
        if !self.plan.is_edited {
            self.plan.backlog = remaining;
        }
        match next {
            Some(step) => {
                self.plan.answers = 0;
                self.merge_words();
                self.plan.rounds.push(PlanRound::new(step));
            }
            None if self.plan.rounds.is_empty() => self.plan.is_skipped = true,
            None => self.judge_whole(),
        }
    }

    /// Gives the first candidate the messages for the others, because the steps are its change.
    fn merge_words(&mut self) {
        let Some((first, others)) = self.candidates.split_first_mut() else { return };
        for words in others.iter_mut().flat_map(|other| std::mem::take(&mut other.words)) {
            // A message to all candidates.
            if !first.words.contains(&words) {
                first.words.push(words);
            }
        }
    }

    fn refuse_plan(&mut self, problems: Vec<String>) {
        self.plan.answers = self.plan.answers.saturating_add(1);
        self.plan.refused.push(problems);
        if self.plan.refused.len() >= PLAN_ATTEMPTS {
            self.outcome = Some(TaskOutcome::Blocked(BlockReason::NoPlan(self.plan.refused.clone())));
        }
    }

    /// Makes the snapshot the change of the first candidate, which is judged from the base.
    fn judge_whole(&mut self) {
        let Some(snapshot) = self.plan.current.clone() else { return };
        let (session, diff) = (snapshot.session, Some(snapshot.diff));
        let facts = WorkFacts { session, end: WorkEnd::Finished, diff, unfit: None, report: None };
        if let Some(first) = self.candidates.first_mut() {
            first.record_work(facts);
        }
        for other in self.candidates.iter_mut().skip(1).filter(|other| other.is_active()) {
            other.stop("the plan makes one change");
        }
    }

    /// Returns whether the whole change up to the snapshot was judged.
    fn is_snapshot_judged(&self) -> bool {
        let newest = self.candidates.first().and_then(|first| first.attempts().last());
        let judged =
            newest.filter(|attempt| attempt.failure.is_none()).and_then(|attempt| attempt.facts.as_ref());
        let current = self.plan.current.as_ref().map(|snapshot| &snapshot.diff.patch);
        judged.is_some() && current == judged.map(|facts| &facts.diff.patch)
    }

    /// Ends a plan without rounds: the whole change is judged if nothing remains, and otherwise the task is blocked.
    pub(super) fn end_plan_at_cap(&mut self) {
        let rounds = self.contract.plan_rounds();
        let is_at_cap = self.plan.open_round().is_none() && self.plan.count() >= rounds;
        if !is_at_cap || !self.is_planning() {
            return;
        }
        let is_whole =
            self.plan.backlog.is_empty() && self.plan.unsettled == 0 && self.plan.current.is_some();
        if is_whole && !self.is_snapshot_judged() {
            self.judge_whole();
        } else {
            let backlog = self.plan.backlog.clone();
            self.outcome = Some(TaskOutcome::Blocked(BlockReason::Rounds { rounds, backlog }));
        }
    }

    fn take_step_evidence(&mut self, facts: StepFacts) {
        let Some(round) = self.plan.open_round() else { return };
        let base = self.baseline.as_ref().map(|baseline| &baseline.checks);
        let before = self.plan.good.as_ref().map(|snapshot| &snapshot.checks).or(base);
        let (none, anchor) = (BTreeMap::new(), self.anchor.as_ref());
        let before = before.unwrap_or(&none);
        let context = StepContext {
            checks: &self.contract.checks,
            rules: &self.rules,
            anchor,
            before,
            paths: &round.step.paths,
            leaves_failing: &round.step.leaves_failing,
        };
        let verdict = judge_step(context, &facts);
        if let Some(candidate) = self.plan.open_candidate() {
            (candidate.facts, candidate.verdict) = (Some(facts), Some(verdict));
        }
        self.continue_round();
    }

    fn fail_step(&mut self, step: &StepId, reason: String, is_external: bool) {
        let finding = Finding { step: ProofStep::Work, what: format!("{} failed: {reason}", step.kind) };
        if let Some(candidate) = self.plan.open_candidate() {
            candidate.verdict = Some(Err(vec![finding]));
        }
        let is_last = !self.has_step_candidate_left();
        if is_external && is_last {
            self.outcome = Some(TaskOutcome::Failed { step: step.clone(), reason });
        } else {
            self.continue_round();
        }
    }

    fn has_step_candidate_left(&self) -> bool {
        let most = self.contract.candidates.len().max(STEP_CANDIDATES);
        self.plan.open_round().is_some_and(|round| round.candidates.len() < most)
    }

    /// Adds a candidate if the evidence or the confidence of the last one is low, or else ends the round. A step whose session
    /// asks for another plan has no further candidate.
    fn continue_round(&mut self) {
        let has_left = self.has_step_candidate_left();
        let Some(round) = self.plan.rounds.last_mut() else { return };
        let is_low = round.candidates.last().is_some_and(StepCandidate::is_low);
        let replans = round.candidates.iter().any(|candidate| candidate.needs_replan().is_some());
        if has_left && is_low && !replans {
            round.candidates.push(StepCandidate::default());
        } else {
            self.plan.close_round();
        }
    }

    /// Replaces the remaining steps. Returns `false` if no plan is being carried out, or if there are too many steps or a goal is
    /// too long.
    pub(super) fn edit_backlog(&mut self, backlog: Vec<String>) -> bool {
        let is_too_large =
            backlog.len() > MAX_ROUNDS as usize || backlog.iter().any(|goal| is_too_long(goal));
        if !self.is_planning() || is_too_large {
            return false;
        }
        (self.plan.backlog, self.plan.is_edited) = (backlog, true);
        true
    }

    pub(super) fn add_plan_cost(&mut self, step: &StepId, spent: &WorkCost) {
        if step.round > 0 {
            self.plan.add_cost(step, spent);
        }
    }

    /// Returns the problems of an answer, as text with the expectation.
    fn find_plan_problems(&self, facts: &PlanFacts) -> Vec<String> {
        let mut problems = Vec::new();
        let mut expect = |is_right: bool, problem: &str| {
            if !is_right {
                problems.push(problem.to_owned());
            }
        };
        let unsettled = if facts.go_back { 0 } else { self.plan.unsettled };
        expect(facts.remaining.len() <= MAX_ROUNDS as usize, "remaining: expected at most 50 steps");
        expect(
            !facts.remaining.iter().any(|goal| is_too_long(goal)),
            "remaining: expected at most 8 KiB for each step",
        );
        let Some(next) = &facts.next else {
            let is_settled = unsettled == 0;
            expect(facts.remaining.is_empty(), "next: expected a step, or no remaining steps");
            expect(is_settled, "next: expected a step that makes the failing checks pass, or `go_back`");
            let is_first = self.plan.rounds.is_empty();
            let has_change =
                if facts.go_back { self.plan.good.is_some() } else { self.plan.current.is_some() };
            expect(is_first || has_change, "next: expected a step, because none has held");
            expect(
                !self.is_snapshot_judged(),
                "next: expected a step, because the whole change lacks the evidence above",
            );
            let is_open = self.plan.is_edited && !self.plan.backlog.is_empty();
            expect(!is_open, "next: expected a step, because a user has edited the remaining steps");
            return problems;
        };
        expect(!next.goal.trim().is_empty(), "next.goal: expected a text");
        expect(next.goal.len() <= MAX_STEP_GOAL, "next.goal: expected at most 8 KiB");
        expect(next.checks.len() <= MAX_CHECKS, "next.checks: expected at most 5");
        expect(next.checks.iter().all(|check| !check.trim().is_empty()), "next.checks: expected commands");
        expect(
            next.leaves_failing.is_empty() || unsettled < UNSETTLED_STEPS,
            "next.leaves_failing: expected none, because two steps have left checks failing",
        );
        // A step that left checks failing may have been undone.
        let is_undoable =
            |round: &&PlanRound| matches!(round.end, Some(RoundEnd::Held { is_provisional: true, .. }));
        let mut kept = self.plan.rounds.iter().filter(|round| !is_undoable(round));
        let is_repeated = kept.any(|round| words(&round.step.goal) == words(&next.goal));
        expect(!is_repeated, "next.goal: expected another goal than those of the earlier steps");
        let is_check = |name: &String| self.contract.checks.iter().any(|check| check.name == *name);
        let unknown: Vec<String> =
            next.leaves_failing.iter().filter(|name| !is_check(name)).cloned().collect();
        if !unknown.is_empty() {
            problems.push(format!(
                "next.leaves_failing: expected names of checks, found {}",
                list_names(&unknown)
            ));
        }
        let rules = (&self.rules, self.contract.directory());
        problems.extend(find_path_problems(next, rules, self.anchor.as_ref()));
        problems
    }
}

/// Returns the problems of the paths of a step, which are relative to the directory of the task like those of its scope.
fn find_path_problems(
    step: &PlannedStep,
    (rules, directory): (&PathRules, &str),
    anchor: Option<&Anchor>,
) -> Vec<String> {
    let scope = TaskScope::default().with_paths(&step.paths);
    if let Err(error) = PathRules::in_directory(&scope, directory) {
        return vec![format!("next.paths: {error}")];
    }
    let from_root = |path: String| if directory.is_empty() { path } else { format!("{directory}/{path}") };
    let of_anchor = |path: &str| anchor.is_some_and(|anchor| anchor.files().iter().any(|file| file == path));
    let is_protected =
        |path: &String| rules.is_protected(&from_root(example(path))) || of_anchor(&from_root(path.clone()));
    let named = |is_wrong: &dyn Fn(&String) -> bool| -> Vec<String> {
        step.paths.iter().filter(|path| is_wrong(path)).cloned().collect()
    };
    let protected = named(&is_protected);
    let outside = named(&|path| !is_protected(path) && !rules.is_in_scope(&from_root(example(path))));
    let mut problems = Vec::new();
    if !protected.is_empty() {
        problems.push(format!(
            "next.paths: {} judges the change; expected files that do not",
            list_names(&protected)
        ));
    }
    if !outside.is_empty() {
        problems.push(format!("next.paths: {} is outside of the scope", list_names(&outside)));
    }
    problems
}

fn is_too_long(goal: &str) -> bool {
    goal.len() > MAX_STEP_GOAL
}

/// Returns a path that a pattern matches, for patterns with stars and directories.
fn example(pattern: &str) -> String {
    let path = pattern.replace("**", "x").replace('*', "x");
    if path.ends_with('/') { path + "x" } else { path }
}

/// Returns the words of a text without case and signs, to compare it.
fn words(text: &str) -> Vec<String> {
    let parts = text.split(|character: char| !character.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase).collect()
}
