//! `pintle task show`: the current state of a task.

use pintle_agent::SessionId;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::Sessions;
use pintle_store::StoreError;
use pintle_tui::console;
use pintle_workflow::contract::TaskBudget;
use pintle_workflow::evidence::Baseline;
use pintle_workflow::report::TaskReport;
use pintle_workflow::task::{StepCost, Task, TaskCandidate, TaskOutcome, WorkCost};
use pintle_workflow::{IntactTask, TaskStatus};
use serde_json::json;

use super::{describe_process, find, gate_prompt, read_intact};
use crate::arguments::{ListFormat, ShowTaskArgs};
use crate::exit::Exit;

pub(super) async fn show(args: &ShowTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    let intact = read_intact(&sessions, &id).await?;
    let is_running = sessions.is_live(&id).await;
    let state = intact.state(is_running);
    let IntactTask { task, damage, .. } = intact;
    let process = describe_process(&sessions, &id, state, is_running).await;
    let text = {
        let shown = ShownTask { id: &id, task: &task, state, is_running, process, damage: damage.as_ref() };
        match args.output {
            ListFormat::Json => shown.to_json()?,
            ListFormat::Text => shown.to_text(),
        }
    };
    console::print(&text).await?;
    Ok(if damage.is_some() { Exit::Failed } else { Exit::Done })
}

/// A task and its state.
struct ShownTask<'a> {
    id: &'a SessionId,
    task: &'a Task,
    state: &'static str,
    is_running: bool,
    /// Whether a process has it open, as an addition to its state.
    process: &'static str,
    damage: Option<&'a StoreError>,
}

impl ShownTask<'_> {
    fn to_json(&self) -> Result<String, Failure> {
        let Self { id, task, state, is_running, damage, .. } = *self;
        let candidates = task.candidates().iter().enumerate().map(|(number, candidate)| {
            json!({
                "state": task.candidate_state(number),
                "missing": missing_evidence(candidate),
                "attempts": candidate.attempts().len(),
                "spent": candidate.spent(),
            })
        });
        let mut shown = json!({
            "id": id.as_str(),
            "state": state,
            "running": is_running,
            "standing": TaskStatus::from_task(task),
            "ending": describe_end(task),
            "failing_checks": failing_checks(task).map(|(name, _)| name).collect::<Vec<_>>(),
            "candidates": candidates.collect::<Vec<_>>(),
            "spent": task.spent(),
            "steps": task.step_costs(),
            "budget": task.contract().budget,
        });
        if let (Some(damage), Some(shown)) = (damage, shown.as_object_mut()) {
            shown.insert("damage".to_owned(), damage.to_string().into());
        }
        json_line(&shown)
    }

    fn to_text(&self) -> String {
        let Self { id, task, state, is_running, process, damage } = *self;
        let goal = task.contract().goal.trim().lines().next().unwrap_or_default();
        let mut text = format!("{id}  {state}{process}\n{}\n", sanitize(goal));
        if !is_running && !process.is_empty() && damage.is_none() {
            text.push_str(&format!(
                "no process has it open; `pintle task run --task {id}` or a worker resumes it\n"
            ));
        }
        if let Some(ending) = describe_end(task) {
            text.push_str(&format!("{}\n", sanitize(&ending)));
        }
        for (name, end) in failing_checks(task) {
            let line = format!("check `{name}` fails before any change: it {end}");
            text.push_str(&format!("{}\n", sanitize(&line)));
        }
        for (name, problem) in task.baseline().into_iter().flat_map(|baseline| &baseline.without_results) {
            let line = format!("check `{name}` has no results of single tests: {problem}");
            text.push_str(&format!("{}\n", sanitize(&line)));
        }
        text.push_str(&render_status(id, task, &TaskStatus::from_task(task)));
        for (number, candidate) in task.candidates().iter().enumerate() {
            text.push_str(&format!(
                "[{number:>2}]  {}\n",
                sanitize(&describe_candidate(task, number, candidate))
            ));
        }
        text.push_str(&render_bill(task.spent(), &task.contract().budget));
        text.push_str(&sanitize(&render_parts(task)));
        if let Some(damage) = damage {
            text.push_str(&format!(
                "(The rest of the record cannot be read: {})\n",
                sanitize(&damage.to_string())
            ));
        }
        text
    }
}

/// Returns the checks that fail on the base, with the end of their runs.
fn failing_checks(task: &Task) -> impl Iterator<Item = (&str, String)> {
    let failures = task.baseline().into_iter().flat_map(Baseline::failures);
    failures.map(|(name, run)| (name, run.end.describe()))
}

/// Returns the pending steps, or the decision that the task waits for.
fn render_status(id: &SessionId, task: &Task, status: &TaskStatus) -> String {
    match status {
        TaskStatus::Steps(steps) => {
            let started = |step| if task.has_started(step) { "" } else { " (not started)" };
            let steps: Vec<String> = steps.iter().map(|step| format!("{step}{}", started(step))).collect();
            format!("steps: {}\n", steps.join(", "))
        }
        TaskStatus::Asked(gate) => {
            let (name, subject) =
                (gate_prompt::gate_name(*gate), gate_prompt::describe_gate(task, *gate, id));
            format!(
                "waits for a decision about the {name}: `pintle task decide {id} approve` or `refuse`\n{subject}\n"
            )
        }
        TaskStatus::Ended(_) | TaskStatus::Full | _ => String::new(),
    }
}

/// Returns the reason why a task ended without its goal.
fn describe_end(task: &Task) -> Option<String> {
    match task.outcome() {
        None | Some(TaskOutcome::Done(_)) => None,
        Some(_) => Some(TaskReport::from_task(task).describe_outcome()),
    }
}

/// Returns the state of a candidate, with the findings about its newest attempt.
fn describe_candidate(task: &Task, number: usize, candidate: &TaskCandidate) -> String {
    let state = task.candidate_state(number).unwrap_or_default();
    // The state already contains an external failure.
    let missing = missing_evidence(candidate).filter(|missing| !missing.ends_with(&state));
    missing.map_or_else(|| state.clone(), |missing| format!("{state}; {missing}"))
}

/// Returns the findings about the newest attempt of a candidate.
fn missing_evidence(candidate: &TaskCandidate) -> Option<String> {
    let findings = candidate.attempts().last()?.verdict.as_ref()?.as_ref().err()?;
    Some(findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Returns the costs of each step with calls of models, and of each model.
fn render_parts(task: &Task) -> String {
    let steps = task.step_costs().iter().filter(|cost| cost.spent.has_calls());
    let steps = steps.map(|StepCost { step, spent }| {
        format!("  {step}: {}, {} tokens, {} s\n", spent.dollars(), spent.tokens, spent.millis / 1_000)
    });
    let models = task.spent().models.iter();
    let models =
        models.map(|(model, cost)| format!("  model {model}: {}, {} tokens\n", cost.dollars(), cost.tokens));
    steps.chain(models).collect()
}

fn render_bill(spent: &WorkCost, budget: &TaskBudget) -> String {
    let of = |limit: Option<String>| limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    format!(
        "{}{}, {} tokens{}, {} min {} s{}\n",
        spent.dollars(),
        of(budget.cost.map(|cost| format!("{cost:.2}"))),
        spent.tokens,
        of(budget.tokens.map(|tokens| tokens.to_string())),
        spent.millis / 60_000,
        spent.millis / 1_000 % 60,
        of(budget.minutes.map(|minutes| format!("{minutes} min"))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_with_an_unknown_price_are_a_lower_bound() {
        for (dollars, is_price_unknown, expected) in [
            (0.25, false, "$0.25, 7 tokens, 1 min 1 s\n"),
            (0.25, true, "≥ $0.25, 7 tokens, 1 min 1 s\n"),
            (0.0, true, "unknown cost, 7 tokens, 1 min 1 s\n"),
        ] {
            let spent = WorkCost {
                cost: pintle_agent::Money::from_dollars(dollars),
                is_price_unknown,
                tokens: 7,
                millis: 61_500,
                ..WorkCost::default()
            };
            assert_eq!(render_bill(&spent, &TaskBudget::default()), expected);
        }
    }
}
