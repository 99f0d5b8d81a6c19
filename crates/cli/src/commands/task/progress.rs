//! Progress of a task: a line for each event, with the lane of its candidate.

use pintle_host::sanitize::sanitize;
use pintle_workflow::Diff;
use pintle_workflow::evidence::Finding;
use pintle_workflow::task::{
    PlanFacts, StepCandidate, StepId, StepKind, StepOutput, StepResult, Task, TaskInput, TaskPlan, TaskSignal,
};

/// Returns the line for an input that the task has already applied.
pub(super) fn render_input(task: &Task, input: &TaskInput) -> String {
    match input {
        TaskInput::StepStarted(step) => format!("{}{} begins\n", lane_column(step), step.label()),
        TaskInput::StepFinished(result) => {
            let cost = super::cost_note(&result.spent);
            format!("{}{}{cost}\n", lane_column(&result.step), render_result(task, result))
        }
        TaskInput::Signal(TaskSignal::Steer { candidate, text }) => {
            let to = candidate.map_or("all".to_owned(), |candidate| format!("candidate {candidate}"));
            format!("      message to {to}: {}\n", sanitize(text))
        }
        TaskInput::Signal(TaskSignal::Decide(decision)) => {
            let decided = if decision.is_approved { "approved" } else { "refused" };
            format!("      a person {decided}\n")
        }
        TaskInput::Signal(TaskSignal::Plan { .. }) => "      a person edited the plan\n".to_owned(),
        TaskInput::Signal(_) => "      cancelled\n".to_owned(),
    }
}

/// Returns the column of a candidate.
fn lane_column(step: &StepId) -> String {
    match step.candidate {
        Some(candidate) => format!("[{candidate:>2}]  "),
        None => "      ".to_owned(),
    }
}

fn render_result(task: &Task, result: &StepResult) -> String {
    let StepResult { step, output, .. } = result;
    let name = step.label();
    match output {
        StepOutput::Failed { reason, .. } => format!("{name} failed: {}", sanitize(reason)),
        StepOutput::AtLimit { .. } => format!("{name} stops at its budget"),
        StepOutput::Anchor(facts) => match (task.anchor(), task.proposals().last()) {
            (Some(_), _) => format!("{name} fails as it should: {}", sanitize(&facts.command)),
            (None, problems) => {
                let problems = problems.map(|problems| problems.join("; ")).unwrap_or_default();
                format!("{name} is rejected: {}", sanitize(&problems))
            }
        },
        StepOutput::Evidence(_) => {
            let candidate = step.candidate.and_then(|index| task.candidates().get(index));
            let verdict = candidate.and_then(|candidate| {
                let attempts = candidate.attempts();
                attempts.get(step.attempt.saturating_sub(1) as usize)?.verdict.as_ref()
            });
            match verdict {
                Some(Ok(_)) => format!("{name}: all of it holds"),
                Some(Err(findings)) => {
                    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
                    format!("{name}: {}", sanitize(&findings.join("; ")))
                }
                None => name,
            }
        }
        StepOutput::Plan(facts) => describe_plan(task, &name, facts),
        StepOutput::StepEvidence(_) => describe_step(task, step),
        StepOutput::Review(review) if !review.findings.is_empty() => {
            format!("{name}: {}", sanitize(&review.findings.join("; ")))
        }
        StepOutput::Work(work) => {
            let dropped = work.diff.as_ref().and_then(Diff::describe_dropped);
            let dropped = dropped.map(|dropped| format!("; {}", sanitize(&dropped)));
            format!("{name} ends{}", dropped.unwrap_or_default())
        }
        _ if step.kind == StepKind::Review => format!("{name}: no findings"),
        StepOutput::Baseline(_) | StepOutput::Review(_) | _ => format!("{name} ends"),
    }
}

/// Returns the line of a planned step, or the reason why the answer of the planner cannot be used.
fn describe_plan(task: &Task, name: &str, facts: &PlanFacts) -> String {
    let plan = task.plan();
    if let Some(problems) = plan.and_then(|plan| plan.refused().last()) {
        return format!("{name} is rejected: {}", sanitize(&problems.join("; ")));
    }
    match &facts.next {
        Some(next) => {
            let left = plan.map_or(0, |plan| plan.backlog().len());
            format!("{name}: {} ({left} more)", sanitize(next.goal.trim()))
        }
        None if plan.is_some_and(TaskPlan::is_skipped) => format!("{name}: the goal is a single step"),
        None => format!("{name}: nothing is left to do"),
    }
}

/// Returns the line of the evidence of a step of the plan.
fn describe_step(task: &Task, step: &StepId) -> String {
    let name = step.label();
    let round = task.plan().and_then(|plan| plan.round(step.round));
    let candidate = round.and_then(|round| round.candidates().get(step.candidate?));
    match candidate.and_then(StepCandidate::verdict) {
        Some(Ok(proof)) if proof.failing.is_empty() => format!("{name}: it holds"),
        Some(Ok(proof)) => {
            format!("{name}: it holds for now, with failing {}", sanitize(&proof.failing.join(", ")))
        }
        Some(Err(findings)) => {
            let findings: Vec<String> = findings.iter().map(Finding::to_string).collect();
            format!("{name}: {}", sanitize(&findings.join("; ")))
        }
        None => name,
    }
}
