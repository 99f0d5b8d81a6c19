//! Messages to the sessions that plan, and to those that work on a step.

use pintle_agent::Count;
use pintle_evidence::names::{escape_name, list_names};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{goal, listed, numbered, paths, protected};
use crate::contract::{CandidatePlan, Contract};
use crate::task::{EDITED_STEPS, PlanRound, PlannedStep, RoundEnd, StepCandidate, StepId, TaskPlan};

/// Answer of a session that plans.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PlanAnswer {
    #[serde(default)]
    pub(crate) next: Option<PlannedStep>,
    #[serde(default)]
    pub(crate) remaining: Vec<String>,
    #[serde(default)]
    pub(crate) go_back: bool,
}

/// Request for the next step of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanRequest<'a> {
    pub(crate) contract: &'a Contract,
    pub(crate) plan: &'a TaskPlan,
    pub(crate) step: &'a StepId,
    pub(crate) feedback: Option<&'a str>,
    /// Context of earlier sessions, such as the index of the repository.
    pub(crate) context: &'a str,
}

/// Returns the JSON Schema of a [`PlanAnswer`].
pub(crate) fn plan_schema() -> Value {
    let texts = |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
    json!({
        "type": "object",
        "properties": {
            "next": {
                "type": ["object", "null"],
                "properties": {
                    "goal": { "type": "string", "description": "What the step reaches, complete, for a session that does not know the plan" },
                    "paths": texts("Globs of the files that it may change; none for all files of the scope"),
                    "checks": texts("Commands of the shell that fail now and pass after it"),
                    "size": { "enum": ["small", "medium", "large"] },
                    "leaves_failing": texts("Names of checks that fail after it, until a later step makes them pass"),
                },
                "required": ["goal", "paths", "checks", "size", "leaves_failing"],
                "additionalProperties": false,
            },
            "remaining": texts("Goals of the steps after it, in order"),
            "go_back": { "type": "boolean", "description": "Whether the steps that left checks failing are undone first" },
        },
        "required": ["next", "remaining", "go_back"],
        "additionalProperties": false,
    })
}

/// Returns the JSON Schema of a [`StepReport`](crate::task::StepReport).
pub(crate) fn step_report_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "confidence": { "enum": ["low", "medium", "high"], "description": "Whether the step is complete" },
            "needs_replan": { "type": ["string", "null"], "description": "Reason why the plan has to change; null if it has not" },
        },
        "required": ["confidence", "needs_replan"],
        "additionalProperties": false,
    })
}

/// Returns a request for the next step. Messages to one session differ. Only those of the first round have the goal, which the
/// session knows afterwards.
pub(crate) fn plan(request: &PlanRequest<'_>) -> String {
    let PlanRequest { contract, plan, step, feedback, context } = *request;
    let StepId { round, attempt, .. } = *step;
    let left = contract.plan_rounds().saturating_sub(round.saturating_sub(1));
    let rounds = Count(u64::from(left), "step");
    let answer = if attempt > 1 { format!(", answer {attempt}") } else { String::new() };
    let head = format!("Round {round}{answer}. ");
    let is_edited = feedback.is_some_and(|feedback| feedback.contains(EDITED_STEPS));
    let feedback = feedback.map(|feedback| format!("\n{feedback}")).unwrap_or_default();
    let text = if round > 1 {
        format!(
            include_str!("../../prompts/plan_next.md"),
            round = head,
            done = (1..)
                .zip(plan.rounds())
                .map(|(number, round)| describe_round(number, round))
                .collect::<String>(),
            remaining = describe_remaining(if is_edited { &[] } else { plan.backlog() }),
            feedback = feedback,
            rounds = rounds
        )
    } else {
        let names: Vec<String> = contract.checks.iter().map(|check| check.name.clone()).collect();
        format!(
            include_str!("../../prompts/plan.md"),
            round = head,
            goal = goal(contract),
            context =
                if context.is_empty() { String::new() } else { format!("{}\n\n", context.trim_ascii()) },
            paths = paths(&contract.scope),
            unprotected = listed(&contract.scope.unprotected, |files| format!(", except {files}")),
            protected = protected(&contract.scope),
            checks = if names.is_empty() { "none".to_owned() } else { list_names(&names) },
            feedback = feedback,
            rounds = rounds
        )
    };
    text.trim_ascii_end().to_owned()
}

/// Returns the goal and the end of a round, with the findings against it.
fn describe_round(number: u32, round: &PlanRound) -> String {
    let mut text = format!("- Step {number} {}: {}\n", round.state(), escape_name(round.step().goal.trim()));
    let chosen = match round.end() {
        Some(RoundEnd::Held { candidate, .. }) => round.candidates().get(candidate),
        Some(RoundEnd::Failed | RoundEnd::WentBack) | None => round.candidates().last(),
    };
    match chosen.and_then(StepCandidate::verdict) {
        Some(Ok(proof)) => {
            let own = round.step().checks.len();
            if own > 0 {
                text.push_str(&format!("  {} of its {own} checks failed before it.\n", proof.anchored));
            }
            text.push_str(match proof.reaches_goal {
                Some(true) => "  The test of the goal passes.\n",
                Some(false) => "  The test of the goal fails still.\n",
                None => "",
            });
        }
        Some(Err(findings)) => {
            findings
                .iter()
                .for_each(|finding| text.push_str(&format!("  - {}\n", escape_name(&finding.to_string()))));
        }
        None => {}
    }
    text
}

fn describe_remaining(backlog: &[String]) -> String {
    if backlog.is_empty() {
        return String::new();
    }
    let goals: String = backlog.iter().map(|goal| format!("- {}\n", escape_name(goal.trim()))).collect();
    format!("\nThese steps remain:\n{goals}")
}

/// Returns a request to carry out a step. Each candidate of a step has a separate session.
pub(crate) fn step(
    contract: &Contract,
    step: &PlannedStep,
    candidate: &CandidatePlan,
    number: u32,
    feedback: Option<&str>,
) -> String {
    let quoted: String = step.goal.trim().lines().map(|line| format!("> {line}\n")).collect();
    let scope = if step.paths.is_empty() {
        contract.scope.clone()
    } else {
        contract.scope.clone().with_paths(&step.paths)
    };
    let mut checks: String = step.checks.iter().map(|check| format!("- `{check}` has to pass.\n")).collect();
    for check in &contract.checks {
        checks.push_str(&if step.leaves_failing.contains(&check.name) {
            format!("- `{}` may fail after this step.\n", check.command)
        } else {
            format!("- `{}` has to pass as far as it does now.\n", check.command)
        });
    }
    let feedback =
        feedback.map(|feedback| format!("\nThese were found before, or are messages of a user:\n{feedback}"));
    let text = format!(
        include_str!("../../prompts/step.md"),
        attempt = numbered("Candidate", number),
        step = quoted,
        goal = goal(contract),
        checks = checks,
        paths = paths(&scope),
        unprotected = listed(&scope.unprotected, |files| format!(", except {files}")),
        protected = protected(&scope),
        instructions = candidate.prompt.as_ref().map(|prompt| format!("\n{prompt}\n")).unwrap_or_default(),
        feedback = feedback.unwrap_or_default()
    );
    text.trim_ascii_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{PlanSettings, TaskCheck, TaskScope};
    use crate::task::StepKind;

    fn contract() -> Contract {
        let scope = TaskScope::default().with_paths(["src/"]);
        Contract::new("Rename it.")
            .with_check(TaskCheck::new("tests", "make test"))
            .with_scope(scope)
            .with_plan(PlanSettings::at_most(4))
    }

    #[test]
    fn planners_have_the_goal_once_and_the_evidence_so_far() {
        let (contract, plan_state) = (contract(), TaskPlan::default());
        let message = |round, attempt, feedback| {
            let step = StepId { kind: StepKind::Plan, candidate: None, attempt, round };
            plan(&PlanRequest {
                contract: &contract,
                plan: &plan_state,
                step: &step,
                feedback,
                context: "\n\nsrc/ has 3 files.\n",
            })
        };
        let first = message(1, 1, None);
        assert!(
            first.starts_with("Round 1. Plan the next step") && first.contains("> Rename it.\n"),
            "{first}"
        );
        assert!(first.contains("\nsrc/ has 3 files.\n\nYour answer"), "{first}");
        assert!(first.contains("- Only files in `src/` may change.\n"), "{first}");
        assert!(first.ends_with("The checks of the project are `tests`. At most 4 steps follow."), "{first}");
        let later = message(4, 2, Some("- use integers\n"));
        assert!(later.starts_with("Round 4, answer 2. ") && !later.contains("Rename it."), "{later}");
        assert!(later.contains("- use integers\n"), "{later}");
        assert!(later.ends_with("at most 1 step follow."), "{later}");
    }

    #[test]
    fn sessions_have_the_rules_of_their_step() {
        let planned = PlannedStep {
            paths: vec!["src/a.py".to_owned()],
            checks: vec!["grep -q new src/a.py".to_owned()],
            leaves_failing: vec!["tests".to_owned()],
            ..PlannedStep::new("Rename the function.\nKeep its callers.")
        };
        let mut contract = contract();
        contract.scope.protected.push("docs/".to_owned());
        let candidate =
            CandidatePlan { prompt: Some("Use integers.".to_owned()), ..CandidatePlan::default() };
        let text = step(&contract, &planned, &candidate, 2, Some("- check tests: it exited with 1\n"));
        assert!(text.starts_with("Candidate 2. Carry out one step"), "{text}");
        for part in [
            "> Rename the function.\n> Keep its callers.\n",
            "- Only files in `src/a.py` may change.\n",
            "they are compared.\n- So do files in `docs/`.\n- New test files",
            "is kept if it holds.\n\nUse integers.\n\nThese were found before",
            "- `grep -q new src/a.py` has to pass.\n- `make test` may fail after this step.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("messages of a user:\n- check tests: it exited with 1"), "{text}");
    }

    #[test]
    fn remaining_steps_are_single_lines() {
        assert_eq!(describe_remaining(&[]), "");
        assert_eq!(describe_remaining(&["a\nb ".to_owned()]), "\nThese steps remain:\n- a b\n");
    }
}
