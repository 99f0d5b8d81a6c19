//! Costs of the steps of a task, and the shares of its budget.

use std::time::Duration;

use pintle_agent::{Limits, Money};
use serde::Serialize;

use super::step::{StepId, StepKind};
use super::{Task, WorkCost};
use crate::contract::SessionRole;

/// Costs of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepCost {
    /// The step.
    pub step: StepId,
    /// Its costs.
    pub spent: WorkCost,
}

/// Part of the budget, and its use.
#[derive(Debug, Default)]
struct UsedShare {
    part: f64,
    spent: WorkCost,
    held: Limits,
}

impl Task {
    /// Returns the costs of each step that has ended, in the order of their ends.
    #[must_use]
    pub fn step_costs(&self) -> &[StepCost] {
        &self.costs
    }

    /// Returns limits that the share of the sessions of this step allows. Without shares in the contract, returns the limits
    /// unchanged. `sessions` is the number of sessions that divide the rest of the share.
    pub(super) fn limit_to_share(&self, kind: StepKind, limits: Limits, sessions: u64) -> Limits {
        let Some(share) = role_of(kind).and_then(|role| self.used_share(role)) else { return limits };
        let (budget, UsedShare { part, spent, held }) = (&self.contract.budget, share);
        // Rounded limits are precise enough.
        let sessions = sessions.max(1) as f64;
        let count =
            |budget: u64, used: u64| ((budget as f64 * part - used as f64).max(0.0) / sessions) as u64;
        let mut of_share = Limits::default();
        of_share.cost = budget.cost.map(|cost| {
            let used = spent.cost + held.cost.unwrap_or_default();
            Money::from_micros(count(cost.micros(), used.micros()))
        });
        of_share.tokens = budget
            .tokens
            .map(|tokens| count(tokens, spent.tokens.saturating_add(held.tokens.unwrap_or_default())));
        of_share.wall_time = budget.minutes.map(|minutes| {
            let held = held.wall_time.unwrap_or_default().as_secs();
            let used = (spent.millis / 1_000).saturating_add(held);
            Duration::from_secs(count(minutes.saturating_mul(60), used))
        });
        limits.lower(&of_share)
    }

    /// Returns the share of the sessions with this role, and its use. Roles without a share use the rest of the budget
    /// together. `None` if the contract has no shares.
    fn used_share(&self, role: SessionRole) -> Option<UsedShare> {
        let models = &self.contract.models;
        if !models.has_shares() {
            return None;
        }
        let share = |role: SessionRole| models.get(role).and_then(|plan| plan.share);
        let is_of_pool = |other: Option<SessionRole>| match (share(role), other) {
            (Some(_), other) => other == Some(role),
            // Steps without a session take time of the rest.
            (None, other) => other.is_none_or(|other| share(other).is_none()),
        };
        let part = share(role).unwrap_or_else(|| models.unshared());
        let mut used = UsedShare { part, ..UsedShare::default() };
        let drafted = self.contract.drafted.as_ref().filter(|_| is_of_pool(Some(SessionRole::Draft)));
        drafted.into_iter().for_each(|drafted| used.spent.add(&drafted.spent));
        for StepCost { step, spent } in &self.costs {
            if is_of_pool(role_of(step.kind)) {
                used.spent.add(spent);
            }
        }
        for (step, limits) in &self.reserved {
            if is_of_pool(role_of(step.kind)) {
                let held = &mut used.held;
                held.cost = Some(held.cost.unwrap_or_default() + limits.cost.unwrap_or_default());
                let tokens = limits.tokens.unwrap_or_default();
                held.tokens = Some(held.tokens.unwrap_or_default().saturating_add(tokens));
                let time = limits.wall_time.unwrap_or_default();
                held.wall_time = Some(held.wall_time.unwrap_or_default().saturating_add(time));
            }
        }
        Some(used)
    }
}

/// Returns the role of the session of a step, if it has one.
fn role_of(kind: StepKind) -> Option<SessionRole> {
    match kind {
        StepKind::Anchor => Some(SessionRole::Anchor),
        StepKind::Work => Some(SessionRole::Work),
        StepKind::Review => Some(SessionRole::Review),
        StepKind::Plan => Some(SessionRole::Plan),
        StepKind::Baseline | StepKind::Evidence => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{CandidatePlan, ModelPlan, ModelPlans, TaskBudget};
    use crate::task::{StepOutput, StepResult, TaskInput};
    use crate::testing::{contract, failing_output, successful_output};

    /// Ends the next step, and returns its name and its limit on cost.
    fn end_step(
        task: &mut Task,
        dollars: f64,
        output: impl Fn(StepKind) -> StepOutput,
    ) -> (String, Option<Money>) {
        let step = task.pending().steps.into_iter().next().unwrap();
        let limit = step.order.limits().and_then(|limits| limits.cost);
        let spent = WorkCost { cost: Money::from_dollars(dollars), tokens: 10, ..WorkCost::default() };
        let name = step.id.to_string();
        let result = StepResult { output: output(step.id.kind), step: step.id, spent };
        assert!(task.apply(TaskInput::StepFinished(Box::new(result))));
        (name, limit)
    }

    #[test]
    fn sessions_use_the_share_of_their_role() {
        let share = |share| ModelPlan::default().with_share(share);
        let models = ModelPlans::default()
            .with_plan(SessionRole::Work, share(0.5))
            .with_plan(SessionRole::Review, share(0.2));
        let budget = TaskBudget { cost: Some(Money::from_dollars(10.0)), ..TaskBudget::default() };
        let contract = contract().with_candidates([CandidatePlan::default()]).with_budget(budget);
        let mut task = Task::new(contract.with_models(models)).unwrap();
        let wrong_evidence = |kind: StepKind| {
            if kind == StepKind::Evidence { failing_output() } else { successful_output(kind) }
        };
        // The anchor uses the rest: 0.3 of the budget.
        let found = [
            end_step(&mut task, 0.0, successful_output),
            end_step(&mut task, 1.0, successful_output),
            end_step(&mut task, 4.5, successful_output),
            end_step(&mut task, 0.0, wrong_evidence),
            end_step(&mut task, 0.25, successful_output),
            end_step(&mut task, 0.0, successful_output),
            end_step(&mut task, 0.5, successful_output),
        ];
        let found: Vec<String> = found
            .into_iter()
            .map(|(name, limit)| limit.map_or(name.clone(), |limit| format!("{name} {limit:.2}")))
            .collect();
        let expected = [
            "baseline-1",
            "anchor-1 $3.00",
            "work-0-1 $5.00",
            "evidence-0-1",
            "work-0-2 $0.50",
            "evidence-0-2",
            "review-0-2 $2.00",
        ];
        assert_eq!(found, expected);
        assert!(task.outcome().is_some());
        let costs: Vec<String> = task.step_costs().iter().map(|cost| cost.step.to_string()).collect();
        assert_eq!(costs.len(), 7);
        assert_eq!(task.step_costs()[2].spent.cost, Money::from_dollars(4.5), "{costs:?}");
    }
}
