//! Progress of a task: a line for each event, with the lane of its candidate.

use pintle_host::sanitize::sanitize;
use pintle_workflow::Diff;
use pintle_workflow::task::{StepId, StepKind, StepOutput, StepResult, Task, TaskInput, TaskSignal};

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
